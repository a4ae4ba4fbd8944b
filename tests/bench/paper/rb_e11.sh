#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 12: throughput of a file system by record size, written and read. Here iperf3 writes blocks of
# that size, and with -R the other end does. tests/lab/guest/blocks.sh has the same over rxe beside rsocket.
#
#	ROUNDS=3 LENGTH=1 BLOCKS="4K 16K …" WAYS="write read" rb_e11.sh	LENGTH: whole seconds
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
LENGTH=${LENGTH:-1}
. "$(dirname "$0")/common.sh"
need iperf3 python3
need_shunt
blocks=${BLOCKS:-4K 8K 16K 32K 64K 128K 256K 512K 1M} ways=${WAYS:-write read}

heading "RB-E11 (RDMAbox, Figure 12): throughput by block size" \
	"a file system (FUSE, IOzone), by record size, against verbs 1.5 to 2.8 times (write) and 2.4 to 4.8 (read),
       UCX 2.1 to 3.1 and 2.7 to 5.6, libfabric 2.2 to 3.7 and 2.8 to 5.9, Accelio 1.1 to 1.6 and 1.2 to 2.6"

# one WHO WRAP WAY BLOCK
one() {
	local back=""
	[ "$3" = write ] || back=-R
	record rate "$3.$4.$1" "$(measure_iperf "$2" "$2" -t "$length" -l "$4" $back)"
}

for ((round = 1; round <= rounds; round++)); do
	for way in $ways; do
		for block in $blocks; do
			one tcp "" $way $block
			one shunt "$shunt_run" $way $block
		done
	done
done

echo "--- Gbit/s at the receiver, medians of $rounds rounds of $length s, with the range of the ratio"
printf '%-6s %6s %9s %9s %7s   %s\n' way block tcp shunt to-tcp "least to most"
for way in $ways; do
	echo "block tcp shunt" > "$out/rb_e11.$way.dat"
	for block in $blocks; do
		t=$(get_median rate $way.$block.tcp) s=$(get_median rate $way.$block.shunt)
		printf '%-6s %6s %9.2f %9.2f %7s   %s\n' $way $block $t $s "$(ratio $s $t)" \
			"$(paste "$work/r.rate.$way.$block.shunt" "$work/r.rate.$way.$block.tcp" |
				awk '{ print $2 ? $1 / $2 : 0 }' | sort -g |
				awk '{ v[NR] = $1 } END { printf "%.2f to %.2f", v[1], v[NR] }')"
		echo "$block $t $s" >> "$out/rb_e11.$way.dat"
	done
	bars rb_e11.$way "RB-E11: iperf3, $way" "Gbit/s" "$out/rb_e11.$way.dat"
done
not_here "the file system, and the wire: bytes pass through memory that both ends share. Over rxe, beside rsocket:
tests/lab/lab.sh blocks."
