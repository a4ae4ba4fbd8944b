#!/bin/bash
# SPDX-License-Identifier: MIT
# Plain and shunted processes on one connection and on one port: not one byte too many. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

peer=${PLAINPEER:-$builddir/tests/calls/plainpeer}
need "$peer"
need_shunt

# start WRAP ARGUMENTS...: something that listens; sets server_pid, server_port and in (its standard output).
start() {
	local wrap=$1
	shift
	rm -f "$work"/rec.* "$work"/talk*
	start_telling $wrap "$peer" "$@" 2>> "$work/err"
}

finish() {
	cat <&"$in" > /dev/null
	exec {in}<&-
	{ wait "$server_pid"; } 2> /dev/null
}

# recorded FIRST LAST: the files hold what the talkers said, exactly.
recorded() {
	local i
	for ((i = $1; i <= $2; i++)); do
		"$peer" expect "$i" | cmp - "$work/rec.$i" || return 1
	done
}

# one LISTENER-WRAP CLIENT-WRAP who-listens(record|talk)
one() {
	if [ "$3" = record ]; then
		start "$1" record listen 4 "$work/rec"
		$2 "$peer" talk "$server_port" 4 > "$work/talk" 2>> "$work/err" || return 1
	else
		start "$1" talk listen 4
		$2 "$peer" record "$server_port" 4 "$work/rec" > "$work/talk" 2>> "$work/err" || return 1
	fi
	finish && recorded 0 3
}

# mix LISTENER-WRAP: two plain and two shunted clients at once, each with three connections.
mix() {
	local pids=() i wrap rc=0
	start "$1" record listen 12 "$work/rec"
	for i in 0 1 2 3; do
		wrap=
		[ $((i % 2)) = 0 ] || wrap=$shunt_run
		$wrap "$peer" talk "$server_port" 3 $((i * 3)) > "$work/talk.$i" 2>> "$work/err" &
		pids+=($!)
		children+=($!)
	done
	for i in "${pids[@]}"; do
		{ wait "$i" || rc=1; } 2> /dev/null
	done
	finish || rc=1
	recorded 0 11 || rc=1
	[ $rc = 0 ] || grep -H . "$work"/talk.* | sed 's/^.*talk/# talker /'
	return $rc
}

says() { # PATTERN: the server's statistics have such a line
	"$builddir/tools/shunt" stat --json "$server_pid" | grep -q -- "$1"
}

# A plain client is told by time alone, while the server only waits for its next bytes; one that has said nothing is not.
told() {
	local used unused byte
	start "$shunt_run" record listen 2 "$work/rec"
	exec {used}<> "/dev/tcp/127.0.0.1/$server_port" {unused}<> "/dev/tcp/127.0.0.1/$server_port"
	within says '"waits_for": "its first byte"' || return
	printf x >&"$used"
	read -rN 1 byte <&"$used" && [ "$byte" = x ] || return
	within says '"reason": "the peer runs without Shunt"' || return
	within says '"waits_for": "its first byte"' || return
	exec {used}<&- {unused}<&-
	finish
}

check "both bare" one "" "" record
check "both shunted" one "$shunt_run" "$shunt_run" record
check "plain recorder listens, shunted talker" one "" "$shunt_run" record
check "shunted talker listens, plain recorder" one "$shunt_run" "" talk
check "shunted recorder listens, plain talker" one "$shunt_run" "" record
check "plain talker listens, shunted recorder" one "" "$shunt_run" talk
check "plain listener, plain and shunted clients at once" mix ""
check "shunted listener, plain and shunted clients at once" mix "$shunt_run"
check "a plain client is told by time alone" told
[ ! -s "$work/err" ] || sed 's/^/# /' "$work/err" | sort | uniq -c | head -5
plan
