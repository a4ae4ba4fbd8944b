#!/bin/bash
# SPDX-License-Identifier: MIT
# Random faults, a sample of them; the long form is `campaign --runs 20000 --seconds 3600`, in the build folder. TAP.
#
#	RUNS=10000 SECONDS_OF=300 SEED=7 campaign.sh	longer, other seeds
#	campaign --runs 1 --seed S --verbose	one seed again, with what Shunt says of it
# shellcheck disable=SC2317
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

campaign=$builddir/tests/fault/campaign
need "$campaign" "$builddir/tests/fault/load" redis-server
need_shunt
sample="--runs ${RUNS:-200} --seconds ${SECONDS_OF:-15} --seed ${SEED:-1} --jobs 2"

bare() {
	SHUNT_ENABLE=0 "$campaign" --runs 100 --seconds 10 --seed "${SEED:-1}" --jobs 2
}
# shellcheck disable=SC2086
shunted() {
	"$campaign" $sample
}
check "bare: what the campaign allows is what the kernel does" bare
check "shunted: no wrong byte, no hang, no leak, no end that is none" shunted
plan
