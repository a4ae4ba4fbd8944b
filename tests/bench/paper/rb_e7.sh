#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 8: admission control, with 4 QPs. First without a window, then with what was in flight at the peak;
# beside them one QP, whose peak is Figure 1's. In virtual time on the cost model: the same each time, however fast
# the machine is.
#
# The windows are the engine's (core/lane/window.c): a limit for the device, and SHUNT_TUNE=admit=aimd, which finds one by itself.
#
#	THREADS=12 MODEL=connectx3,qp=1240 QPS=4 THINK=5000 ADAPT=1048576 rb_e7.sh	ADAPT: window, with aimd
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
MODEL=${MODEL:-connectx3,qp=1240}
. "$(dirname "$0")/common.sh"
need "$model_iops"
qps=${QPS:-4}
threads=${THREADS:-12}
think=${THINK:-5000}
adapt=${ADAPT:-1048576}

# iops QPS OPTIONS...
iops() {
	local count=$1
	shift
	"$model_iops" --threads "$threads" --model "$model" --think "$think" --qps "$count" "$@"
}

heading "RB-E7 (RDMAbox, Figure 8): admission control" \
	"4 QPs: peak at 7 threads (1 QP: at 4); window = bytes in flight at the peak, about 7 MB; peak IOPS +29.9%; in flight flat"

iops 1 | iops_table open > "$out/rb_e7.one.dat"
iops "$qps" --adapt "$adapt" > "$work/both"
iops_table open < "$work/both" > "$out/rb_e7.open.dat"
iops_table window < "$work/both" > "$out/rb_e7.window.dat"
iops_table adapted < "$work/both" > "$out/rb_e7.adapted.dat"
window=$(awk '/^window/ { print $3 }' "$work/both")
iops_beside "$out/rb_e7.open.dat" "$out/rb_e7.window.dat" | LC_ALL=C sort -k1,1 |
	LC_ALL=C join - <(LC_ALL=C sort -k1,1 "$out/rb_e7.adapted.dat") | sort -g |
	paste -d ' ' - <(cut -d ' ' -f 2 "$out/rb_e7.one.dat") | awk -v w="$window" -v q="$qps" '
	BEGIN { printf "%7s | %7s | %7s %9s %8s | %7s %9s %8s %7s | %7s %9s %8s %7s\n", "threads", "kIOPS", "kIOPS", "in flight", "mean us",
			"kIOPS", "in flight", "mean us", "gain", "kIOPS", "in flight", "mean us", "gain"
		printf "%7s | %7s | %26s | %34s | %34s\n", "", "1 QP", q " QPs, no window", "window of " w " bytes", "aimd" }
	{ printf "%7d | %7.1f | %7.1f %9d %8.2f | %7.1f %9d %8.2f %+6.1f%% | %7.1f %9d %8.2f %+6.1f%%\n", $1, $NF, $2, $3, $5, $8, $9, $11,
		100 * ($8 / $2 - 1), $14, $15, $17, 100 * ($14 / $2 - 1) }'

echo
awk 'FNR == 1 { file++ } $2 > best[file] { best[file] = $2; at[file] = $1 } { last[file] = $2 }
	END { printf "%-32s %12s %12s\n", "", "paper", "here"
		printf "%-32s %12s %12s\n", "peak with 1 QP, threads", "4 (Fig. 1)", at[1]
		printf "%-32s %12s %12s\n", "peak with 4 QPs, threads", "7", at[2]
		printf "%-32s %12s %+11.1f%%\n", "most threads, against the peak", "falls", 100 * (last[2] / best[2] - 1)
		printf "%-32s %12s %+11.1f%%\n", "the same with the window", "stays", 100 * (last[3] / best[2] - 1)
		printf "%-32s %12s %+11.1f%%\n", "the window, highest of all rates", "+29.9%", 100 * (best[3] / best[2] - 1)
		printf "%-32s %12s %+11.1f%%\n", "the window, at most threads", "", 100 * (last[3] / last[2] - 1)
		printf "%-32s %12s %+11.1f%%\n", "aimd, highest of all rates", "", 100 * (best[4] / best[2] - 1)
		printf "%-32s %12s %+11.1f%%\n", "aimd, at most threads", "", 100 * (last[4] / last[2] - 1) }' \
	"$out/rb_e7.one.dat" "$out/rb_e7.open.dat" "$out/rb_e7.window.dat" "$out/rb_e7.adapted.dat"
echo
echo "other windows, $threads threads:"
printf '%10s %9s %9s %9s\n' "window" kIOPS "in flight" "mean us"
for w in 4K 8K 16K 64K 256K 512K 1M; do
	iops "$qps" --window "$(numfmt --from=iec $w)" |
		iops_table window |
		awk -v w=$w -v t="$threads" '$1 == t { printf "%10s %9.1f %9d %9.2f\n", w, $2, $3, $5 }'
done | tee "$out/rb_e7.windows.dat"

draw_iops rb_e7 "RB-E7: with and without a window of $window bytes, $qps QPs, model $model" << END
plot '$out/rb_e7.window.dat' using 1:2 with linespoints lw 2 title "kIOPS, window", \
	'$out/rb_e7.adapted.dat' using 1:2 with linespoints lw 2 dt 4 title "kIOPS, aimd", \
	'$out/rb_e7.open.dat' using 1:2 with linespoints lw 2 dt 2 title "kIOPS, none", \
	'$out/rb_e7.one.dat' using 1:2 with linespoints lw 2 dt 3 title "kIOPS, none, 1 QP", \
	'$out/rb_e7.window.dat' using 1:3 axes x1y2 with linespoints lw 1 title "in flight, window", \
	'$out/rb_e7.open.dat' using 1:3 axes x1y2 with linespoints lw 1 dt 2 title "in flight, none"
END
not_here "the 7 MB: that is what one RNIC bears. The peaks lie where they do because a QP's unit (qp) and the threads'
pace (think) were set for it; the fall, and that the window avoids it, is the model's cache."
