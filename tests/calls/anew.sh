#!/bin/bash
# SPDX-License-Identifier: MIT
# A server that listens changes its user or its rights before it serves: it is found again, and its connections get to the
# link. After a filter they stay on TCP. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
anew=${ANEW:-$builddir/tests/calls/anew}
need "$many" "$anew"
need_shunt

offered() {
	grep -q "@shunt/tcp/::ffff:127.0.0.1:$port\$" /proc/net/unix
}

threads() {
	set -- "/proc/$server/task"/*
	echo $#
}

has_threads() {
	[ "$(threads)" = "$1" ]
}

# serves WAIT CHANGE FOUND [REQUESTS [passed]]: whether peers shall find it.
serves() {
	local in requests=${4:-2000}
	SHUNT_STATS=$work/server.%p start_telling $shunt_run "$anew" "$1" "$2" ${5:+"$5"} 2> "$work/err"
	server=$server_pid port=$server_port
	exec {in}<&-
	# A listener that was passed, too: before the process forbids itself threads.
	if [ "$3" = yes ]; then within offered || return 1; else [ "$(threads)" = 1 ] || return 1; fi
	# The third one closes what strangers leave, for which none can begin any more.
	[[ $2 != threads* ]] || within has_threads 3 || return
	rm -f "$work"/client.*
	SHUNT_STATS=$work/client.%p $shunt_run "$many" client "$port" 1 "$requests" > "$work/served" || return 1
	wait "$server" || return 1
	# With TEST_LINK there are as many more as it takes.
	[ "$(sed -n 's/^served //p' "$work/served")" -ge "$requests" ] || return 1
	upgrades=$(counter upgrades "$work"/client.*)
	[[ $2 != borrowed && $2 != narrowed ]] || [ "$(counter handbacks "$work"/client.* "$work"/server.*)" = 0 ] || return
	if [ "$3" = yes ]; then [ "$upgrades" -gt 0 ]; else [ "$upgrades" = 0 ]; fi
}

for wait in accept poll select epoll; do
	check "it changes its user, and waits in $wait: linked" serves $wait user yes
done
check "it changes its rights by many calls: linked" serves accept rights yes
check "it acts for others and comes back, for each request: on the link all the time" serves epoll borrowed yes 20000
check "it sets no_new_privs with its connection on the link, and again: it stays there" serves epoll narrowed yes 20000
# Ends of different users prove the connection first: the client waits for the link.
export TEST_LINK=60000 SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000
# LeakSanitizer needs a thread at the end, which it cannot have; AddressSanitizer has setrlimit() to itself.
export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
grep -q -- '-fsanitize=[a-z,]*address' "${top_builddir:-$builddir}/Makefile" ||
	check "it gives root up, and forbids itself new threads: linked" serves epoll threads yes
check "the same by number, and it waits in poll: linked" serves poll threads-number yes
check "the same with a listener that it was passed: linked" serves poll threads-number yes 2000 passed
check "the same, and it has made no descriptor before: linked" serves accept threads-number yes 2000 passed
unset TEST_LINK
SHUNT_TUNE+=,claim_ms=1000
check "it sets a filter: one thread, and served on TCP" serves epoll filter no
plan
