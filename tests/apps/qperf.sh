#!/bin/bash
# SPDX-License-Identifier: MIT
# qperf: bandwidth and latency over TCP, by its own measure; both ends must agree about what they did.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires qperf
version=$(qperf --version | awk 'NR == 1 { print $2 }')

measures() {
	timeout $patience $client qperf -lp 7001 -ip 7002 127.0.0.1 "$@" > "$dir/said" || { cat "$dir/said"; return 1; }
	grep -E '(bw|latency|msg_rate) +=' "$dir/said" > /dev/null || { cat "$dir/said"; return 1; }
}

drive() {
	start qperf $server qperf -lp 7001
	up 7001 || return
	try "a first test" measures -t 1 tcp_lat
	marks $pid
	try "bandwidth" measures -t 1 -m 64K tcp_bw
	try "bandwidth of small messages" measures -t 1 -m 100 tcp_bw
	try "latency of 10 KB" measures -t 1 -m 10000 tcp_lat
	left $pid
	stop $pid
}

matrix drive
