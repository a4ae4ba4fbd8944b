#!/bin/bash
# SPDX-License-Identifier: MIT
# nginx with four workers, PostgreSQL with 50 backends and redis with four I/O threads and a child that saves: all at the
# same time under load, with reloads, upgrades and restarts, shunted at both ends. A line a minute for each; TAP. By hand.
#
#	endure.sh [PROGRAM...]
#	ENDURE=600		seconds
set -u
export ENDURE=${ENDURE:-600} CONFIGURATIONS=${CONFIGURATIONS:-both} TABLE="" PATIENCE=${PATIENCE:-200}
apps=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- redis nginx postgresql
tests=0 failed=0 ended=0

while IFS= read -r line; do
	case $line in
	"ok "* | "not ok "*)
		tests=$((tests + 1))
		[ "${line%% *}" = ok ] || failed=$((failed + 1))
		printf '%s %d - %s\n' "${line%% [0-9]*}" $tests "${line#*- }" ;;
	1..*) ended=$((ended + 1)) ;;
	*) printf '%s\n' "$line" ;;
	esac
done < <(for program; do "$apps/run.sh" "$program" & done; wait)
[ $ended = $# ] || failed=$((failed + 1))
echo "1..$tests"
exit $((failed > 0))
