#!/bin/bash
# SPDX-License-Identifier: MIT
# On Limitations of Network Acceleration, Figure 4: hit rates of the last-level cache and transfers between caches, with
# Touch and NoTouch. By the processor's counters, where the machine gives them (tests/bench/counters).
#
#	SIZE=256K LENGTH=0.5 ln_e4.sh
# shellcheck source-path=SCRIPTDIR source=ln_common.sh
set -u
LENGTH=${LENGTH:-0.5} ROUNDS=1
. "$(dirname "$0")/ln_common.sh"
counters=$builddir/tests/bench/counters
need "$counters"
size=${SIZE:-256K}

heading "LN-09 (Limitations, Figure 4): snoop and LLC hit rates" \
	"NoTouch: nearly all accesses hit the LLC, nearly no snoops do; Touch: nearly all snoops hit"

if ! "$counters" | grep -qE '^llc_reads [0-9]'; then
	echo "not measurable here:"
	"$counters" | awk '$2 == "-" { $2 = ""; sub("  ", ": "); print "  " $0 }'
	echo "the processor's counters need a machine that gives them: most virtual ones do not (perf_event_open(2))"
	exit 0
fi

# count CASE TRANSPORT OPTIONS...: the counts of both ends in $work/CASE.TRANSPORT.
count() {
	local file=$work/$1.$2 transport=$2
	shift 2
	"$counters" "$shunt" perf --rounds 1 --seconds "$length" --transports "$transport" "$@" "rr:$question:$size" \
		3> "$file" > "$work/ln.table" 2>&1 || {
		cat "$work/ln.table"
		exit 1
	}
}

echo "--- of both ends, $length s each, answers of $size"
for transport in tcp shunt; do
	for scan in write read; do
		for touch in dummy tx; do
			count $scan.$touch $transport --touch $touch --touch-op $scan --side server
			awk -v name="$transport $scan $touch" '
				$2 == "-" { next }
				$1 == "llc_reads" { reads = $2 }
				$1 == "llc_read_misses" { misses = $2 }
				/\./ { others = others sprintf("  %s %d", $1, $2) }
				END { printf "%-18s LLC hits %6.2f %% of %d%s\n", name, reads ? 100 * (1 - misses / reads) : 0, reads, others }' \
				"$work/$scan.$touch.$transport"
		done
	done
done | tee "$out/ln_e4.dat"
ln_one_host "snoops are those of the other core."
