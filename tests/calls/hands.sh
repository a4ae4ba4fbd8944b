#!/bin/bash
# SPDX-License-Identifier: MIT
# Connections that change hands: by exec, by SCM_RIGHTS, from a relative. They come to the link in the process that has
# them at last, and every byte is checked. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

hands=${HANDS:-$builddir/tests/calls/hands}
need "$hands" jq
need_shunt
with_shunt=(env "LD_PRELOAD=$builddir/.libs/libshunt.so")

# serving WRAP MODE COMMAND...: a server whose standard input ends with `let_go`.
serving() {
	local wrap=$1
	shift
	rm -f "$work"/{fifo,held,stat.*}
	mkfifo "$work/fifo" "$work/held"
	SHUNT_STATS=$work/stat.%p $wrap "$hands" server "$@" < "$work/held" > "$work/fifo" 2> "$work/server.err" &
	server=$!
	children+=("$server")
	exec {held}> "$work/held"
	exec {said}< "$work/fifo"
	read -r _ port <&"$said"
}

let_go() {
	exec {held}>&-
}

# asking [exec]: a client that sends and checks until `enough`.
asking() {
	rm -f "$work/stop"
	mkfifo "$work/stop"
	$shunt_run "$hands" client "$port" "$@" < "$work/stop" > "$work/client.out" {held}>&- {said}<&- &
	client=$!
	children+=("$client")
	exec {stop}> "$work/stop"
}

state() { # EXPRESSION
	"$builddir/tools/shunt" stat --json "$client" 2> /dev/null | jq -r "(.[0].streams // [])[0] | $1"
}

on_link() {
	[ "$(state '.tx.track == "link" and .rx.track == "link"')" = true ]
}

has_more() { # TRACK BYTES
	[ "$(state ".tx.$1 + .rx.$1")" -gt "$2" ] 2> /dev/null
}

# It is on the link, and from now on no byte goes by TCP.
linked() {
	local tcp link
	within on_link || {
		echo "# $(state '{state, reason, tx, rx}' | jq -c .)"
		return 1
	}
	link=$(state '.tx.link + .rx.link')
	tcp=$(state '.tx.tcp + .rx.tcp')
	within has_more link $((link + 10000000)) && [ "$(state '.tx.tcp + .rx.tcp')" = "$tcp" ]
}

# Every byte has come back.
enough() {
	local rc=0
	exec {stop}>&-
	let_go
	wait "$client" || rc=1
	wait "$server" || rc=1
	exec {said}<&-
	grep -q '^checked [1-9]' "$work/client.out" || {
		sed 's/^/# /' "$work/client.out" "$work/server.err"
		return 1
	}
	return $rc
}

comes() {
	serving "$@"
	asking
	linked && enough
}

check "accept, fork, exec: as standard input and output" comes "$shunt_run" standard cat
check "the same, and stdio reads and writes there" comes "$shunt_run" standard "$hands" stdio
check "passed to another program" comes "$shunt_run" pass "$hands"
check "who accepts has no Shunt: by exec" comes "" standard "${with_shunt[@]}" "$hands" echo
check "who accepts has no Shunt: by SCM_RIGHTS" comes "" pass "${with_shunt[@]}" "$hands"

# returned TIMES: it has come to the link so often, and is there.
returned() {
	[ "$("$builddir/tools/shunt" stat --json "$client" 2> /dev/null | jq '.[0].counters.upgrades')" -ge "$1" ] 2> /dev/null && on_link
}

server_execs() {
	serving "$shunt_run" exec
	asking
	within returned 3 && enough
}

client_execs() {
	serving "$shunt_run" standard cat
	asking exec
	for _ in 1 2 3; do
		within on_link && within off_link || return
	done
	enough
}

off_link() {
	! on_link
}

# A new holder before each megabyte.
holders_come_and_go() {
	serving "$shunt_run" fork
	asking
	linked && enough
}

check "the server executes itself again and again: it comes back each time" server_execs
check "the client executes itself again and again" client_execs
check "a relative holds it for a while, again and again" holders_come_and_go

# The server keeps its copy, and lets go of it.
is_left() {
	[ "$(state .state)" = plain ]
}

kept() {
	serving "$1" keep ${2-} "$hands" echo
	asking
	within has_more tcp 200000000 || return
	! on_link && enough
}

let_go_early() {
	serving "$shunt_run" keep "$hands" echo
	asking
	within has_more tcp 300000 || return
	let_go
	linked && enough
}

check "who has accepted keeps it: TCP" kept "$shunt_run"
check "the same without Shunt: TCP" kept "" "${with_shunt[*]}"
check "who has accepted keeps it for a while: on the link after that" let_go_early

# A hidden holder writes past the link: nobody gets a wrong byte.
intruded() {
	serving "$1" hide ${2-} "$hands" echo
	asking
	within on_link || return
	let_go
	wait "$client"
	exec {stop}>&- {said}<&-
	wait "$server"
	! grep -q wrong "$work/client.out" && grep -q '^ended early: \(Connection reset\|Broken pipe\)' "$work/client.out"
}

check "a hidden holder writes: the stream ends, and no byte is wrong" intruded "$shunt_run"
check "the same, and it has no Shunt" intruded "" "${with_shunt[*]}"

# systemd's own program for services with Accept=yes.
activated() {
	local activate
	activate=$(type -P systemd-socket-activate) || return
	port=$(free_port)
	"$activate" -a --inetd -l "127.0.0.1:$port" -E "LD_PRELOAD=$builddir/.libs/libshunt.so" "$@" 2> "$work/server.err" &
	server=$!
	children+=("$server")
	wait_port "$port" || return
	asking
	linked || return
	exec {stop}>&-
	wait "$client"
	grep -q '^checked [1-9]' "$work/client.out" || return
	kill "$server"
	wait "$server" 2> /dev/null
	return 0
}

if type -P systemd-socket-activate > /dev/null; then
	check "systemd-socket-activate --inetd" activated "$(type -P cat)"
else
	skip "systemd-socket-activate --inetd" "it is not installed"
fi
plan
