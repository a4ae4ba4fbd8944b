#!/bin/bash
# SPDX-License-Identifier: MIT
# One iperf3 stream over paths of a given rate and delay, as the soft device's cost model has them: with a stage that does
# not grow (SHUNT_TUNE=stage_max=64K), and with one that does. No machine between hosts is needed for it, and no TCP can be
# measured beside it: tests/lab/pair/delays.sh does that.
#
#	ROUNDS=3 GBIT=4 DELAYS="0 100 1000 2000 5000" path.sh	delays of one way in microseconds
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-3}
gbit=${GBIT:-4}
delays=${DELAYS:-0 100 1000 2000 5000}
need iperf3 python3
need_shunt

# between hosts: bytes are kept until they have arrived, and the device fetches what is long
path_of() { # DELAY STAGE-MAX
	echo "env SHUNT_TUNE=${SHUNT_TUNE-},retain=always,inline=256,slow_ms=0,dead_ms=10000,stage_max=$2" \
		"SHUNT_SOFT_MODEL=delay=$(($1 * 1000)),gbit=$gbit $shunt_run"
}

for ((round = 1; round <= rounds; round++)); do
	for delay in $delays; do
		for most in 64K 4M; do
			wrap=$(path_of "$delay" $most)
			echo "round $round of $rounds: $delay us, $most" >&2
			record "$delay" $most "$(measure_iperf "$wrap" "$wrap" -l 128K -t 2)"
		done
	done
done

printf '%8s %10s %10s %7s\n' us "64 KiB" grows times
for delay in $delays; do
	small=$(get_median "$delay" 64K) large=$(get_median "$delay" 4M)
	printf '%8s %10s %10s %7s\n' "$delay" "$small" "$large" "$(ratio "$large" "$small")"
done
echo "Gbit/s at the receiver; the path has $gbit"
say_stolen
