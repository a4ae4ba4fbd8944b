#!/bin/bash
# RDMAbox, Figure 8: admission control. First without a window, then with what was in flight at the peak.
# In virtual time on the cost model: the same each time, however fast the machine is.
#
#	THREADS=12 MODEL=connectx3 QPS=4 rb_e7.sh
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$model_iops"
qps=${QPS:-4}
threads=${THREADS:-12}

heading "RB-E7 (RDMAbox, Figure 8): admission control" \
	"4 QPs: peak at 7 threads; window = bytes in flight at the peak, about 7 MB; peak IOPS +29.9%; in flight flat"

"$model_iops" --threads "$threads" --model "$model" --qps "$qps" > "$work/both"
iops_table open < "$work/both" > "$out/rb_e7.open.dat"
iops_table window < "$work/both" > "$out/rb_e7.window.dat"
window=$(awk '/^window/ { print $3 }' "$work/both")
iops_beside "$out/rb_e7.open.dat" "$out/rb_e7.window.dat" | awk -v w="$window" '
	BEGIN { printf "%7s | %9s %9s %9s | %9s %9s %9s | %7s\n", "threads", "kIOPS", "in flight", "mean us",
			"kIOPS", "in flight", "mean us", "gain"
		printf "%7s | %29s | %29s |\n", "", "no window", "window of " w " bytes" }
	{ printf "%7d | %9.1f %9d %9.2f | %9.1f %9d %9.2f | %+6.1f%%\n", $1, $2, $3, $5, $8, $9, $11,
		100 * ($8 / $2 - 1) }'

awk 'FNR == 1 { file++ } $2 > best[file] { best[file] = $2; at[file] = $1 } { last[file] = $2 }
	END { printf "peak: %.1f at %d threads without, %.1f with the window: %+.1f%%\n", best[1], at[1], best[2],
		100 * (best[2] / best[1] - 1) }' "$out/rb_e7.open.dat" "$out/rb_e7.window.dat"
echo
echo "other windows, $threads threads:"
printf '%10s %9s %9s %9s\n' "window" kIOPS "in flight" "mean us"
for w in 4K 8K 16K 64K 256K 512K 1M; do
	"$model_iops" --threads "$threads" --model "$model" --qps "$qps" --window "$(numfmt --from=iec $w)" |
		iops_table window |
		awk -v w=$w -v t="$threads" '$1 == t { printf "%10s %9.1f %9d %9.2f\n", w, $2, $3, $5 }'
done | tee "$out/rb_e7.windows.dat"

draw_iops rb_e7 "RB-E7: with and without a window of $window bytes, $qps QPs, model $model" << END
plot '$out/rb_e7.window.dat' using 1:2 with linespoints lw 2 title "kIOPS, window", \
	'$out/rb_e7.open.dat' using 1:2 with linespoints lw 2 dt 2 title "kIOPS, none", \
	'$out/rb_e7.window.dat' using 1:3 axes x1y2 with linespoints lw 1 title "in flight, window", \
	'$out/rb_e7.open.dat' using 1:3 axes x1y2 with linespoints lw 1 dt 2 title "in flight, none"
END
not_here "the move of the peak from 4 to 7 threads with 4 QPs: the model has one pipeline a device, however many
QPs there are. Nor the 7 MB: that is what one RNIC bears. The gain is that of the model's penalty."
