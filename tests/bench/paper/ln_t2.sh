#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Table 2: the processor, with the latency of each level of its memory, by a chase
# of pointers (tests/bench/chase).
#
#	MS=100 SETS="BYTES …" ln_t2.sh	MS: of a measurement
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
chase=$builddir/tests/bench/chase
need "$chase"

heading "LN-15 (Limitations, Table 2): the processor" \
	"Xeon E7520, 4 x 1.8 GHz; L1 64 KB 2.1 ns, L2 256 KB 5.3 ns, LLC 18 MB 22.7 ns, DRAM 131 ns; next-line prefetcher"

"$chase" "${MS:-100}" ${SETS:-} > "$work/chase" || exit 1
grep -v cache "$work/chase" > "$out/ln_t2.dat"
echo "processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) of them here; kernel $(uname -r)"
awk '$1 == "cache" && $3 != "Instruction" { printf "cache: L%s %d KB, %s ways, lines of %s bytes\n", $2, $4 / 1024, $5, $6 }' "$work/chase"
echo
printf '%12s %14s %14s\n' "bytes in use" "random, ns" "in order, ns"
awk '{ printf "%12d %14.2f %14.2f\n", $1, $2, $3 }' "$out/ln_t2.dat"
echo
echo "by level: the largest set that is at most a quarter of a cache, and the largest of all for DRAM"
awk '$1 == "cache" { if ($3 != "Instruction") size[$2] = $4; next }
	{ for (l in size) if ($1 <= size[l] / 4 && $1 >= most[l]) { most[l] = $1; ns[l] = $2 }
	  if (2 * size[3] < $1 && 2 * size[2] < $1) { dram = $2 } }
	END { for (l = 1; l <= 4; l++) if (l in ns) printf "%-6s %8.2f ns\n", "L" l, ns[l]
		if (dram) printf "%-6s %8.2f ns\n", "DRAM", dram }' "$work/chase"
draw ln_t2 << END
set title "LN-15: a load by how much memory is in use" noenhanced
set xlabel "bytes"; set ylabel "ns"; set logscale x 2; set logscale y; set format x "%.0b%B"
plot '$out/ln_t2.dat' using 1:2 with linespoints lw 2 title "random", \
	'$out/ln_t2.dat' using 1:3 with linespoints lw 2 dt 2 title "in order"
END
not_here "the prefetcher's switch, and the clock's rate: a virtual machine shows what its host lets it see."
