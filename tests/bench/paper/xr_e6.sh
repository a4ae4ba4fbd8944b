#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, case studies: an allocator stall, a slow reader, programs that go deaf or mute, and an incast. Do the tools of
# the table of symptoms of docs/TROUBLESHOOTING.md point to the cause, and without the illness to nothing?
#
#	MS=20 REQUESTS=400 ROUNDS=3 SHOW=1 xr_e6.sh	SHOW: what the tools print for people
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
MS=${MS:-20} REQUESTS=${REQUESTS:-400}
# shellcheck source-path=SCRIPTDIR source=../../findings_cases.sh
. "$(dirname "$0")/../../findings_cases.sh"
# shellcheck disable=SC2154 # of findings_cases.sh
need "$sick" jq
need_shunt

heading "XR-E6 (X-RDMA, case studies): what the tools find" \
	"a stall of the allocator is found by the poll gap, a slow or faulty program by tracing, incast by statistics"

# shellcheck disable=SC2317 # called by name
ok() {
	echo "PASS   $1"
}

# shellcheck disable=SC2317
not_ok() {
	failures=$((failures + 1))
	echo "FAIL   $1"
}

# shellcheck disable=SC2154 # common.sh's
for ((round = 1; round <= rounds; round++)); do
	echo "--- round $round of $rounds"
	for name in stall slow deaf mute incast; do
		"find_$name"
	done
done
not_here "a wire that changes the order of packets, which needs RDMA devices: tests/lab/lab.sh wrong."
exit $((failures > 0))
