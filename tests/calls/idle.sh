#!/bin/bash
# SPDX-License-Identifier: MIT
# What Shunt costs when nothing happens: CPU time, start-up, memory, many connections. TAP.
#
#	SECONDS_IDLE=10 RUNS=200 CONNECTIONS=10000 idle.sh	these are the defaults
#	QUICK=1 idle.sh			a short form for make check-all
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
if [ "${QUICK:-}" ]; then
	: "${SECONDS_IDLE:=3}" "${RUNS:=40}" "${CONNECTIONS:=2000}"
fi
seconds=${SECONDS_IDLE:-10} runs=${RUNS:-200} connections=${CONNECTIONS:-10000}
hertz=$(getconf CLK_TCK)
start_pages=400	# two programs and their libraries
idle_kib=6400	# 1000 connections, both ends, and what two processes have anyway: half of that with rings that keep their pages
need "$many" redis-server redis-benchmark python3
need_shunt

# ticks PID: CPU time of a process so far.
ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"
}

# 50 clients that say a word each and stay.
idle_clients() {
	exec python3 - "$1" << 'END'
import signal, socket, sys
c = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(50)]
for _ in range(100):
    for s in c:
        s.sendall(b"PING\r\n")
    for s in c:
        assert s.recv(100) == b"+PONG\r\n"
print("ready", flush=True)
signal.pause()
END
}

# idle_redis WRAP FILE: "ticks-of-server ticks-of-clients running-threads" to FILE.
idle_redis() {
	local clients a b c d running=0 i in
	SHUNT_STATS=$2.stat.%p start_redis "$1" || return 1
	rm -f "$2.fifo"
	mkfifo "$2.fifo"
	idle_clients_with "$1" "$server_port" > "$2.fifo" 2> "$2.err" &
	clients=$!
	children+=("$clients")
	exec {in}< "$2.fifo"
	read -r _ <&"$in" || return 1
	sleep 1
	a=$(ticks "$server_pid") c=$(ticks $clients)
	for ((i = 0; i < seconds; i++)); do
		sleep 1
		running=$((running + $(cat /proc/$server_pid/task/*/stat /proc/$clients/task/*/stat |
			sed 's/.*) //' | grep -c '^R')))
	done
	b=$(ticks "$server_pid") d=$(ticks $clients)
	echo $((b - a)) $((d - c)) $running > "$2"
	kill $clients "$server_pid"
	wait $clients "$server_pid" 2> /dev/null
	exec {in}<&-
	return 0
}

idle_clients_with() {
	if [ "$1" ]; then
		export LD_PRELOAD=$builddir/.libs/libshunt.so
	fi
	idle_clients "$2"
}

quiet() {
	local plain shunted
	idle_redis "" "$work/plain" && idle_redis "$shunt_run" "$work/shunted" || return 1
	read -ra plain < "$work/plain"
	read -ra shunted < "$work/shunted"
	echo "# ticks of 1/$hertz s in $seconds s, server and clients, plain: ${plain[*]:0:2}," \
		"shunted: ${shunted[*]:0:2}; threads seen running: ${plain[2]} and ${shunted[2]}"
	# one hundredth of a core, and one tick of grace because ticks are whole
	[ "${shunted[0]}" -le $((plain[0] + 1 + seconds * hertz / 100)) ] &&
		[ "${shunted[1]}" -le $((plain[1] + 1 + seconds * hertz / 100)) ]
}

# Bare and shunted runs in turn: pages touched, which a busy machine does not change. The time of the shortest is only told.
start_up() {
	local bare shunted us
	python3 - "$runs" $shunt_run > "$work/starts" << 'END'
import resource, subprocess, sys, time
n, wrap = int(sys.argv[1]), sys.argv[2:]
t, pages = ([], []), ([], [])
for i in range(2 * n):
    a, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    subprocess.run((wrap if i & 1 else []) + ["/bin/true"], check=True)
    t[i & 1].append((time.monotonic() - a) * 1e6)
    pages[i & 1].append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
print(min(pages[0]), min(pages[1]))
print(*(round(min(v)) for v in t))
END
	{ read -r bare shunted; read -r us; } < "$work/starts"
	echo "# true: page faults $bare bare, $shunted shunted; us, the shortest of $runs: $us"
	[ $((shunted - bare)) -lt "$start_pages" ]
}

pss() {
	awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"
}

# settle KIB PID PID: their Pss in KiB, once it is no more than that. Rings give memory back when they are idle.
settle() {
	local all i
	for ((i = 0; i < 30; i++)); do
		all=$(($(pss "$2") + $(pss "$3")))
		[ $all -gt "$1" ] || break
		sleep 1
	done
	echo $all
}

# crowd WRAP N ROUNDS FILE [KIB]: N connections, served; FILE gets "Pss-of-both-in-KiB served". With KIB: settled.
crowd() {
	local client served=0 in out
	mkfifo "$4.fifo.c" "$4.fifo.i"
	SHUNT_STATS=$4.stat.%p start_telling $1 "$many" server 2>> "$4.err"
	exec {in}<&-
	exec {out}<> "$4.fifo.i"
	SHUNT_STATS=$4.stat.%p $1 "$many" client "$server_port" "$2" "$3" idle \
		< "$4.fifo.i" {out}<&- > "$4.fifo.c" 2>> "$4.err" &
	client=$!
	children+=("$client")
	exec {in}< "$4.fifo.c"
	read -r _ served <&"$in"
	echo "$(settle "${5:-1000000000}" "$server_pid" $client)" "$served" > "$4"
	exec {out}<&-
	wait $client "$server_pid"
	exec {in}<&-
	return 0
}

memory() {
	local plain shunted streams
	crowd "" 1000 20 "$work/m-plain" || return 1
	read -r plain _ < "$work/m-plain"
	crowd "$shunt_run" 1000 20 "$work/m-shunted" $((plain + idle_kib)) || return 1
	read -r shunted _ < "$work/m-shunted"
	streams=$(counter upgrades "$work"/m-shunted.stat.*)
	echo "# 1000 connections: $plain KiB plain, $shunted KiB shunted, upgrades: $streams"
	[ $((shunted - plain)) -le $idle_kib ]
}

crowded() {
	local served streams
	crowd "$shunt_run" "$connections" 5 "$work/many" || return 1
	read -r _ served < "$work/many"
	streams=$(counter upgrades "$work"/many.stat.*)
	echo "# $connections connections: $served messages served, upgrades of both processes: $streams"
	head -3 "$work/many.err" | sed 's/^/# /'
	[ "$served" = $((connections * 5)) ] && [ "$streams" -ge $((connections * 2)) ]
}

check "an idle shunted redis with 50 clients uses no more CPU time than a plain one" quiet
check "shunt run true touches fewer than $start_pages pages more" start_up
check "1000 idle connections cost no more than $idle_kib KiB" memory
check "$connections connections are accepted, upgraded and served" crowded
plan
