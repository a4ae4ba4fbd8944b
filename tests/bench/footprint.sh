#!/bin/bash
# SPDX-License-Identifier: MIT
# What links cost: so many client processes, each with so many connections (1) to each of so many servers. Queue pairs,
# memory and descriptors of one server and of one client. `used` and `idle` are what Shunt adds to the memory of the same
# process without it: while all connections are in use, and once idle rings have given their pages back, for which it waits
# some seconds. Of what two processes share, each counts half. `shunt doctor --plan` computes the same (tools/plan/footprint.h),
# and calls/plan.sh compares.
#
#	SHAPES="1x1 4x1 16x1 1x4 1x16 4x4 1x1x1000" AS=verbs footprint.sh [--json]	clients x servers [x connections]
#
# AS=soft	links as they are within a host
# AS=verbs	links of the soft device that have LANES (4) lanes, keep what was sent (retain=always), and fetch it from
#		registered memory (inline=256), as those of RDMA devices. Its queues are not those of a card: FABRIC.md has
#		what a driver allocates.
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

shapes=${SHAPES:-1x1 4x1 16x1 1x4 1x16 4x4 1x1x1000}
json=$([ "${1-}" = --json ] && echo yes)
short=$builddir/tests/bench/short
need "$short" jq
need_shunt
if [ "${AS:=verbs}" = verbs ]; then
	export SHUNT_TUNE=${SHUNT_TUNE:+$SHUNT_TUNE,}lanes=${LANES:-4},retain=always,inline=256
fi
export SHUNT_DEVICE=soft
rounds=1100 # of 64 bytes: more than a stage holds

# A counter of a process. Asked last: the answer takes memory for each stream.
counter() { # PID NAME
	"$builddir/tools/shunt" stat --json "$1" 2>/dev/null | jq -r ".[0].counters.$2"
}

resident() { # PID: in KiB
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

# Anonymous and shared, in KiB: without the files of programs and libraries, which all processes share.
memory() { # PID
	awk '/^Pss_(Anon|Shmem):/ { sum += $2 } END { print sum + 0 }' "/proc/$1/smaps_rollup"
}

shared() { # PID
	awk '/^Pss_Shmem:/ { print $2 }' "/proc/$1/smaps_rollup"
}

descriptors() { # PID
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# start WRAP CLIENTS SERVERS EACH: into $served and $asking.
start() {
	local wrap=$1 clients=$2 servers=$3 each=$4 ports=() i pipe
	served=() asking=() says=() hears=()
	for ((i = 0; i < servers; i++)); do
		rm -f "$work/port.$i"
		$wrap "$short" serve 0 >"$work/port.$i" &
		served+=($!)
		within grep -qs port "$work/port.$i" || return
		ports+=("$(cut -d ' ' -f 2 "$work/port.$i")")
	done
	for ((i = 0; i < clients; i++)); do
		rm -f "$work/say" "$work/hear"
		mkfifo "$work/say" "$work/hear"
		exec {pipe}<>"$work/say"
		says+=("$pipe")
		exec {pipe}<>"$work/hear"
		hears+=("$pipe")
		$wrap "$short" hold "$each" 127.0.0.1 "${ports[@]}" <&"${says[-1]}" >&"${hears[-1]}" &
		asking+=($!)
	done
	children+=("${served[@]}" "${asking[@]}")
}

# All clients ask so many times. True: all connections of each were on a link at the end.
hold() { # ROUNDS CONNECTIONS
	local i held all=0
	for i in "${says[@]}"; do echo "$1" >&"$i"; done
	for i in "${hears[@]}"; do
		read -t "${WITHIN:-120}" -r _ held <&"$i" || return
		[ "$held" = "$2" ] || all=1
	done
	return $all
}

stop() {
	local i
	kill "${served[@]}" "${asking[@]}"
	wait "${served[@]}" "${asking[@]}" 2>/dev/null
	for i in "${says[@]}" "${hears[@]}"; do exec {i}>&-; done
	return 0
}

# look NAME: of the first server and the first client, into an array of that name.
look() {
	declare -ga "$1=($(resident "${served[0]}") $(memory "${served[0]}") $(descriptors "${served[0]}")
		$(resident "${asking[0]}") $(memory "${asking[0]}") $(descriptors "${asking[0]}"))"
}

# Both ends of its connections have given the pages of their rings back: 16 KiB each, of which half counts here.
rings_are_small() { # PID BEFORE CONNECTIONS
	[ "$(shared "$1")" -le $(($2 - 16 * $3 + $3 / 8 + 8)) ]
}

columns="%-10s %-7s %11s %6s %6s %11s %9s %9s %10s %10s %6s %6s\n"

row() { # SHAPE END PID CONNECTIONS FIRST: its place in what was looked at
	local values=("$1" "$2" "$4" "$(counter "$3" links)" "$(counter "$3" queue_pairs_created)"
		$(($(counter "$3" memory_registered) / 1024)) $((used[$5 + 1] - plain[$5 + 1])) $((idle[$5 + 1] - plain[$5 + 1]))
		"${used[$5]}" "${plain[$5]}" "${used[$5 + 2]}" "${plain[$5 + 2]}")
	if [ "$json" ]; then
		printf '{"shape":"%s","end":"%s","connections":%d,"links":%d,"queue_pairs":%d,"registered":%d,"used":%d,"idle":%d,"resident":%d,"plain_resident":%d,"descriptors":%d,"plain_descriptors":%d}\n' "${values[@]}"
	else
		# shellcheck disable=SC2059 # two lines have the same columns
		printf "$columns" "${values[@]}"
	fi
}

shape() { # CLIENTS SERVERS EACH
	local shape=$1x$2x$3 mine=$(($2 * $3)) theirs=$(($1 * $3)) before
	start "" "$1" "$2" "$3" || return
	hold 2 "$mine"
	look plain
	stop
	start "$shunt_run" "$1" "$2" "$3" || return
	within hold 4 "$mine" || return
	hold $rounds "$mine" || return
	look used
	# An RDMA device keeps the pages of its regions, and does not exchange idle rings.
	if [ "$AS" = soft ]; then
		before=("$(shared "${served[0]}")" "$(shared "${asking[0]}")")
		within rings_are_small "${served[0]}" "${before[0]}" "$theirs" &&
			within rings_are_small "${asking[0]}" "${before[1]}" "$mine" || return
	fi
	look idle
	row "$shape" server "${served[0]}" "$theirs" 0
	row "$shape" client "${asking[0]}" "$mine" 3
	stop
}

# shellcheck disable=SC2059 # the same
[ "$json" ] || printf "$columns" shape end connections links QPs registered used idle resident plain fds plain
for one in $shapes; do
	IFS=x read -r clients servers each <<<"$one"
	shape "$clients" "$servers" "${each:-1}" || exit
done
[ "$json" ] || echo "memory in KiB; as links of $AS"
