#!/bin/bash
# SPDX-License-Identifier: MIT
# Why a connection is on TCP, as `shunt stat` and the log say it at both ends; and why there are no statistics. Needs
# root for other users and namespaces. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt
# shellcheck source-path=SCRIPTDIR source=ends.sh
. "$here/ends.sh"

untrusted="the two processes may not share a link .SHUNT_TRUST."

# says PID FILE REASON [DETAIL]: in the statistics, and in one line of the log with both addresses.
says() {
	local said=$3${4:+: $4}
	if ! within stat_has "$1" "\"reason\": \"$3\"" || ! within stat_has "$1" "\"detail\": \"${4:-}\""; then
		"$builddir/tools/shunt" stat "$1" | sed 's/^/# /'
		return 1
	fi
	[ "$(grep -cE "info: descriptor [0-9]+, 127.0.0.1:[0-9]+ to 127.0.0.1:$server_port: stays on TCP: $said\$" "$2")" = 1 ] ||
		{ sed 's/^/# /' "$2"; return 1; }
}

both_linked() {
	local pair
	serve "$shunt_run"
	use "$shunt_run" || return
	within stat_has "$client_pid" '"state": "linked"' || return
	pair=$(sed -n "s/.*info: descriptor [0-9]*, \(.*\): on a link to process $server_pid .*/\1/p" "$work/client")
	[ "$pair" ] || { sed 's/^/# /' "$work/client"; return 1; }
	grep -q "info: descriptor [0-9]*, $pair: on a link to process $client_pid " "$work/server" || return
	leave
}

steps() {
	local step rc=0
	export SHUNT_LOG=debug
	serve "$shunt_run"
	use "$shunt_run" && within stat_has "$client_pid" '"state": "linked"' || return
	for step in "used for the first time" "rendezvous shunt/tcp/.*: connected" "claimed of process $server_pid"; do
		grep -q "debug: descriptor [0-9]*, 127.0.0.1:.* to .*: $step" "$work/client" || { echo "# no '$step'"; rc=1; }
	done
	leave
	export SHUNT_LOG=${LEVEL:-info}
	return $rc
}

plain_server() {
	serve ""
	use "$shunt_run" && says "$client_pid" "$work/client" "the peer runs without Shunt" && leave
}

# Apache and distccd wait so. The client asks whether it may send, so its claim comes before its first byte.
deferring_server() {
	how=defer serve ""
	does="wait" use "$shunt_run" && says "$client_pid" "$work/client" "the peer runs without Shunt" && again && leave
}

all_stopped() { # PID: a signal is sent before each thread of it has heard
	! grep -qE '^State:.*\((running|sleeping|disk sleep)\)' /proc/"$1"/task/*/status
}

# Of two processes that are let in everywhere, the one that is asked ends before it has answered.
ends_before_it_answers() {
	export SHUNT_LOG=debug
	serve "$shunt_run"
	kill -STOP "$server_pid"
	within all_stopped "$server_pid"
	does="wait" use "$shunt_run"
	within grep -q "debug: descriptor .*: rendezvous .*: connected" "$work/client" || { kill -KILL "$server_pid"; return 1; }
	kill -KILL "$server_pid"
	export SHUNT_LOG=${LEVEL:-info}
	says "$client_pid" "$work/client" "no link to the peer could be made" "it broke before it was up" || return
	leave
} 2> /dev/null

plain_client() {
	serve "$shunt_run"
	use "" && says "$server_pid" "$work/server" "the peer runs without Shunt" && leave
}

# As nginx: root listens, and a child of another user accepts.
worker() {
	local child
	serve "$shunt_run" 65534
	read -r _ child <&"$served"
	use "$shunt_run" || return
	says "$client_pid" "$work/client" "$untrusted" "another user's process accepts at the peer's address" || return
	grep -q "info: claim of process $client_pid, .* to 127.0.0.1:$server_port: refused: a process of another user" "$work/server" || return
	says "$child" "$work/server" "$untrusted" "the owner of its address does not let this process in" || return
	leave
}

users() { # SERVER-USER CLIENT-USER REASON [DETAIL]
	serve "$1 $shunt_run"
	use "$2 $shunt_run" && says "$client_pid" "$work/client" "$3" "${4:-}" && leave
}

# absent WRAP PATTERN: a process of which there are no statistics.
absent() {
	serve "$1"
	stat_has "$server_pid" "$2" || { "$builddir/tools/shunt" stat "$server_pid" 2>&1 | sed 's/^/# /'; return 1; }
	kill "$server_pid"
	wait "$server_pid"
	exec {served}<&-
} 2> /dev/null

check "both ends say that a link carries it" both_linked
check "at debug each step of a claim" steps
check "a plain server" plain_server
check "a plain server with TCP_DEFER_ACCEPT, a client that waits first" deferring_server
check "a server that ends before it answers" ends_before_it_answers
check "a plain client" plain_client
check "SHUNT_ENABLE=0" absent "env SHUNT_ENABLE=0 $shunt_run" "switched off: SHUNT_ENABLE=0"
check "SHUNT_DEVICE=none" absent "env SHUNT_DEVICE=none $shunt_run" "no links: SHUNT_DEVICE=none"
# AddressSanitizer maps 15 TiB before the program begins: no limit goes with it.
grep -q -- '-fsanitize=[a-z,]*address' "${top_builddir:-$builddir}/Makefile" ||
	check "RLIMIT_AS" absent "prlimit --as=60000000 $shunt_run" "RLIMIT_AS"
if [ "$(id -u)" = 0 ] && unshare --net true 2> /dev/null; then
	check "another network namespace" absent "unshare --net $shunt_run" "another network namespace"
else
	skip "another network namespace" "only root can make one"
fi
if [ "$(id -u)" = 0 ] && [ "$python" ] && $other test -r "$ends" && $other $shunt_run true 2> /dev/null; then
	export SHUNT_TRUST=user
	check "a worker of another user" worker
	check "a server of another user" users "$other" "" "$untrusted" "the peer's rendezvous belongs to another user"
	check "root's server, another user's client" users "" "$other" "$untrusted" "the peer's rendezvous belongs to another user"
	unset SHUNT_TRUST
	check "a client without the kernel's witness" users "$other" "$builddir/tests/calls/lacking netlink" \
		"the kernel does not show who holds the connection .sock_diag, AF_NETLINK."
else
	skip "a worker of another user" "no other user can run this"
	skip "a server of another user" "no other user can run this"
	skip "root's server, another user's client" "no other user can run this"
	skip "a client without the kernel's witness" "no other user can run this"
fi
plan
