#!/bin/bash
# SPDX-License-Identifier: MIT
# What a dump costs the program, in turns: round trips and messages one way of a server that is not dumped, that is, and
# that was until the client began. The last should be as the first.
#
#	ROUNDS=5 SIZES="64 65536 1048576" FILE=/dev/null MEMORY=16 dump.sh
#
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
sizes=${SIZES:-64 65536 1048576}
shunt=$builddir/tools/shunt
need "$pp" "$shunt"
need_shunt

# dump PID: in the background, until it listens; sets dumper.
dump() {
	: > "$work/says"
	"$shunt" dump -w "${FILE:-/dev/null}" -B "${MEMORY:-16}" "$1" 2> "$work/says" &
	dumper=$!
	children+=("$dumper")
	within grep -q listening "$work/says"
}

end_dump() {
	kill -INT "$dumper"
	wait "$dumper"
}

# one MODE KIND BYTES: messages for about a second.
one() {
	local mode=$1 kind=$2 bytes=$3 name=$1.$2.$3
	pp_server "$shunt_run"
	[ $mode = never ] || dump "$server_pid"
	[ $mode != before ] || end_dump
	record figure "$name" "$(timeout 120 $shunt_run "$pp" client "$server_port" $kind -n $((400000000 / (bytes + 8000))) -s $bytes)"
	wait "$server_pid"
	[ $mode = during ] || return
	wait "$dumper"
	record dropped "$name" "$(sed -n 's/.* \([0-9]*\) packets written, \([0-9]*\) dropped/\1 \2/p' "$work/says" |
		awk '{ print 100 * $2 / ($1 + $2 + !($1 + $2)) }')"
}

for ((round = 0; round < rounds; round++)); do
	for bytes in $sizes; do
		for kind in rtt rate; do
			for mode in never during before; do
				one $mode $kind $bytes
			done
		done
	done
done
printf '%8s %-5s %12s %12s %8s %12s %8s %9s\n' bytes kind never during ratio before ratio "dropped %"
for bytes in $sizes; do
	for kind in rtt rate; do
		never=$(get_median figure never.$kind.$bytes)
		during=$(get_median figure during.$kind.$bytes)
		before=$(get_median figure before.$kind.$bytes)
		printf '%8s %-5s %12s %12s %8s %12s %8s %9.1f\n' $bytes $kind "$never" "$during" "$(ratio $during $never)" \
			"$before" "$(ratio $before $never)" "$(get_median dropped during.$kind.$bytes)"
	done
done
echo "rtt: nanoseconds; rate: messages a second"
say_stolen
