#!/bin/bash
# SPDX-License-Identifier: MIT
# Servers of several processes: whoever accepts, the bytes go by the link. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

workers=${WORKERS:-$builddir/tests/calls/workers}
need "$workers" jq
need_shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=20000	# nobody gives a connection up because the machine is slow

bytes=16384
declare -A clients

# serving MODE N: starts the server; sets port, server, control.
serving() {
	rm -f "$work"/{fifo,control,server.*}
	mkfifo "$work/fifo" "$work/control"
	SHUNT_STATS=$work/server.%p $shunt_run "$workers" server "$1" "$2" < "$work/control" > "$work/fifo" &
	server=$!
	children+=("$server")
	exec {control}> "$work/control"
	exec {said}< "$work/fifo"
	read -r _ port <&"$said"
	exec {said}<&-
}

# A rendezvous whose owner has ended: one of the others has taken it over.
owned() {
	local until=$((SECONDS + 120))
	until grep -q " 00010000 .* @shunt/tcp/.*:$port$" /proc/net/unix; do	# listening
		[ $SECONDS -lt $until ] || return 1
	done
}

stopped() {
	exec {control}>&-
	wait "$server"
}

# client NAME CONNECTIONS: starts one; its statistics will be in $work/client.NAME.
client() {
	SHUNT_STATS=$work/client.$1 $shunt_run "$workers" client "$port" "$2" $bytes > /dev/null &
	clients[$1]=$!
	children+=("$!")
}

# ended NAME: every message came back.
ended() {
	kill "${clients[$1]}"
	wait "${clients[$1]}"
}

# connections NAME EXPRESSION: of all that the client has.
connections() {
	"$builddir/tools/shunt" stat --json "${clients[$1]}" 2> /dev/null | jq -r "[.[0].streams // [] | .[] | $2]"
}

on_link() { # NAME CONNECTIONS
	[ "$(connections $1 'select(.tx.track == "link" and .rx.track == "link")' | jq length)" = "$2" ]
}

total() { # NAME TRACK
	connections $1 ".tx.$2 + .rx.$2" | jq add
}

beyond() { # NAME TRACK BYTES
	[ "$(total $1 $2)" -gt "$3" ]
}

# moved NAME CONNECTIONS: all of its connections get to the link, and from then on no byte goes by TCP.
moved() {
	local tcp link
	if ! within on_link $1 $2; then
		echo "# client $1: $(connections $1 '{state, reason, tx, rx}' | jq -c .)"
		return 1
	fi
	tcp=$(total $1 tcp)
	link=$(total $1 link)
	within beyond $1 link $((link + $2 * 10 * bytes)) && [ "$(total $1 tcp)" = "$tcp" ]
}

# carried MODE N CONNECTIONS: a client, another that finds what the first has left, and two at the same time.
carried() {
	local rc=0 name
	serving "$1" "$2"
	owned || echo "# nobody has the rendezvous"
	for name in a b; do
		client $name $3
		moved $name $3 || rc=1
		ended $name || rc=1
	done
	client c $(($3 / 2))
	client d $(($3 / 2))
	moved c $(($3 / 2)) && moved d $(($3 / 2)) || rc=1
	ended c && ended d || rc=1
	stopped || rc=1
	echo "# claims sent on: $(counter claims_redirected "$work"/server.*)"
	return $rc
}

check "pre-fork, 4 workers: on the link" carried prefork 4 8
check "SO_REUSEPORT, 4 processes: on the link" carried reuseport 4 8
check "the owner of the rendezvous has ended: on the link" carried orphans 4 8
check "accept, fork, the child serves: on the link" carried fork 1 4
check "a listener inherited by exec: on the link" carried passed 4 8
plan
