#!/bin/bash
# SPDX-License-Identifier: MIT
# libuv's own tests, bare and shunted (lib.sh). By hand: two minutes.
#
#	libuv.sh [TEST...]	tests of libuv's, such as tcp_writealot; without any, all of them
#	INSTALL=1		installs what it takes to build libuv before, where it is missing
#	PATIENCE=900		seconds until they are taken to hang
#
# Built from the source package, once (lib.sh).
# shellcheck disable=SC2086 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='^not ok'
export UV_RUN_AS_ROOT=1

run() { # NAME WRAP TEST
	local name=$1 wrap=$2 test=$3 status
	[ "$test" != all ] || test=
	(cd "$source/build" && alone $wrap test/run-tests $test) > "$scratch/$name" 2>&1 < /dev/null
	status=$?
	if [ -n "$test" ]; then
		echo "$((status == 0))" > "$scratch/$name.count"
	else
		grep -c '^ok' "$scratch/$name" > "$scratch/$name.count"
	fi
	{
		sed -n 's/^not ok [0-9]* - //p' "$scratch/$name"
		[ $status -le 2 ] || echo "status $status"
	} | sort -u > "$scratch/$name.failed"
}

[ -z "${INSTALL:-}" ] || need_packages "for libuv's tests" build-essential autoconf automake libtool pkg-config || exit
fetch libuv1
build build/test/run-tests './autogen.sh; mkdir -p build; cd build; ../configure --disable-shared; make -j2; make check TESTS='
[ $# -gt 0 ] || set -- all
suite "$@"
