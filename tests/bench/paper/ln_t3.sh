#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Table 3: time of a request with an answer of 256 KB. The server scans the buffer
# that it sends (Touch) or another one (NoTouch); the scan writes or reads one byte of each cache line.
#
#	SIZE=256K ROUNDS=7 LENGTH=0.2 ln_t3.sh
# shellcheck source-path=SCRIPTDIR source=ln_common.sh
set -u
LENGTH=${LENGTH:-0.2} ROUNDS=${ROUNDS:-7}
. "$(dirname "$0")/ln_common.sh"
size=${SIZE:-256K}

heading "LN-08 (Limitations, Table 3): Touch and NoTouch, answers of $size" \
	"write: 300 us NoTouch, 470 us Touch, a loss of 56.6 %; read: 275 us, 315 us, 14.5 %"

for ((round = 1; round <= rounds; round++)); do
	for scan in write read; do
		ln_record $scan.dummy "$size" --touch dummy --touch-op $scan --side server
		ln_record $scan.tx "$size" --touch tx --touch-op $scan --side server
	done
	ln_record none "$size" --buffers reused --side server
done

echo "--- us, medians of $rounds rounds (their standard deviation); a line is one of $(ln_lines "$size") cache lines"
printf '%-6s %-6s %17s %17s %9s %13s\n' "" scan NoTouch Touch loss "ns for a line"
echo "case NoTouch Touch" > "$out/ln_t3.dat"
for transport in tcp shunt; do
	for scan in write read; do
		a=$(ln_time $scan.dummy "$size" $transport) b=$(ln_time $scan.tx "$size" $transport)
		printf '%-6s %-6s %10.2f (%2d %%) %10.2f (%2d %%) %7s %% %13.2f\n' $transport $scan "$a" \
			"$(ln_spread $scan.dummy "$size" $transport)" "$b" "$(ln_spread $scan.tx "$size" $transport)" \
			"$(more "$a" "$b")" "$(awk -v a="$a" -v b="$b" -v n="$(ln_lines "$size")" 'BEGIN { print 1e3 * (b - a) / n }')"
		echo "$transport/$scan $a $b" >> "$out/ln_t3.dat"
	done
	printf '%-6s %-6s %10.2f (%2d %%)\n' $transport "none" "$(ln_time none "$size" $transport)" \
		"$(ln_spread none "$size" $transport)"
done
printf '%-6s %-6s %10s %17s %14s\n' paper write 300 470 "+56.6 %" paper read 275 315 "+14.5 %"
bars ln_t3 "LN-08: answers of $size" "us" "$out/ln_t3.dat"
ln_one_host "so the transmit buffer itself is never in another's cache, and its lines stay where the scan has left them."
