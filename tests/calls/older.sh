#!/bin/bash
# Waits in epoll sets agree with the bare kernel's also where that lacks what Shunt would use. TAP of diff.sh, twice.
set -u

# shellcheck source-path=SCRIPTDIR source=where.sh
. "$(dirname "$0")/where.sh"
lacking=$builddir/tests/calls/lacking
failed=0
for how in enosys eperm; do
	if ! "$lacking" $how true; then
		echo "1..0 # SKIP no system calls can be refused here"
		exit 77
	fi
	RUN_SHUNT="$lacking $how $shunt_run" PASSES="cold warm" "$(dirname "$0")/diff.sh" '^(epoll|timeout)_' || failed=1
done
exit $failed
