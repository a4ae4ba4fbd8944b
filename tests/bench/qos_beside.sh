#!/bin/bash
# SPDX-License-Identifier: MIT
# redis with a reservation beside four iperf3 streams (docs/QOS.md): alone, beside them without rules, and with rules. A
# node is one process, so each server has its part: what redis reserves of its node, and a limit of iperf3's.
#
#	ROUNDS=3 CAPACITY=4Mops BULK=4Gbit qos_beside.sh
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-3} capacity=${CAPACITY:-4Mops} bulk=${BULK:-4Gbit} requests=${REQUESTS:-200000}
need redis-server redis-benchmark iperf3 python3
need_shunt
redis_rules="capacity $capacity; class cache program=redis-benchmark reserve=50%"
iperf_rules="class bulk limit=$bulk"

# redis PORT: requests a second and the 99th percentile in milliseconds.
redis() {
	$shunt_run redis-benchmark -p "$1" -t get -n "$requests" -c 50 --csv 2> /dev/null |
		python3 -c 'import csv, sys; row = list(csv.reader(sys.stdin))[-1]; print(row[1], row[6])'
}

# beside PORT_OF_REDIS PORT_OF_IPERF
beside() {
	timeout 120 $shunt_run iperf3 -c 127.0.0.1 -p "$2" -t 60 -P 4 > "$work/iperf.log" 2>&1 &
	local streams=$!
	sleep 1	# its streams are on the link
	redis "$1"
	kill "$streams" 2> /dev/null
	wait "$streams" 2> /dev/null
}

start_redis() {	# RULES
	start_server env SHUNT_QOS="$1" $shunt_run redis-server --save '' --appendonly no --port
}

start_redis ""
redis_open=$server_port
start_redis "$redis_rules"
redis_ruled=$server_port
start_server $shunt_run iperf3 -s -p
iperf_open=$server_port
SHUNT_QOS=$iperf_rules start_server $shunt_run iperf3 -s -p
iperf_ruled=$server_port
echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
for ((i = 0; i < rounds; i++)); do
	redis "$redis_open" >> "$work/alone"
	beside "$redis_open" "$iperf_open" >> "$work/none"
	beside "$redis_ruled" "$iperf_ruled" >> "$work/rules"
done
for what in alone none rules; do
	rate=$(cut -d' ' -f1 "$work/$what" | median) p99=$(cut -d' ' -f2 "$work/$what" | median)
	[[ $what == alone ]] && rate_alone=$rate p99_alone=$p99
	echo "$what: $rate requests a second ($(ratio "$rate" "$rate_alone") of alone), p99 $p99 ms ($(ratio "$p99" "$p99_alone") of alone)"
done
echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
