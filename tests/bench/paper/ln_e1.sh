#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Figure 1: what acceleration gains over TCP, by the size of the answer. The server
# writes to each cache line of an answer before it sends it (Touch, Write).
#
#	SIZES="4 16 …" ROUNDS=3 LENGTH=0.2 ln_e1.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=ln_common.sh
set -u
LENGTH=${LENGTH:-0.2}
. "$(dirname "$0")/ln_common.sh"
sizes=${SIZES:-$all_sizes}

heading "LN-07 (Limitations, Figure 1): gain over TCP by answer size" \
	"gains and losses, by size; the figure has no numbers"

for ((round = 1; round <= rounds; round++)); do
	ln_record touch "$sizes" --touch tx --touch-op write --side server
done

echo "--- Touch, Write: time of a request in us, medians of $rounds rounds (their standard deviation)"
printf '%6s %16s %16s %9s\n' answer tcp shunt "gain"
echo "size gain" > "$out/ln_e1.dat"
for size in $sizes; do
	t=$(ln_time touch $size tcp) s=$(ln_time touch $size shunt)
	gain=$(awk -v t=$t -v s=$s 'BEGIN { printf "%+.1f", t ? 100 * (1 - s / t) : 0 }')
	printf '%6s %9.2f (%2d %%) %9.2f (%2d %%) %7s %%\n' $size $t "$(ln_spread touch $size tcp)" \
		$s "$(ln_spread touch $size shunt)" $gain
	echo "$size $gain" >> "$out/ln_e1.dat"
done
awk 'NR > 1 && $2 < 0 { printf "slower than TCP: answers of %s by %.1f %%\n", $1, -$2; n++ }
	END { if (!n) print "no size is slower than TCP" }' "$out/ln_e1.dat"
bars ln_e1 "LN-07: time saved over TCP, Touch/Write" "%" "$out/ln_e1.dat" "set yrange [*:*]; set xzeroaxis; unset key"
ln_one_host "the gain is that of one core's copy over the kernel's path."
