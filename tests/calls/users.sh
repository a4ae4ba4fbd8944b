#!/bin/bash
# SPDX-License-Identifier: MIT
# Processes that could not ptrace each other. By default a link carries the connections that they prove to hold; with
# SHUNT_TRUST=user none does. A process that proves nothing gets neither memory nor statistics. Needs root, to be two
# users. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
lacking=$builddir/tests/calls/lacking
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

# start_server COMMAND...: sets $server and $port; one connection stays, so it does not end by itself.
start_server() {
	local in
	SHUNT_STATS=$work/server.%p start_telling "$@" 2> "$work/err"
	server=$server_pid port=$server_port
	exec {in}<&-
	exec {held}<> /dev/tcp/127.0.0.1/"$port"
}

end_server() {
	local status
	exec {held}<&-
	wait "$server"
	status=$?
	[ $status = 0 ] || { echo "# it ended with $status"; sed 's/^/# /' "$work/err"; }
	return $status
}

# served [COMMAND...]: a shunted client of that user is served; prints how many of its directions went to a link.
served() {
	SHUNT_STATS=$work/client.%p "$@" $shunt_run "$many" client "$port" 5 1000 > "$work/served" 2> "$work/errors" || return
	[ ! -s "$work/errors" ] || { sed 's/^/# /' "$work/errors" >&2; return 1; }
	[ "$(cat "$work/served")" = "served 5000" ] || return
	sed 's/.*"upgrades": *\([0-9]*\).*/\1/; t; d' "$work"/client.* | head -1
	rm -f "$work"/client.*
}

gets() { # WHAT USER...: what a stranger of that user is told must be the given lines
	local what=$1
	shift
	"$@" $python "$here/stranger.py" "$port" "$server" > "$work/got" 2>&1
	[ "$(cat "$work/got")" = "$what" ] || { sed 's/^/# /' "$work/got"; return 1; }
}

is_served() {
	served "$@" > /dev/null
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

all="rendezvous: 320 bytes, memory
statistics: them"
none="rendezvous: nothing
statistics: nothing"

# --- SHUNT_TRUST=user: whoever could not ptrace the other gets nothing ---

export SHUNT_TRUST=user
start_server $shunt_run "$many" server
check "a client of the same user is linked" linked
check "a stranger of the same user is met" gets "$all"
check "another user's is not, and gets no statistics" gets "$none" $other
check "another user's client is served on TCP" not_linked $other
check "shunt stat of another user is refused" refused $other
check "root without its capabilities could not trace us: it is served on TCP" not_linked setpriv --bounding-set=-all
check "nor could another PID namespace's root: on TCP" not_linked unshare --pid --fork --kill-child
check "and what has another /proc cannot ask: on TCP" not_linked unshare --pid --fork --kill-child --mount-proc
check "a client of the same user still is linked" linked
check "the server ends well" end_server

start_server $other $shunt_run "$many" server
check "a server of another user is shown nothing, and serves" not_linked
check "and links to its own" linked $other
check "a stranger of its own is met" gets "$all" $other
check "and root gets statistics, nothing else" gets "rendezvous: nothing
statistics: them"
check "a user namespace of its own makes it another one: on TCP" not_linked $other unshare --user
check "so does another group" not_linked setpriv --reuid=65534 --regid=65533 --clear-groups
check "it ends well" end_server

# A server that is no longer what it was, or may not be traced for another reason. LeakSanitizer would have to trace it.
start_dropped() { # HOW [COMMAND...]
	local how=$1
	shift
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 start_server "$@" $shunt_run $python "$here/drop.py" "$how"
}

for how in user effective; do
	start_dropped $how
	check "a daemon that has dropped from root ($how) is no peer of its new user" not_linked $other
	check "nor of root ($how)" not_linked
	check "and says nothing to a stranger of that user ($how)" gets "$none" $other
	check "but its statistics to root ($how)" gets "rendezvous: nothing
statistics: them"
	check "it ends well ($how)" end_server
done
start_dropped dumpable $other
check "a process that may not be dumped is no peer of its own user" not_linked $other
check "and says nothing to a stranger of that user" gets "$none" $other
check "it ends well" end_server
start_dropped late
check "a listener that becomes another user for good is a peer of that one: its names are made anew" linked $other
check "it ends well" end_server

# --- the default: any two users, for what they prove ---

unset SHUNT_TRUST
unproven="rendezvous: no more than a knock
statistics: nothing"

start_server $shunt_run "$many" server
check "another user's client is linked, by proof" linked $other
check "so is root without its capabilities" linked setpriv --bounding-set=-all
check "so is a client of another PID namespace" linked unshare --pid --fork --kill-child
check "and one with another /proc" linked unshare --pid --fork --kill-child --mount-proc
check "and one of a user namespace of its own" linked $other unshare --user
check "a stranger that proves nothing gets no memory" gets "$unproven" $other
check "a client without the kernel's witness is served on TCP" not_linked $other "$lacking" netlink
check "with SHUNT_TRUST=user the client stays on TCP" not_linked $other env SHUNT_TRUST=user
check "the server ends well" end_server

# Where a policy such as Yama's lets nobody attach to a process, processes of one user are as strange as any two.
start_server $other "$lacking" attach $shunt_run "$many" server
check "a server that may not attach to its clients links them by proof" linked $other
check "to one of its own user that proves nothing it gives no memory" gets "rendezvous: no more than a knock
statistics: them" $other
check "with SHUNT_TRUST=user a client that may not attach, either, stays on TCP" not_linked $other "$lacking" attach env SHUNT_TRUST=user
check "the server ends well" end_server

start_server $other $shunt_run "$many" server
check "a server of another user is linked by proof" linked
check "a client that may not attach to the server is linked by proof" linked $other "$lacking" attach
check "the server ends well" end_server

for how in user effective; do
	start_dropped $how
	check "a daemon that has dropped from root ($how) is linked by proof" linked $other
	check "to root, too ($how)" linked
	check "a stranger that proves nothing gets no memory ($how)" gets "$unproven" $other
	check "it ends well ($how)" end_server
done
start_dropped dumpable $other
check "a process that may not be dumped is linked by proof" linked $other
check "it ends well" end_server
# Another user sends sockets that linger to every name: whoever closes one waits until the siege is over.
besiege() { # COUNT: while the server is stopped, so that nothing is refused in time
	local fifo=$work/siege
	mkfifo "$fifo"
	kill -STOP "$server"
	$other $python "$here/besiege.py" "$port" "$server" "$1" < "$fifo" > "$work/sent" 2>&1 {held}<&- &
	besieger=$!
	children+=("$besieger")
	exec {siege}> "$fifo"
	rm "$fifo"
	within grep -q . "$work/sent"
	kill -CONT "$server"
	sed 's/^/# sent: /' "$work/sent"
}

end_siege() {
	exec {siege}>&-
	wait "$besieger"
}

for kernel in "" "$lacking passrights"; do
	[ "$kernel" ] && what="the same without SO_PASSRIGHTS" || what="with descriptors refused where they can be"
	start_server $kernel $shunt_run "$many" server
	check "a client is linked ($what)" linked
	besiege 3
	check "its names are besieged: a client is linked all the same" linked
	check "statistics are given" gets "$all"
	check "another user gets no memory" gets "$unproven" $other
	check "the server ends well, before the siege" end_server
	end_siege
done

start_server $lacking passrights $shunt_run "$many" server
besiege 40
check "more than can be turned away at once: a client is served" is_served
end_siege
check "when they have gone, it is linked again" within linked
check "the server ends well" end_server
plan
