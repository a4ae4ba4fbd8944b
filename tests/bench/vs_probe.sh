#!/bin/bash
# SPDX-License-Identifier: MIT
# TCP, Shunt and, with PROBE=path/to/probe.so, the probe, in turns: medians and ratios.
#
#	ROUNDS=5 WORKLOADS="c1 c50 p16 i128k i4k rtt rate" vs_probe.sh
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
n=${N:-200000}
workloads=${WORKLOADS:-c1-get c1-set c50-get c50-set p16-get p16-set i128k i4k rtt rate}
need "$pp" redis-server redis-benchmark iperf3 python3
need_shunt
who=(tcp shunt)
[ -z "${PROBE:-}" ] || who+=(probe)

wrap_of() {
	case $1 in
	tcp) ;;
	shunt) echo "$shunt_run" ;;
	probe) echo "env LD_PRELOAD=$PROBE" ;;
	esac
}

workload() {
	local wrap
	wrap=$(wrap_of "$2")
	case $1 in
	c1-*) measure_redis "$wrap" "${1#*-}" -c 1 -n "$n" ;;
	c50-*) measure_redis "$wrap" "${1#*-}" -c 50 -n $((n * 3)) ;;
	p16-*) measure_redis "$wrap" "${1#*-}" -c 50 -P 16 -n $((n * 15)) ;;
	i128k) measure_iperf "$wrap" "$wrap" -l 128K -t 2 ;;
	i4k) measure_iperf "$wrap" "$wrap" -l 4K -t 2 ;;
	rtt) measure_pp "$wrap" "$wrap" rtt -n $((n / 4)) ;;
	rate) measure_pp "$wrap" "$wrap" rate -s 64 -n $((n * 10)) ;;
	esac
}

for ((round = 1; round <= rounds; round++)); do
	for w in $workloads; do
		for x in "${who[@]}"; do
			v=$(workload "$w" "$x")
			echo "round $round of $rounds: $w $x ${v:-failed}" >&2
			record "$w" "$x" "${v:-0}"
		done
	done
done

# better A B W: how many times better A is than B; for round trips less is better.
better() {
	if [ "$3" = rtt ]; then ratio "$2" "$1"; else ratio "$1" "$2"; fi
}

printf '%-9s %14s %14s %14s %11s %11s\n' workload tcp shunt probe shunt/tcp shunt/probe
for w in $workloads; do
	t=$(get_median "$w" tcp) s=$(get_median "$w" shunt) p=- sp=-
	if [ -n "${PROBE:-}" ]; then
		p=$(get_median "$w" probe)
		sp=$(better "$s" "$p" "$w")
	fi
	printf '%-9s %14s %14s %14s %11s %11s\n' "$w" "$t" "$s" "$p" "$(better "$s" "$t" "$w")" "$sp"
done
echo "redis: requests/s; i*: Gbit/s; rtt: ns a round trip of 8 bytes; rate: messages of 64 bytes/s"
say_stolen
