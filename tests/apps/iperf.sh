#!/bin/bash
# SPDX-License-Identifier: MIT
# iperf3 and iperf (2): one way, back, both ways, parallel, in threads and with select; bytes are counted at both ends.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires iperf3 iperf python3
version="$(iperf3 --version | awk 'NR == 1 { print $2 }'), $(iperf --version 2>&1 | awk '{ print $3 }')"

# What was sent arrived, all of it.
three() {
	timeout $patience $client iperf3 -c 127.0.0.1 -p 7001 -J --get-server-output "$@" > "$dir/json" || { cat "$dir/json"; return 1; }
	python3 - "$dir/json" <<-'END'
		import json, sys
		said = json.load(open(sys.argv[1]))
		end = said["end"]
		assert "error" not in said, said["error"]
		for way in "sum_sent", "sum_sent_bidir_reverse":
		    if way in end:
		        sent, received = end[way]["bytes"], end[way.replace("sent", "received")]["bytes"]
		        assert sent > 0 and received > 0, end
		        if "-n" in sys.argv: assert sent == received
	END
}

two() {
	timeout $patience $client iperf -c 127.0.0.1 -p 7002 -y C "$@" > "$dir/csv" 2>&1 || { cat "$dir/csv"; return 1; }
	awk -F, '$8 > 1000000 { good = 1 } END { exit !good }' "$dir/csv"
}

drive() {
	local three
	start iperf3 $server iperf3 -s -p 7001
	three=$pid
	up 7001 || return
	try "iperf3: 20 MB" three -n 20M	# of less, its server may have looked at nothing before it hears of the end
	marks $three
	try "iperf3: 500 MB in blocks of 128 KiB" three -n 500M
	try "iperf3: blocks of 1000 bytes" three -n 20M -l 1000
	try "iperf3: reverse" three -n 200M -R
	try "iperf3: both ways" three -t 1 --bidir
	try "iperf3: 8 streams" three -t 1 -P 8
	try "iperf3: 50 Mbit/s" three -t 1 -b 50M
	left $three
	start iperf $server iperf -s -p 7002
	up 7002 || return
	try "iperf: 10 MB" two -n 10M
	marks $pid
	try "iperf: 500 MB" two -n 500M
	try "iperf: 8 threads" two -t 1 -P 8
	try "iperf: both ways" two -t 1 -d -L 7003
	left $pid
	stop $pid
	stop $three
}

matrix drive
