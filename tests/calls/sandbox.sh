#!/bin/bash
# SPDX-License-Identifier: MIT
# A program confines itself while its connection carries bytes on the link: each call, by name and by number, returns what
# it returns bare, no thread of the process stays outside, a thread that comes later is as the others, and every byte of
# the connection comes. The same again with the next connection. TAP.
#
#	sandbox.sh [CALL...]	these alone; "sandbox list" has their names
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

sandbox=${SANDBOX:-$builddir/tests/calls/sandbox}
need "$sandbox"
need_shunt
# LeakSanitizer would have to trace a process that has confined itself, and waits for that for ever.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000	# nobody gives a connection up because the machine is slow

# one WRAP FILE CALL: threads that are equal are one line, and how many serve the next connection is no matter.
one() {
	local in spare rc=0
	rm -f "$work"/stat.*
	SHUNT_STATS=$work/stat.%p start_telling $1 "$sandbox" server "$3" 2> "$2.err"
	SHUNT_STATS=$work/stat.%p $1 "$sandbox" client "$server_port" > "$2.client" 2>> "$2.err" || rc=1
	cat <&"$in" > "$2.server"
	exec {in}<&-
	wait "$server_pid" || rc=1
	case $3 in	# calls that confine a child, or nothing, or that the service thread makes, too: it stays
	clone* | fork | harmless | no_new_privs*) spare='after the call|with the next connection' ;;
	*) spare='with the next connection' ;;
	esac
	uniq "$2.server" | sed -E "s/^($spare): [0-9]+ threads/\1/" | cat - "$2.client" > "$2"
	[ "$(grep -c 'every byte came back' "$2")" = 2 ] || rc=1
	[ $rc = 0 ] || sed 's/^/# /' "$2.err"
	return $rc
}

agrees() { # CALL
	local bare=$work/$1.bare shunted=$work/$1.shunted
	TEST_LINK=0 one "" "$bare" "$1" && TEST_LINK=60000 one "$shunt_run" "$shunted" "$1" || return
	if [ "$(counter upgrades "$work"/stat.*)" = 0 ]; then
		echo "# no connection got to the link: $(jq -c '[.program, .reasons]' "$work"/stat.* | paste -sd ' ')"
		return 1
	fi
	diff "$bare" "$shunted" > "$work/diff" || { sed 's/^/# /' "$work/diff"; return 1; }
}

[ $# -gt 0 ] || mapfile -t calls < <("$sandbox" list)
for call in "${@:-${calls[@]}}"; do
	check "$call" agrees "$call"
done
plan
