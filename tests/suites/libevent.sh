#!/bin/bash
# SPDX-License-Identifier: MIT
# libevent's own tests, bare and shunted (lib.sh). By hand: three minutes.
#
#	libevent.sh [GROUP...]	groups of its tests, such as http; without any, all of them
#	INSTALL=1		installs what it takes to build libevent before, where it is missing
#	PATIENCE=900		seconds until a group is taken to hang
#
# Built from the source package, once (lib.sh).
# shellcheck disable=SC2086,SC2046 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='FAIL '

run() { # NAME WRAP GROUP
	local name=$1 wrap=$2 group=$3 status
	(cd "$source/build/test" && alone $wrap ./regress "$group/..") > "$scratch/$name" 2>&1 < /dev/null
	status=$?
	grep -c 'OK$' "$scratch/$name" > "$scratch/$name.count"
	{
		sed -n 's/^ *\[\(.*\) FAILED\]$/\1/p' "$scratch/$name"
		[ $status -le 1 ] || echo "status $status"
	} | sort -u > "$scratch/$name.failed"
}

[ -z "${INSTALL:-}" ] || need_packages "for libevent's tests" build-essential libssl-dev python3 || exit
fetch libevent
build build/test/regress 'mkdir -p build; cd build; ../configure --disable-shared --disable-samples; make -j2; make check TESTS='
[ $# -gt 0 ] || set -- $("$source/build/test/regress" --list-tests | sed -n 's/^ *\([a-z_]*\)\/.*/\1/p' | sort -u)
suite "$@"
