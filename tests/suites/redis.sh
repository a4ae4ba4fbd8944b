#!/bin/bash
# SPDX-License-Identifier: MIT
# redis's own tests against Debian's redis, bare and shunted (servers, clients and the tests' Tcl; lib.sh). By hand: the
# whole list takes half an hour.
#
#	redis.sh [UNIT...]	units of redis's tests, such as unit/protocol
#	INSTALL=1		installs tcl and redis before, where they are missing
#	PATIENCE=900		seconds until a unit is taken to hang
#
# The tests come with the source package (lib.sh).
# shellcheck disable=SC2086 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='\[(err|exception)\]'
units="unit/protocol unit/auth unit/multi unit/quit unit/other unit/info unit/introspection unit/introspection-2 unit/pubsub
	unit/scripting unit/limits unit/obuf-limits unit/querybuf unit/pendingquerybuf unit/client-eviction unit/pause
	unit/tracking unit/wait unit/type/list integration/replication integration/replication-2
	integration/replication-3 integration/replication-4 integration/replication-psync integration/replication-buffer
	integration/block-repl integration/failover integration/shutdown integration/redis-cli integration/redis-benchmark
	integration/logging"
export TERM=dumb

run() { # NAME WRAP UNIT
	local name=$1 wrap=$2 unit=$3 status
	(cd "$source" && alone $wrap ./runtest --clients 1 --single "$unit") > "$scratch/coloured" 2>&1 < /dev/null
	status=$?
	sed -E 's/\x1b\[[0-9;]*m//g' "$scratch/coloured" > "$scratch/$name"
	{
		grep -E '^\[(err|exception)\]' "$scratch/$name" | sed -E 's/ in tests\/.*//; s/:[0-9]+//g'
		[ $status -le 1 ] || echo "the unit as a whole: status $status"
	} | sort -u > "$scratch/$name.failed"
	grep -c '\[ok\]' "$scratch/$name" > "$scratch/$name.count"
}

[ -z "${INSTALL:-}" ] || need_packages "for redis's tests" redis-server redis-tools tcl || exit
for each in redis-server tclsh; do
	command -v $each > /dev/null || skip_all "$each is not installed (INSTALL=1 installs it)"
done
fetch redis
mkdir -p "$source/src"
for each in server cli benchmark check-aof check-rdb; do
	ln -sf "$(command -v redis-$each)" "$source/src/redis-$each"
done

[ $# -gt 0 ] || set -- $units
suite "$@"
