#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 9: receiver-not-ready with and without the credits of the seq-ack window.
# In the simulator: 64 streams, one slow reader, rings of 4 KiB, queues of 64; then a lane that does not
# count receives.
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$batch"

heading "XR-E4 (X-RDMA, Figure 9): receiver not ready" "0 with the seq-ack window, 0.91 on average without"

# play TEST FILE
play() {
	"$batch" "$1" > "$work/$2" 2>&1 || {
		cat "$work/$2"
		exit 1
	}
}
play incast_without_rnr with
play without_credit_there_is_rnr without
{
	echo "credits sends wrs rnr"
	echo "counted $(sed -n 's/^incast: \([0-9]*\) sends, \([0-9]*\) WRs, \([0-9]*\) RNR.*/\1 \2 \3/p' "$work/with")"
	echo "ignored $(sed -n 's/^no credit: \([0-9]*\) sends, \([0-9]*\) WRs, \([0-9]*\) RNR.*/\1 \2 \3/p' "$work/without")"
} > "$out/xr_e4.dat"
awk '{ printf "%-10s %8s %8s %8s\n", $1, $2, $3, $4 }' "$out/xr_e4.dat"
sed -n 's/^incast: .*RNR, /it waited instead: /p' "$work/with"
bars xr_e4 "XR-E4: receiver not ready" "number" "$out/xr_e4.dat"
not_here "the paper's rate: it is of production traffic, ours of a schedule that keeps every ring and queue full.
The count has no unit in common with it; that it is none, and that it is not when credits are
ignored, is the result. The control stops at its first RNR, because what follows queues behind it."
