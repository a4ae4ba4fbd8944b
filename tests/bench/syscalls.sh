#!/bin/bash
# SPDX-License-Identifier: MIT
# System calls of both ends in steady traffic, by strace -c -f: numbers per million operations.
#
#	WINDOW=3 WHO="tcp shunt" syscalls.sh
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

window=${WINDOW:-3}
who=${WHO:-tcp shunt}
need redis-server redis-benchmark iperf3 strace python3
need_shunt

# watch PID FILE: counts the system calls of all threads for a while.
watch() {
	timeout -s INT "$window" strace -c -f -p "$1" -o "$2" 2> /dev/null
}

# commands PORT SECONDS: how many commands the redis server processes in a while, scaled from the
# middle of it, because tracing changes the speed.
commands() {
	python3 - "$1" "$2" << 'END'
import re, socket, sys, time
window = float(sys.argv[2])
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def look():
    s.sendall(b"INFO stats\r\n")
    data = b""
    while b"total_commands_processed" not in data or not data.endswith(b"\r\n"):
        data += s.recv(65536)
    return time.monotonic(), int(re.search(rb"total_commands_processed:(\d+)", data).group(1))
time.sleep(window / 5)
a = look()
time.sleep(window / 2)
b = look()
print(round((b[1] - a[1]) / (b[0] - a[0]) * window))
END
}

# table FILE OPERATIONS: calls per million operations, the most frequent first.
table() {
	awk -v n="$2" '/^ *[0-9]+\.[0-9]/ && $NF != "total" { c[$NF] = $4; s += $4 }
		END { if (!n) { print "   no operations"; exit }
			printf "   %-20s %12.1f\n", "all", s / n * 1e6
			for (k in c) printf "   %-20s %12.1f\n", k, c[k] / n * 1e6 }' "$1" |
		sort -k2,2gr | head -12
}

both() {
	watch "$1" "$work/a" &
	local a=$!
	watch "$2" "$work/b"
	wait $a
}

redis() {
	local wrap=$1 client counter operations
	shift
	start_redis "$wrap"
	$wrap redis-benchmark -p "$server_port" -t get -n 1000000000 -q "$@" > /dev/null 2>&1 &
	client=$!
	children+=("$client")
	sleep 2
	commands "$server_port" "$window" > "$work/operations" &
	counter=$!
	both "$server_pid" $client
	wait $counter
	operations=$(cat "$work/operations")
	kill $client "$server_pid"
	wait $client "$server_pid" 2> /dev/null
	echo "  server, of $operations commands"
	table "$work/a" "$operations"
	echo "  client"
	table "$work/b" "$operations"
}

iperf() {
	local wrap=$1 block=$2 client blocks
	start_server $wrap iperf3 -s -1 -p
	$wrap iperf3 -c 127.0.0.1 -p "$server_port" -J -i 0.5 -l "$block" -t $((window + 4)) > "$work/iperf" &
	client=$!
	children+=("$client")
	sleep 2
	both "$server_pid" $client
	wait $client "$server_pid"
	# the intervals that lie within the window
	blocks=$(python3 - "$work/iperf" "$block" "$window" << 'END'
import json, sys
d = json.load(open(sys.argv[1]))
inside = [i["sum"] for i in d["intervals"] if 2 <= i["sum"]["start"] and i["sum"]["end"] <= 2.1 + float(sys.argv[3])]
size = int(sys.argv[2].rstrip("K")) << 10
rate = sum(i["bytes"] for i in inside) / sum(i["seconds"] for i in inside)
print(round(rate * float(sys.argv[3]) / size))
END
	)
	echo "  server, of $blocks blocks"
	table "$work/a" "$blocks"
	echo "  client"
	table "$work/b" "$blocks"
}

for x in $who; do
	wrap=
	[ "$x" = tcp ] || wrap=$shunt_run
	echo "$x: redis, 1 client"
	redis "$wrap" -c 1
	echo "$x: redis, 50 clients, pipeline 16"
	redis "$wrap" -c 50 -P 16
	echo "$x: iperf3 -l 128K"
	iperf "$wrap" 128K
done
