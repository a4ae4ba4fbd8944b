#!/bin/bash
# SPDX-License-Identifier: MIT
# Pages of a link's arena (XR-39h, XR-41), in turns: round trips and messages one way, page faults, misses of the data TLB
# and resident memory of the client. Then copies, pinning and locking of memory with such pages, of which registrations
# consist. The soft device has no explicit huge pages, so `huge` is in the second table alone.
#
#	ROUNDS=5 SIZES="64 65536 1048576" pages.sh
#
# Root sets /sys/kernel/mm/transparent_hugepage/shmem_enabled to advise and vm.nr_overcommit_hugepages to 32 first.
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
sizes=${SIZES:-64 65536 1048576}
counters=$builddir/tests/bench/counters
mr_cost=$builddir/tests/bench/mr_cost
need "$pp" "$counters" "$mr_cost"
need_shunt

echo "shared memory: $(cat /sys/kernel/mm/transparent_hugepage/shmem_enabled), anonymous: $(cat /sys/kernel/mm/transparent_hugepage/enabled)"

# one PAGES KIND BYTES: messages for about a second. The figure, and what the client's process counted.
one() {
	local name=$1.$2.$3 count=$((400000000 / ($3 + 8000)))
	local wrap="env SHUNT_TUNE=${SHUNT_TUNE-},pages=$1 $shunt_run"
	record figure "$name" "$(measure_pp "$wrap" "$counters $wrap" "$2" -n "$count" -s "$3" 3> "$work/counted")"
	while read -r event value _; do
		record "$event" "$name" "$value"
	done < "$work/counted"
}

for ((round = 0; round < rounds; round++)); do
	for bytes in $sizes; do
		for kind in rtt rate; do
			for pages in ordinary transparent; do
				one $pages $kind $bytes
			done
		done
	done
done
printf '%-12s %-5s %8s %14s %12s %12s\n' pages kind bytes figure "page faults" "dTLB misses"
for bytes in $sizes; do
	for kind in rtt rate; do
		for pages in ordinary transparent; do
			name=$pages.$kind.$bytes
			printf '%-12s %-5s %8s %14s %12s %12s\n' $pages $kind $bytes "$(get_median figure $name)" \
				"$(get_median page_faults $name)" "$(get_median dtlb_read_misses $name)"
		done
	done
done
echo "rtt: nanoseconds; rate: messages a second"
echo
for pages in ordinary transparent huge; do
	echo "--- $pages: bytes, us of a copy, a cold copy, a registration (soft), pinning, locking"
	"$mr_cost" --pages $pages --rounds 301 65536 1048576 4194304 16777216 2>&1
done
say_stolen
