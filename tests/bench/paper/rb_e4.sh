#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 6: the modes of batching under small sends and under pipelined redis, in real time and
# with the cost model.
#
#	ROUNDS=3 LENGTH=0.3 REQUESTS=100000 MODEL=connectx3 rb_e4.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
LENGTH=${LENGTH:-0.3}
. "$(dirname "$0")/common.sh"
need redis-server redis-benchmark python3
need_shunt
parts=" ${PARTS:-perf redis mr} "
sizes=${SIZES:-4096 131072}

heading "RB-E4 (RDMAbox, Figure 6): batching compared (VoltDB and YCSB over remote paging)" \
	"over single: merge +23.6 to 24.4% (preMR), +11.2 to 11.5% (dynMR); hybrid +22.2 to 47.7%, +15.7 to 40.5%
       over doorbell batching: hybrid +10.8 to 22.2%, +7.5 to 13.4%; doorbell slightly below merge"

part_perf() {
	loads="stream:64 stream:1K flow:64:32:0:8"
	columns="ops/s=operations_per_second wr/op=wr/op bells/op=doorbells/op bytes/wr=bytes_per_wr link=link_share"
	perf_modes rb_e4 "" $loads
	perf_modes rb_e4.model ",SHUNT_SOFT_MODEL=$model" $loads
	echo "--- without a model"
	perf_table rb_e4 $columns | to_single 3 to-single
	echo
	echo "--- with the model $model on every end"
	perf_table rb_e4.model $columns | to_single 3 to-single
	bars rb_e4 "RB-E4: by mode, without a model" "operations/s" "$(perf_grid rb_e4 operations_per_second)" "set logscale y; set yrange [*:*]"
	bars rb_e4.model "RB-E4: by mode, model $model" "operations/s" "$(perf_grid rb_e4.model operations_per_second)" "set logscale y; set yrange [*:*]"
}

part_redis() {
	redis_rounds tcp $modes $modelled
	echo
	echo "--- redis-benchmark, $pipelined, $requests requests"
	printf '%-10s %12s %9s | %12s %9s\n' mode requests/s to-single "with model" to-single
	printf '%-10s %12s %9s |\n' tcp "$(get_median rps tcp)" -
	echo "mode real model" > "$out/rb_e4.redis.dat"
	for mode in $modes; do
		real=$(get_median rps $mode) slow=$(get_median rps m-$mode)
		printf '%-10s %12s %9s | %12s %9s\n' $mode "$real" "$(ratio "$real" "$(get_median rps single)")" \
			"$slow" "$(ratio "$slow" "$(get_median rps m-single)")"
		echo "$mode $real $slow" >> "$out/rb_e4.redis.dat"
	done
	bars rb_e4.redis "RB-E4: redis, SET, pipeline 16" "requests/s" "$out/rb_e4.redis.dat"
}

part_mr() {
	mr_rounds $sizes
	echo
	echo "--- blocking sends by 4 threads, $((mr_bytes >> 20)) MiB in all: MB/s; the device fetches them out of registered memory (preMR)"
	echo "    or where they are, registered for the send (dynMR)"
	printf '%7s %-8s | %8s %7s %8s %7s | %8s %7s %8s %7s\n' bytes mode preMR to-sgl dynMR to-sgl preMR to-sgl dynMR to-sgl
	printf '%16s | %33s | %33s\n' "" "no model" "model $model"
	echo "load preMR dynMR preMR-model dynMR-model" > "$out/rb_e4.mr.dat"
	for bytes in $sizes; do
		for mode in $modes; do
			line="" data=$bytes/$mode
			for modelled in real model; do
				for mr in $mrs; do
					r=$(get_median rate $mr.$modelled.$bytes.$mode)
					line+=$(printf ' %8.0f %7s' $r "$(ratio $r "$(get_median rate $mr.$modelled.$bytes.single)")")
					data+=" $r"
				done
				[ $modelled = model ] || line+=" |"
			done
			printf '%7s %-8s |%s\n' $bytes $mode "$line"
			echo "$data" >> "$out/rb_e4.mr.dat"
		done
	done
	bars rb_e4.mr "RB-E4: copied into registered memory, and registered" "MB/s" "$out/rb_e4.mr.dat" "set xtics rotate by -25"
}

for part in perf redis mr; do
	[[ $parts != *" $part "* ]] || part_$part
done
not_here "the applications (remote paging with VoltDB), and what a doorbell and a registration cost: here they are
a store to shared memory and an entry of a table. The gain of the paper is that of an RNIC; under the model it is the model's."
