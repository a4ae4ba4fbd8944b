#!/bin/bash
# SPDX-License-Identifier: MIT
# Calls that have moved bytes when their thread is cancelled, on the link, with and without polling before a sleep. TAP.
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

partial=${PARTIAL:-$builddir/tests/calls/partial}
need "$partial"
need_shunt

for mode in event adaptive; do
	for call in recv recvmmsg disabled send; do
		SHUNT_TUNE=${SHUNT_TUNE-},poll=$mode SHUNT_STATS=$work/stat timeout 300 $shunt_run "$partial" $call > "$work/out" 2>&1
		status=$?
		check "$call ($mode): $(cat "$work/out")" [ $status = 0 ]
		check "$call ($mode): on the link" grep -q '"upgrades": *[1-9]' "$work/stat"
	done
done
plan
