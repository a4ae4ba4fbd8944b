#!/bin/bash
# redis's own tests against Debian's redis, bare and shunted (servers, clients and the tests' Tcl; lib.sh). By hand: the
# whole list takes half an hour.
#
#	redis.sh [UNIT...]	units of redis's tests, such as unit/protocol
#	INSTALL=1		installs tcl and redis before, where they are missing
#	PATIENCE=900		seconds until a unit is taken to hang
#
# The tests come with the source package, which is fetched once to ${XDG_CACHE_HOME:-~/.cache}/shunt-suites.
# shellcheck disable=SC2086 # what is put before a command is several words
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
trouble='\[(err|exception)\]'
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shunt-suites
units="unit/protocol unit/auth unit/multi unit/quit unit/other unit/info unit/introspection unit/introspection-2 unit/pubsub
	unit/scripting unit/limits unit/obuf-limits unit/querybuf unit/pendingquerybuf unit/client-eviction unit/pause
	unit/tracking unit/wait unit/type/list integration/replication integration/replication-2
	integration/replication-3 integration/replication-4 integration/replication-psync integration/replication-buffer
	integration/block-repl integration/failover integration/shutdown integration/redis-cli integration/redis-benchmark
	integration/logging"
export TERM=dumb

# The source package of what is installed, or of what the distribution has now; no list of the system's is changed.
fetch() {
	local release options
	[ -z "$(find "$cache" -maxdepth 1 -name 'redis-*' -type d 2> /dev/null)" ] || return 0
	# shellcheck source=/dev/null
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mkdir -p "$scratch/apt/lists/partial" "$cache" || return
	printf 'deb-src http://deb.debian.org/debian %s main\ndeb-src http://deb.debian.org/debian-security %s-security main\n' \
		"$release" "$release" > "$scratch/apt/sources.list"
	options="-qq -o Dir::Etc::sourcelist=$scratch/apt/sources.list -o Dir::Etc::sourceparts=/nonexistent
		-o Dir::State::lists=$scratch/apt/lists -o APT::Sandbox::User=root"
	(cd "$scratch/apt" && apt-get $options update && apt-get $options source --download-only redis &&
		tar -C "$cache" -xzf redis_*.orig.tar.gz)
}

# Its ports are always the same: a network of its own, where that is allowed.
alone=
[ "$(id -u)" != 0 ] || ! unshare -n true 2> /dev/null || alone="unshare -n"

run() { # NAME WRAP UNIT
	local name=$1 wrap=$2 unit=$3 status
	# shellcheck disable=SC2016 # the inner shell expands it
	(cd "$source" && timeout "$patience" $alone bash -c '[ "$1" = 0 ] || ip link set lo up; shift; exec "$@"' run ${#alone} \
		$wrap ./runtest --clients 1 --single "$unit") > "$scratch/coloured" 2>&1 < /dev/null
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
fetch || skip_all "the source package of redis cannot be fetched"
source=$(find "$cache" -maxdepth 1 -name 'redis-*' -type d | sort | tail -n 1)
mkdir -p "$source/src"
for each in server cli benchmark check-aof check-rdb; do
	ln -sf "$(command -v redis-$each)" "$source/src/redis-$each"
done

[ $# -gt 0 ] || set -- $units
suite "$@"
