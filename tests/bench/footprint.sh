#!/bin/bash
# SPDX-License-Identifier: MIT
# What links cost: so many client processes, each with a connection to each of so many servers. Queue pairs, registered and
# resident memory and descriptors of one server and of one client, beside the same processes without Shunt.
# The links are those of the soft device on one host. It has as many lanes as links between hosts have (lanes=4), and
# keeps what was sent (retain=always). Its queues are not those of a card: FABRIC.md has what a driver allocates.
#
#	SHAPES="1x1 4x1 16x1 1x4 1x16 4x4" LANES=4 footprint.sh	clients x servers
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

shapes=${SHAPES:-1x1 4x1 16x1 1x4 1x16 4x4}
short=$builddir/tests/bench/short
need "$short" jq
need_shunt
export SHUNT_TUNE=${SHUNT_TUNE-},lanes=${LANES:-4},retain=always SHUNT_DEVICE=soft

# The statistics of a process.
stat_of() { # PID FILTER
	"$builddir/tools/shunt" stat --json "$1" 2>/dev/null | jq -r ".[0] | $2"
}

is_linked() { # PID STREAMS
	[ "$(stat_of "$1" '[.streams[] | select(.state == "linked")] | length')" = "$2" ]
}

resident() { # PID: in KiB
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

descriptors() { # PID
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

has_connected() { # PID SERVERS
	[ "$(descriptors "$1")" -ge $((3 + $2)) ]
}

# start WRAP CLIENTS SERVERS: into $served and $asking.
start() {
	local wrap=$1 clients=$2 servers=$3 ports=() i
	served=() asking=()
	rm -f "$work"/port.* "$work/stay"
	mkfifo "$work/stay"
	exec {stay}<>"$work/stay"
	for ((i = 0; i < servers; i++)); do
		$wrap "$short" serve 0 >"$work/port.$i" {stay}<&- &
		served+=($!)
		within grep -qs port "$work/port.$i" || return
		ports+=("$(cut -d ' ' -f 2 "$work/port.$i")")
	done
	for ((i = 0; i < clients; i++)); do
		$wrap "$short" stay 1 127.0.0.1 "${ports[@]}" <"$work/stay" {stay}<&- &
		asking+=($!)
	done
	children+=("${served[@]}" "${asking[@]}")
}

stop() {
	exec {stay}>&-
	wait "${asking[@]}"
	kill "${served[@]}"
	wait "${served[@]}" 2>/dev/null
	return 0
}

row() { # SHAPE END PID PLAIN-RESIDENT PLAIN-DESCRIPTORS
	printf '%-8s %-7s %6s %6s %12s %10s %10s %6s %6s\n' "$1" "$2" "$(stat_of "$3" .counters.links)" \
		"$(stat_of "$3" .counters.queue_pairs_created)" $(($(stat_of "$3" .counters.memory_registered) / 1024)) \
		"$(resident "$3")" "$4" "$(descriptors "$3")" "$5"
}

shape() { # CLIENTS SERVERS
	local plain
	start "" "$1" "$2" || return
	within has_connected "${asking[-1]}" "$2"
	plain=("$(resident "${served[0]}")" "$(descriptors "${served[0]}")" "$(resident "${asking[0]}")" "$(descriptors "${asking[0]}")")
	stop
	start "$shunt_run" "$1" "$2" || return
	within is_linked "${served[0]}" "$1" && within is_linked "${asking[0]}" "$2" || return
	row "$1x$2" server "${served[0]}" "${plain[@]:0:2}"
	row "$1x$2" client "${asking[0]}" "${plain[@]:2:2}"
	stop
}

printf '%-8s %-7s %6s %6s %12s %10s %10s %6s %6s\n' shape end links QPs registered resident plain fds plain
for one in $shapes; do
	shape "${one%x*}" "${one#*x}" || exit
done
echo "memory in KiB; ${LANES:-4} lanes of the soft device in place of RDMA's"
