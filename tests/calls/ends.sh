# SPDX-License-Identifier: MIT
# Two ends of a connection that do what they are told (reasons.py), each in what is put before it.
# Sourced after lib.sh.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154

ends=$here/reasons.py
other="setpriv --reuid=65534 --regid=65534 --clear-groups"
for python in python3 /usr/bin/python3 ""; do
	$other $python -c "" 2> /dev/null && break
done
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=300,refused_ms=0 SHUNT_LOG=${LEVEL:-info}

# serve WRAP [UID]: sets server_pid, server_port and in; its messages are in $work/server.
serve() {
	start_telling $1 ${python:-python3} "$ends" ${how:-serve} ${2:-} 2> "$work/server"
	served=$in
}

# use WRAP: a client that has used its connection once, and can do it again; sets client_pid.
# With how=defer and does=wait before them, the ends are the other ones of reasons.py: that client has not used it yet.
use() {
	local fifo=$work/use.$RANDOM
	mkfifo "$fifo.in" "$fifo.out"
	$1 ${python:-python3} "$ends" ${does:-use} "$server_port" < "$fifo.in" > "$fifo.out" 2> "$work/client" &
	client_pid=$!
	children+=("$client_pid")
	exec {client_in}> "$fifo.in" {client_out}< "$fifo.out"
	[ "${does:-use}" != use ] || again
}

again() {
	local line
	echo >&"$client_in"
	read -r -t 20 line <&"$client_out" && [ "$line" = used ]
}

leave() {
	exec {client_in}>&- {client_out}<&-
	wait "$client_pid"
	wait "$server_pid"
	exec {served}<&-
}

stat_has() { # PID PATTERN: a line of the JSON, or of what is said in its stead
	"$builddir/tools/shunt" stat --json "$1" 2>&1 | grep -qE -- "$2"
}
