#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, fragments: how long a small message waits beside sends of 1 MiB on the same lane, by the size of a fragment and
# of the window. The wire is the soft device's model: without one a send is over as soon as it is posted.
#
#	ROUNDS=3 FRAGS="16K 64K 256K 1M" WINDOWS="128K 1M" GBIT=1 TRIPS=400 BULK=1048576 xr_22.sh
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need "$pp"
need_shunt
frags=${FRAGS:-16K 64K 256K 1M} windows=${WINDOWS:-128K 1M}
gbit=${GBIT:-1} trips=${TRIPS:-400} bulk=${BULK:-1048576}

heading "XR-22 (X-RDMA, fragments): a small message beside a bulk sender" \
	"fragments of 64 KB let others in; no figure"

for ((round = 1; round <= rounds; round++)); do
	for window in $windows; do
		for frag in $frags; do
			wrap="env SHUNT_TUNE=${SHUNT_TUNE-},frag=$frag,window=$window SHUNT_SOFT_MODEL=gbit=$gbit $shunt_run"
			read -r _ p50 p99 < <(measure_pp "$wrap" "$wrap" rtt -l -w 500 -n "$trips" -b "$bulk")
			record p50 "$window.$frag" "$((${p50:-0} / 1000))"
			record p99 "$window.$frag" "$((${p99:-0} / 1000))"
		done
	done
done
echo "--- a round trip of 8 bytes beside sends of $bulk bytes, $gbit Gbit/s; us, medians of $rounds rounds"
printf '%-8s %-8s %9s %9s\n' window fragment p50 p99
# shellcheck disable=SC2086 # words
echo "fragment$(printf ' window-%s' $windows)" > "$out/xr_22.dat"
for window in $windows; do
	for frag in $frags; do
		printf '%-8s %-8s %9s %9s\n' "$window" "$frag" "$(get_median p50 "$window.$frag")" "$(get_median p99 "$window.$frag")"
	done
done
for frag in $frags; do
	echo "$frag$(for window in $windows; do echo -n " $(get_median p99 "$window.$frag")"; done)"
done >> "$out/xr_22.dat"
bars xr_22 "XR-22: p99 of a round trip beside sends of $bulk bytes" "us" "$out/xr_22.dat"
not_here "a wire. What is ahead of a message there is what the window lets be in flight; a fragment is its smallest unit."
