#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Figure 5: what touching the transmit buffer costs, by its size.
#
#	SIZES="4 16 …" SCANS="write read" ROUNDS=3 LENGTH=0.2 ln_e5.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=ln_common.sh
set -u
LENGTH=${LENGTH:-0.2}
. "$(dirname "$0")/ln_common.sh"
sizes=${SIZES:-$all_sizes} scans=${SCANS:-write read}

heading "LN-10 (Limitations, Figure 5): loss by touching, by size" \
	"small for small answers, largest from 4 to 256 KB, hidden by the wire beyond; 56.6 and 14.5 % at 256 KB"

for ((round = 1; round <= rounds; round++)); do
	for scan in $scans; do
		ln_record $scan.dummy "$sizes" --touch dummy --touch-op $scan --side server
		ln_record $scan.tx "$sizes" --touch tx --touch-op $scan --side server
	done
done

for scan in $scans; do
	echo "--- $scan scan: us, medians of $rounds rounds (their standard deviation)"
	printf '%6s | %15s %15s %9s | %15s %15s %9s\n' answer "tcp, NoTouch" Touch loss "shunt, NoTouch" Touch loss
	echo "size tcp shunt" > "$out/ln_e5.$scan.dat"
	for size in $sizes; do
		line="" data=$size
		for transport in tcp shunt; do
			a=$(ln_time $scan.dummy $size $transport) b=$(ln_time $scan.tx $size $transport)
			line+=$(printf ' | %8.2f (%2d %%) %8.2f (%2d %%) %7s %%' $a "$(ln_spread $scan.dummy $size $transport)" \
				$b "$(ln_spread $scan.tx $size $transport)" "$(more $a $b)")
			data+=" $(more $a $b)"
		done
		printf '%6s%s\n' $size "$line"
		echo "$data" >> "$out/ln_e5.$scan.dat"
	done
	bars ln_e5.$scan "LN-10: time lost by touching, $scan scan" "%" "$out/ln_e5.$scan.dat" "set yrange [*:*]; set xzeroaxis"
	echo
done
ln_one_host "what touching costs is a miss of that copy, not of the card."
