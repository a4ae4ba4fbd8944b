#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way of batching, admitting and polling through the whole functional suite: the transcripts of
# diff.sh and the checksumming transfers. By hand: about a minute for each way. TAP.
#
#	modes.sh [PATTERN]		of the cases of diff.sh
#	WAYS="SHUNT_POLL=busy" modes.sh	which ways; several variables of one way are joined by commas
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

ways=${WAYS:-SHUNT_BATCH=single SHUNT_BATCH=merge SHUNT_BATCH=chain SHUNT_BATCH=hybrid
	SHUNT_ADMIT=aimd SHUNT_ADMIT=none SHUNT_WINDOW=1,SHUNT_WINDOW_WR=1 SHUNT_WINDOW_DEVICE=20000
	SHUNT_POLL=event SHUNT_POLL=batch SHUNT_POLL=hybrid SHUNT_POLL=busy SHUNT_POLL=adaptive
	SHUNT_LANES=4 SHUNT_LANES=4,SHUNT_CQS=4,SHUNT_RQ=64 SHUNT_CQS=4 SHUNT_SIGNAL_EVERY=1,SHUNT_CHAIN=1
	SHUNT_INLINE=256,SHUNT_MR_THRESHOLD=0 SHUNT_INLINE=64,SHUNT_MR_THRESHOLD=4K}
need_shunt

# one WAY WHAT COMMAND...
one() {
	local way=$1 what=$2
	shift 2
	# shellcheck disable=SC2046 # one word for each variable
	if env $(tr ',' ' ' <<< "$way") "$@" > "$work/out" 2>&1; then
		ok "$way $what ($(grep -E '^# [0-9]+ of' "$work/out" | tail -1 | cut -c3-))"
	else
		not_ok "$way $what"
		grep -v '^not ok .* # TODO ' "$work/out" | grep -A12 "^not ok" | sed "s/^/# /" | head -60
	fi
}

for way in $ways; do
	one "$way" transcripts "$here/diff.sh" "${1:-.}"
	one "$way" transfers "$here/transfer.sh"
done
plan
