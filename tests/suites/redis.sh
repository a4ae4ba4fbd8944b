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
units="unit/protocol unit/auth unit/multi unit/quit unit/other unit/info unit/introspection unit/introspection-2 unit/pubsub
	unit/scripting unit/limits unit/obuf-limits unit/querybuf unit/pendingquerybuf unit/client-eviction unit/pause
	unit/tracking unit/wait unit/type/list integration/replication integration/replication-2
	integration/replication-3 integration/replication-4 integration/replication-psync integration/replication-buffer
	integration/block-repl integration/failover integration/shutdown integration/redis-cli integration/redis-benchmark
	integration/logging"

run() {
	run_tcl "$@"
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
