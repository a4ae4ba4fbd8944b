#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Table I: total work requests by mode of batching, for a fixed trace.
#
#	ROUNDS=3 REQUESTS=100000 MODEL=connectx3 PARTS="sim redis mr" SIZES=4096 MR_BYTES=67108864 rb_e5.sh
#	PARTS: what is run; SIZES, MR_BYTES: of sends, and of all of them, for mr
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$batch" redis-server redis-benchmark python3
need_shunt
parts=" ${PARTS:-sim redis mr} "
sizes=${SIZES:-4096}

heading "RB-E5 (RDMAbox, Table I): total RDMA operations (VoltDB ETC), reads/writes" \
	"single 13.2M/308K, merge 11.5M/272K (preMR); single 13.2M/305K, merge 11M/282K, doorbell 13.2M/307K,
       hybrid 11M/280K (dynMR): merge cuts 12 to 17%, doorbell nothing, hybrid = merge"

part_sim() {
	# The same sends in every mode, in the simulator: exact.
	"$batch" modes_relate > "$work/trace" 2>&1 || exit 1
	echo "--- the simulator's fixed trace: exact, the same each time; carried inline, and fetched out of registered memory"
	printf '%-8s %-8s %8s %8s %10s %14s %10s\n' memory mode WRs doorbells "WRs" "modelled us" ""
	for memory in inline preMR; do
		sed -n "$([ $memory = inline ] && echo 's/^wr.doorbells: //p' || echo 's/^preMR wr.doorbells: //p')" "$work/trace" |
			tr ' ' '\n' | paste - - | awk -v memory=$memory '
			{ split($2, n, "/"); if (!single) single = n[1]
			  # ns of the preset connectx3 for the requests themselves: 30 a work request, 100 a doorbell
			  cost = n[1] * 30 + n[2] * 100; if (!first) first = cost
			  printf "%-8s %-8s %8d %8d %9.1f%% %14.1f %9.1f%%\n", memory, $1, n[1], n[2], 100 * (n[1] / single - 1),
				cost / 1000, 100 * (cost / first - 1) }'
	done | tee "$out/rb_e5.sim.dat"
}

part_redis() {
	redis_rounds $modes $modelled
	echo
	echo "--- redis-benchmark, $pipelined, $requests requests: both ends, medians of $rounds"
	printf '%-8s | %8s %9s %8s | %8s %9s %8s\n' mode WRs doorbells control WRs doorbells control
	printf '%-8s | %27s | %27s\n' "" "no model" "model $model"
	echo "mode WRs doorbells WRs-model doorbells-model" > "$out/rb_e5.dat"
	for mode in $modes; do
		printf '%-8s | %8.0f %9.0f %8.0f | %8.0f %9.0f %8.0f\n' $mode "$(get_median wr $mode)" \
			"$(get_median bell $mode)" "$(get_median control $mode)" "$(get_median wr m-$mode)" \
			"$(get_median bell m-$mode)" "$(get_median control m-$mode)"
		echo "$mode $(get_median wr $mode) $(get_median bell $mode) $(get_median wr m-$mode)" \
			"$(get_median bell m-$mode)" >> "$out/rb_e5.dat"
	done
	bars rb_e5 "RB-E5: total for $requests requests of redis" "number" "$out/rb_e5.dat"
}

part_mr() {
	mr_rounds $sizes
	echo
	echo "--- $((mr_bytes >> 20)) MiB of blocking sends by 4 threads: both ends, medians of $rounds"
	printf '%7s %-8s | %s | %s\n' bytes mode "$(printf ' %8s %8s %8s' WRs bells regs WRs bells regs)" \
		"$(printf ' %8s %8s %8s' WRs bells regs WRs bells regs)"
	printf '%16s |  %-26s %-27s | %-26s %-26s\n' "" preMR dynMR "preMR, model" "dynMR, model"
	for bytes in $sizes; do
		for mode in $modes; do
			line=""
			for modelled in real model; do
				for mr in $mrs; do
					who=$mr.$modelled.$bytes.$mode
					line+=$(printf ' %8.0f %8.0f %8.0f' "$(get_median wr $who)" "$(get_median bell $who)" "$(get_median pins $who)")
				done
				[ $modelled = model ] || line+="  |"
			done
			printf '%7s %-8s | %s\n' $bytes $mode "$line"
		done
	done | tee "$out/rb_e5.mr.dat"
}

for part in sim redis mr; do
	[[ $parts != *" $part "* ]] || part_$part
done
not_here "reads beside writes: a stream is pushed, there are no RDMA reads. In real time the trace is the
requests; how many sends wait for the device, and so could be merged, is timing."
