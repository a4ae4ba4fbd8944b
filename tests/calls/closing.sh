#!/bin/bash
# SPDX-License-Identifier: MIT
# No connection outlives its close() because it is just being claimed. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

closing=${CLOSING:-$builddir/tests/calls/closing}
need "$closing"
need_shunt

closes() { # COMMAND...: none is late
	"$@" "$closing" "${THREADS:-16}" "${ROUNDS:-1000}" > "$work/out" || return
	sed 's/^/# /' "$work/out"
	grep -q "^[1-9][0-9]* closed, 0 late$" "$work/out"
}

check "bare" closes
# What is used again stays the kernel's behind its close.
export SHUNT_TUNE=${SHUNT_TUNE-},brief=0,born=off SHUNT_STATS=$work/stat
check "shunted, all of them claimed" closes $shunt_run
check "there were claims" grep -q '"claims": *[1-9]' "$work/stat"
plan
