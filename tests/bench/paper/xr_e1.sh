#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 7: latency by size, against the bare device and with tracing. Here Shunt over the soft device beside
# that device alone and TCP; tests/lab/guest/sizes.sh has the same over rxe beside ibv_rc_pingpong.
#
#	ROUNDS=3 SIZES="1 2 4 …" TRIPS=20000 TCP_TRIPS=2000 xr_e1.sh	TRIPS: of a measurement
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
bare=$builddir/tests/bench/soft_pingpong
# shellcheck disable=SC2154 # measure.sh's
need "$pp" "$bare"
need_shunt
sizes=${SIZES:-1 2 4 8 16 32 64 128 256 512 1024 2048 4096 8192 16384 32768 65536}
trips=${TRIPS:-20000} tcp_trips=${TCP_TRIPS:-2000}

heading "XR-E1 (X-RDMA, Figure 7): latency by size" \
	"at most 10 % above ibv_rc_pingpong on average: 5.60 us, with ucx-am-rc 5.87 and libfabric 6.20; traced requests 2 to
       4 % slower, about 200 ns; large messages in two steps 40 % slower below 128 bytes, then less than 10 %"

# one WHO WRAP TRIPS SIZE
one() {
	record ns "$4.$1" "$(measure_pp "$2" "$2" rtt -w 60 -n "$3" -s "$4")"
}

for ((round = 1; round <= rounds; round++)); do
	while read -r size ns; do
		record ns "$size.bare" "$ns"
	done < <("$bare" sizes "$trips" $sizes)
	for size in $sizes; do
		one tcp "" "$tcp_trips" $size
		one shunt "$shunt_run" "$trips" $size
		one traced "env SHUNT_TRACE=0 $shunt_run" "$trips" $size
	done
done

echo "--- round trips, us, medians of $rounds rounds; traced: SHUNT_TRACE=0, every send"
printf '%7s %9s %9s %9s %9s | %9s %9s %9s\n' bytes tcp "device" shunt traced "to device" traced "to tcp"
echo "bytes tcp device shunt traced" > "$out/xr_e1.dat"
for size in $sizes; do
	t=$(get_median ns $size.tcp) b=$(get_median ns $size.bare) s=$(get_median ns $size.shunt) r=$(get_median ns $size.traced)
	echo "$size $t $b $s $r" >> "$out/xr_e1.dat"
done
awk 'NR > 1 { printf "%7d %9.2f %9.2f %9.2f %9.2f | %8.2fx %+8.0f%% %9.4f\n", $1, $2 / 1e3, $3 / 1e3, $4 / 1e3, $5 / 1e3,
		$4 / $3, 100 * ($5 / $4 - 1), $4 / $2
		shunt += log($4 / $3); traced += log($5 / $4); n++ }
	END { if (n) printf "\nover all sizes (geometric): Shunt %.2f times the device alone, traced %+.0f%%\n", exp(shunt / n),
		100 * (exp(traced / n) - 1) }' "$out/xr_e1.dat"
draw xr_e1 << END
set title "XR-E1: round trips by size" noenhanced
set xlabel "bytes"; set ylabel "us"
set logscale x 2; set logscale y
plot '$out/xr_e1.dat' using 1:(\$2 / 1000) with linespoints lw 2 title "TCP", \
	'' using 1:(\$5 / 1000) with linespoints lw 1 title "Shunt, traced", \
	'' using 1:(\$4 / 1000) with linespoints lw 2 title "Shunt", \
	'' using 1:(\$3 / 1000) with linespoints lw 2 dt 2 title "device alone"
END
not_here "an RNIC, messages in two steps (Shunt has none), UCX and libfabric. Over rxe, beside ibv_rc_pingpong:
tests/lab/lab.sh sizes."
