#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt perf between two machines: one serves a bare and a shunted process, two measures both. Every byte is checked, the
# lines that were touched are counted at both ends, and the shunted bytes go by the device.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000
need jq
need_shunt

measures() { # OPTION… MODEL…
	"$shunt" perf --to "10.78.0.1:$port" --rounds 1 --json "$work/json" "$@" >"$work/said" 2>&1 && return
	cat "$work/said" >&2
	return 1
}

says() { # FILTER
	jq -e "$1" "$work/json" >/dev/null || ! cat "$work/json" >&2
}

ends_well() {
	kill -TERM "$server"
	wait "$server" || ! cat "$work/served" >&2
}

if [ "$lab_self" = one ]; then
	"$shunt" perf --serve "10.78.0.1:$port" >"$work/served" 2>&1 &
	server=$!
	children+=("$server")
	check "two servers listen" within somebody_listens $((port + 1))
	within somebody_listens $port
	meet ready
	meet measured
	check "they end when they are told to" ends_well
else
	meet ready
	check "requests, answers and mixes over TCP and by link" measures --seconds 5 --touch tx rr:64:64K mix:95:5:64:4K:4
	check "each line of each message was touched, and each byte compared" says \
		'[.models[].transports[].rounds[] | .lines_touched > 0 and .bytes_checked > 0] | all'
	check "the shunted bytes went by link" says \
		'[.models[].transports[] | select(.shunted) | .link.share > 0.9] | all'
	check "both machines are named" says '.machine.kernel != "" and (.server.machine | test("Linux"))'
	check "an open loop" measures --seconds 5 --rate 100 rr:64:4K
	check "no latency of it is left out" says \
		'[.models[1].transports[].rounds[].flows[] | .latencies >= 499 and .latencies <= 501] | all'
	meet measured
fi
plan
