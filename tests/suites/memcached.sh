#!/bin/bash
# SPDX-License-Identifier: MIT
# memcached's own tests, bare and shunted: the server and the tests' Perl (lib.sh). By hand: ten minutes.
#
#	memcached.sh [TEST...]	tests of memcached's, such as watcher; without any, those that speak TCP
#	INSTALL=1		installs what it takes to build memcached before, where it is missing
#	PATIENCE=900		seconds until a test is taken to hang
#
# Built from the source package, once (lib.sh). Where they have the choice its tests take Unix sockets: here, never.
# shellcheck disable=SC2086,SC2046 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='^not ok'
# About the source's white space, structures' sizes, Unix sockets, its own C functions; what takes minutes; what skips itself.
left_out='whitespace|sizes|unixsocket|testapp|64bit|maxconns|lru-crawler|slabs|stress|item_size|extstore|restart|chunked|large|ssl|proxy|misbehave|refhang|slabhang'

run() { # NAME WRAP TEST
	local name=$1 wrap=$2 status
	(cd "$source" && alone $wrap perl "t/$3.t") > "$scratch/$name" 2>&1 < /dev/null
	status=$?
	grep -c '^ok' "$scratch/$name" > "$scratch/$name.count"
	{
		sed -n 's/^not ok [0-9]* - //p' "$scratch/$name"
		[ $status = 0 ] || grep -q '^not ok' "$scratch/$name" || echo "status $status"
	} | sort -u > "$scratch/$name.failed"
}

[ -z "${INSTALL:-}" ] || need_packages "for memcached's tests" build-essential libevent-dev perl || exit
fetch memcached
sed -i 's/^sub supports_unix_socket {$/& return 0;/' "$source/t/lib/MemcachedTest.pm"
build memcached-debug './configure; make -j2 memcached memcached-debug timedrun'
[ $# -gt 0 ] || set -- $(cd "$source/t" && printf '%s\n' *.t | sed 's/\.t$//' | grep -vE "$left_out")
suite "$@"
