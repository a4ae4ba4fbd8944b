#!/bin/bash
# SPDX-License-Identifier: MIT
# A ping-pong pair beside more busy processes than cores: who spins there keeps its peer from running (PF-32).
# Round trips a second over TCP and in modes of poll, in turns; medians.
#
#	ROUNDS=5 BURNERS=6 COUNT=20000 MODES="event adaptive" cpu.sh
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
count=${COUNT:-20000}
modes=${MODES:-event adaptive}
limit=${LIMIT:-1.0}
need "$pp"
need_shunt

burn "${BURNERS:-6}"

# once WRAP: round trips a second.
once() {
	measure_pp "$1" "$1" rtt -n "$count" | awk '{ printf "%.0f\n", 1e9 / $1 }'
}

for ((round = 1; round <= rounds; round++)); do
	echo "round $round of $rounds" >&2
	record rtt tcp "$(once "")"
	for mode in $modes; do
		record rtt $mode "$(once "env SHUNT_TUNE=${SHUNT_TUNE-},poll=$mode $shunt_run")"
	done
done
kill "${burners[@]}"

printf '%-10s %14s\n' mode "round trips/s"
for who in tcp $modes; do
	printf '%-10s %14s   %s\n' $who "$(get_median rtt $who)" "$(sort -g "$work/r.rtt.$who" | tr '\n' ' ')"
done
rc=0
adaptive=$(get_median rtt adaptive)
for who in tcp $modes; do
	awk -v a="${adaptive:-0}" -v b="$(get_median rtt $who)" -v l="$limit" 'BEGIN { exit a < b * l }' ||
		{ echo "adaptive is slower than $who"; rc=1; }
done
exit $rc
