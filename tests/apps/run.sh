#!/bin/bash
# SPDX-License-Identifier: MIT
# Real programs, bare and shunted: all of them, or those named. TAP. Their rows go into docs/COMPATIBILITY.md.
#
#	run.sh [PROGRAM...]
#	INSTALL=1		installs the packages that are missing before
#	TABLE=			does not touch docs/COMPATIBILITY.md
#	CONFIGURATIONS="bare both"	see lib.sh
set -u
apps=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$apps/../.." && pwd)
table=${TABLE-$top/docs/COMPATIBILITY.md}
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$apps/../scratch.sh"
scratch apps
export APPS_ROWS=$scratch
all="redis nginx postgresql memcached haproxy python curl node ssh rsync iperf mariadb java cplusplus ruby perl socat stunnel mosquitto erlang qperf apache squid vsftpd samba slapd openmpi go etcd prometheus caddy nats influxdb registry"
tests=0 failed=0

# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $all
[ -z "${INSTALL:-}" ] || "$apps/install.sh" || exit

for program; do
	[ -f "$apps/$program.sh" ] || { echo "Bail out! there is no $apps/$program.sh"; exit 99; }
done

for program; do
	echo "# $program"
	planned=
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			tests=$((tests + 1))
			[ "${line%% *}" = ok ] || failed=$((failed + 1))
			printf '%s %d - %s: %s\n' "${line%% [0-9]*}" $tests "$program" "${line#*- }" ;;
		1..0*)
			planned=1 tests=$((tests + 1))
			echo "ok $tests - $program # SKIP ${line#*SKIP }" ;;
		1..*) planned=1 ;;
		*) printf '%s\n' "$line" ;;
		esac
	done < <(bash "$apps/$program.sh" 2>&1)
	if [ ! "$planned" ]; then
		tests=$((tests + 1)) failed=$((failed + 1))
		echo "not ok $tests - $program: its script comes to its end"
	fi
done
echo "1..$tests"

# Rows of programs that were not run stay as they are.
if [ "$table" ] && [ "${CONFIGURATIONS:-all}" = all ]; then
	python3 "$apps/table.py" "$table" "$APPS_ROWS" "$all" || failed=$((failed + 1))
fi
exit $((failed > 0))
