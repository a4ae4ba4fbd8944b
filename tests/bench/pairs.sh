#!/bin/bash
# SPDX-License-Identifier: MIT
# More busy processes than cores: Shunt must not be slower than TCP. Medians of rounds in turns.
#
#	ROUNDS=5 pairs.sh	pairs: four ping-pong pairs of processes; rates: three one-way pairs;
#				burners: one ping-pong pair beside four processes that only compute
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
limit=${LIMIT:-0.95}	# of TCP's figure, for the noise
need "$pp"
need_shunt

# several WRAP COUNT ARGUMENTS...: so many pairs at once; the mean of what they print.
several() {
	local wrap=$1 count=$2 i servers=() clients=()
	shift 2
	rm -f "$work"/several.*
	for ((i = 0; i < count; i++)); do
		pp_server "$wrap"
		servers+=("$server_pid")
		timeout 300 $wrap "$pp" client "$server_port" "$@" > "$work/several.$i" &
		clients+=($!)
	done
	wait "${clients[@]}" "${servers[@]}"
	cat "$work"/several.* | awk '{ n++; s += $1 } END { if (n) print s / n }'
}

burning() {
	burn 4
	several "$1" 1 rtt -n 3000
	kill "${burners[@]}"
	wait "${burners[@]}" 2> /dev/null
}

for ((round = 1; round <= rounds; round++)); do
	for who in tcp shunt; do
		wrap=
		[ $who = tcp ] || wrap=$shunt_run
		echo "round $round of $rounds: $who" >&2
		record pairs $who "$(several "$wrap" 4 rtt -n 20000)"
		record rates $who "$(several "$wrap" 3 rate -s 64 -n 300000)"
		record burners $who "$(burning "$wrap")"
	done
done

rc=0
printf '%-9s %12s %12s %9s\n' workload tcp shunt "times"
for w in pairs rates burners; do
	t=$(get_median $w tcp) s=$(get_median $w shunt)
	if [ $w = rates ]; then r=$(ratio "$s" "$t"); else r=$(ratio "$t" "$s"); fi
	printf '%-9s %12s %12s %9s\n' $w "$t" "$s" "$r"
	awk -v r="$r" -v l="$limit" 'BEGIN { exit r < l }' || rc=1
done
echo "pairs, burners: ns a round trip; rates: messages/s of a pair; times: how much better Shunt is"
exit $rc
