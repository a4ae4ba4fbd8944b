#!/bin/bash
# SPDX-License-Identifier: MIT
# copy's words in turns, for messages to and fro by size, touched or not, at fresh or the same places (LN-12).
#
#	ROUNDS=5 SIZES="64 1024 …" HOW="- touch fresh touch,fresh" copy.sh	medians, ns a round trip
# shellcheck disable=SC2086	# $shunt_run is several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
sizes=${SIZES:-64 1024 4096 8192 16384 65536 262144 1048576 4194304 16777216}
hows=${HOW:-- touch fresh touch,fresh}
words=${WORDS:-memcpy nt auto}
copy=${COPY:-$builddir/tests/bench/copy}
need "$copy"
need_shunt

# Round trips that take about a tenth of a second.
count_of() {
	local count=$((600000000 / ($1 + 6000)))
	echo $((count > 8 ? count : 8))
}

# measure WORD SIZE HOW
measure() {
	local in options=${3/-/}
	export SHUNT_TUNE=${SHUNT_TUNE-},copy=$1
	start_telling $shunt_run "$copy" server
	exec {in}<&-
	timeout 60 $shunt_run "$copy" client "$server_port" "$2" "$(count_of "$2")" ${options//,/ }
	wait "$server_pid"
}

for ((round = 1; round <= rounds; round++)); do
	for size in $sizes; do
		for how in $hows; do
			for word in $words; do
				v=$(measure "$word" "$size" "$how")
				record "$size.$how" "$word" "${v:-0}"
			done
		done
	done
	echo "round $round of $rounds" >&2
done

printf '%9s %-12s' size how
printf ' %10s' $words
printf ' %10s\n' "auto/best"
for size in $sizes; do
	for how in $hows; do
		printf '%9s %-12s' "$size" "${how/-/}"
		best=
		for word in $words; do
			v=$(get_median "$size.$how" "$word")
			printf ' %10s' "$v"
			[ "$word" = auto ] || best=$(printf '%s\n' $best "$v" | sort -n | head -1)
		done
		printf ' %10s\n' "$(ratio "$best" "$(get_median "$size.$how" auto)")"
	done
done
echo "ns a round trip; auto/best: how many times as fast auto is as the better of the others"
