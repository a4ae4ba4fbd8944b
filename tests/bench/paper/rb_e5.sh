#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Table I: total work requests by mode of batching, for a fixed trace.
#
#	ROUNDS=3 REQUESTS=100000 MODEL=connectx3 rb_e5.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$batch" redis-server redis-benchmark python3
need_shunt

heading "RB-E5 (RDMAbox, Table I): total RDMA operations (VoltDB ETC), reads/writes" \
	"single 13.2M/308K, merge 11.5M/272K (preMR); single 13.2M/305K, merge 11M/282K, doorbell 13.2M/307K,
       hybrid 11M/280K (dynMR): merge cuts 12 to 17%, doorbell nothing, hybrid = merge"

# The same sends in every mode, in the simulator: exact.
"$batch" modes_relate 2>&1 | grep '^wr/doorbells' > "$work/trace" || exit 1
echo "--- the simulator's fixed trace: exact, the same each time"
tr ' ' '\n' < "$work/trace" | grep -v : | paste - - | awk '
	{ split($2, n, "/"); if (!single) single = n[1]
	  # ns of the preset connectx3 for the requests themselves: 30 a work request, 100 a doorbell
	  cost = n[1] * 30 + n[2] * 100; if (!first) first = cost
	  printf "%-8s %8d %8d %9.1f%% %14.1f %9.1f%%\n", $1, n[1], n[2], 100 * (n[1] / single - 1), cost / 1000,
		100 * (cost / first - 1) }' |
	{ printf '%-8s %8s %8s %10s %14s %10s\n' mode WRs doorbells "WRs" "modelled us" ""; cat; } |
	tee "$out/rb_e5.sim.dat"

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
not_here "reads beside writes: a stream is pushed, there are no RDMA reads. In real time the trace is the
requests; how many sends wait for the device, and so could be merged, is timing."
