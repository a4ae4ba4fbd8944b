#!/bin/bash
# SPDX-License-Identifier: MIT
# A shunted process and a plain peer: connect latency and throughput against plain TCP, in turns.
#
#	ROUNDS=7 LIMIT=0.97 plain.sh
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-7}
limit=${LIMIT:-0.97}
need "$pp" iperf3 python3
need_shunt

for ((round = 1; round <= rounds; round++)); do
	for who in tcp client server; do
		s='' c=''
		[ $who != client ] || c=$shunt_run
		[ $who != server ] || s=$shunt_run
		echo "round $round of $rounds: $who" >&2
		record iperf $who "$(measure_iperf "$s" "$c" -l 128K -t 2)"
		record small $who "$(measure_iperf "$s" "$c" -l 4K -t 2)"
		record rtt $who "$(measure_pp "$s" "$c" rtt -n 20000)"
		record connect $who "$(measure_pp "$s" "$c" connect -n 2000)"
	done
done

rc=0
printf '%-9s %12s %16s %7s %16s %7s\n' workload "plain" "shunted client" times "shunted server" times
for w in iperf small rtt connect; do
	t=$(get_median $w tcp) c=$(get_median $w client) s=$(get_median $w server)
	case $w in
	iperf | small) rcl=$(ratio "$c" "$t") rs=$(ratio "$s" "$t") ;;
	*) rcl=$(ratio "$t" "$c") rs=$(ratio "$t" "$s") ;;
	esac
	printf '%-9s %12s %16s %7s %16s %7s\n' $w "$t" "$c" "$rcl" "$s" "$rs"
	awk -v a="$rcl" -v b="$rs" -v l="$limit" 'BEGIN { exit a < l || b < l }' || rc=1
done
echo "iperf, small: Gbit/s; rtt, connect: ns; times: how much better than plain"
exit $rc
