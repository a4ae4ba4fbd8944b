#!/bin/bash
# RDMAbox, Figure 7: the 99th percentile by mode of batching, at low and at high load.
#
#	ROUNDS=5 LENGTH=0.4 REQUESTS=100000 rb_e6.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
ROUNDS=${ROUNDS:-5}
. "$(dirname "$0")/common.sh"
need redis-server redis-benchmark python3
need_shunt
requests=${REQUESTS:-100000}

heading "RB-E6 (RDMAbox, Figure 7): 99th percentile by mode" \
	"merging and chaining do not worsen the application's 99th percentile; figure without numbers"

variants=()
for mode in $modes; do
	variants+=(--variant "$mode=SHUNT_BATCH=$mode")
done
perf rb_e6 --transports tcp "${variants[@]}" pingpong flow:64:16:0:16
for ((round = 1; round <= rounds; round++)); do
	redis_trace tcp "" -t set -c 50 -P 16 -n "$requests"
	for mode in $modes; do
		redis_trace $mode "env SHUNT_BATCH=$mode $shunt_run" -t set -c 50 -P 16 -n "$requests"
	done
done
perf_table rb_e6 ops/s=operations_per_second p50us=p50_us p90us=p90_us p99us=p99_us wr/op=wr/op \
	bells/op=doorbells/op | awk '
	NR == 1 { print $0 "   p99/single"; next }
	$2 == "single" { base = $6 }
	{ printf "%s %12s\n", $0, $2 == "tcp" ? "-" : sprintf("%.2f", base ? $6 / base : 0) }'
echo
echo "--- redis-benchmark, SET, 50 clients, pipeline 16"
printf '%-10s %12s %10s %12s\n' mode requests/s "p99 us" p99/single
for mode in tcp $modes; do
	r=-
	[ $mode = tcp ] || r=$(ratio "$(get_median p99 $mode)" "$(get_median p99 single)")
	printf '%-10s %12s %10.0f %12s\n' $mode "$(get_median rps $mode)" \
		"$(get_median p99 $mode | awk '{ print $1 * 1000 }')" "$r"
done | tee "$out/rb_e6.redis.dat"
bars rb_e6 "RB-E6: 99th percentile by mode" "us" "$(perf_grid rb_e6 p99_us)" "set logscale y; set yrange [*:*]"
not_here "tails of an unshared machine: with two cores for both ends and everything else, p99 moves by tens of
per cent from round to round; equal load is not fixed load, since every mode runs as fast as it can."
