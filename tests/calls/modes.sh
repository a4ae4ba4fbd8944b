#!/bin/bash
# SPDX-License-Identifier: MIT
# Every way of batching, admitting and polling through the whole functional suite: the transcripts of
# diff.sh and the checksumming transfers. By hand: about a minute for each way. TAP.
#
#	modes.sh [PATTERN]		of the cases of diff.sh
#	WAYS="poll=busy" modes.sh	which ways: words of SHUNT_TUNE, joined by commas
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

ways=${WAYS:-batch=single batch=merge batch=chain batch=hybrid
	admit=aimd admit=none window=1,window_wr=1 window_device=20000
	poll=event poll=batch poll=hybrid poll=busy poll=adaptive
	lanes=4 lanes=4,cqs=4,rq=64 cqs=4 signal_every=1,chain=1
	inline=256,mr_threshold=0 inline=64,mr_threshold=4K}
need_shunt

# one WAY WHAT COMMAND...
one() {
	local way=$1 what=$2
	shift 2
	if env SHUNT_TUNE="${SHUNT_TUNE-},$way" "$@" > "$work/out" 2>&1; then
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
