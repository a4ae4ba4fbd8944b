#!/bin/bash
# Processes of another user: they get neither memory nor statistics of a shunted process, nor does it show them its
# sockets; their connections are served all the same, on TCP. Needs root, to be two users. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
need "$many" setpriv python3
need_shunt
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP only root can be two users"; exit 77; }
other="setpriv --reuid=65534 --regid=65534 --clear-groups"
if ! $other test -r "$here/stranger.py" || ! $other $shunt_run true 2> /dev/null; then
	echo "1..0 # SKIP another user cannot read this tree"
	exit 77
fi
for python in python3 /usr/bin/python3 ""; do
	$other $python -c "" 2> /dev/null && break
done
[ "$python" ] || { echo "1..0 # SKIP another user has no python3"; exit 77; }
chmod 777 "$work"

# start_server [COMMAND...]: sets $server and $port; one connection stays, so it does not end by itself.
start_server() {
	local in
	SHUNT_STATS=$work/server.%p start_telling "$@" $shunt_run "$many" server 2> "$work/err"
	server=$server_pid port=$server_port
	exec {in}<&-
	exec {held}<> /dev/tcp/127.0.0.1/"$port"
}

end_server() {
	exec {held}<&-
	wait "$server"
}

# served [COMMAND...]: a shunted client of that user is served; prints how many of its directions went to a link.
served() {
	SHUNT_STATS=$work/client.%p "$@" $shunt_run "$many" client "$port" 5 200 > "$work/served" 2> "$work/errors" || return
	[ ! -s "$work/errors" ] || { sed 's/^/# /' "$work/errors" >&2; return 1; }
	[ "$(cat "$work/served")" = "served 1000" ] || return
	sed 's/.*"upgrades": *\([0-9]*\).*/\1/; t; d' "$work"/client.* | head -1
	rm -f "$work"/client.*
}

gets() { # WHAT USER...: what a stranger of that user is told must be the given lines
	local what=$1
	shift
	"$@" $python "$here/stranger.py" "$port" "$server" > "$work/got" 2>&1
	[ "$(cat "$work/got")" = "$what" ] || { sed 's/^/# /' "$work/got"; return 1; }
}

linked() {
	[ "$(served "$@")" -gt 0 ]
}

not_linked() {
	[ "$(served "$@")" = 0 ]
}

refused() {
	! "$@" "$builddir/tools/shunt" stat "$server" > "$work/stat" 2>&1
}

start_server
check "a client of the same user is linked" linked
check "a stranger of the same user is met" gets "rendezvous: 320 bytes, memory
statistics: them
rights: an answer"
check "another user's is not, and gets no statistics" gets "rendezvous: nothing
statistics: nothing
rights: an answer" $other
check "another user's client is served on TCP" not_linked $other
check "shunt stat of another user is refused" refused $other
check "a client of the same user still is linked" linked
check "the server ends well" end_server

start_server $other
check "a server of another user is shown nothing, and serves" not_linked
check "and links to its own" linked $other
check "it ends well" end_server
plan
