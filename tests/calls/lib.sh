# SPDX-License-Identifier: MIT
# Shared by the scripts of tests/calls and tests/bench: where things are, TAP, medians. Sourced.
# shellcheck shell=bash disable=SC2034,SC2086,SC2317

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=where.sh
. "$here/where.sh"
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$here/../scratch.sh"
scratch test
work=$scratch
children=()
tests=0
failures=0

# The processes this script started, and nothing else.
clean_up() {
	local pid
	for pid in "${children[@]}"; do
		kill "$pid" 2> /dev/null
	done
	wait 2> /dev/null
	[ -z "${KEEP:-}" ] || scratch_keep "$work"
	scratch_remove
}
trap clean_up EXIT

ok() {
	tests=$((tests + 1))
	echo "ok $tests - $1"
}

not_ok() {
	tests=$((tests + 1))
	failures=$((failures + 1))
	echo "not ok $tests - $1"
}

skip() {
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

# todo NAME # TODO WHY: what is known to be otherwise.
todo() {
	tests=$((tests + 1))
	echo "not ok $tests - $1"
}

# check NAME COMMAND...: ok if the command succeeds.
check() {
	local name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name"; fi
}

plan() {
	echo "1..$tests"
	exit $((failures > 0))
}

need() {
	local f
	for f in "$@"; do
		[ -x "$f" ] || command -v "$f" > /dev/null || {
			echo "1..0 # SKIP $f is missing"
			exit 77
		}
	done
}

# Without a working shunt there is nothing to compare.
need_shunt() {
	$shunt_run true || {
		echo "Bail out! '$shunt_run' does not work"
		exit 99
	}
}

median() {
	sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# ratio A B
ratio() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b ? a / b : 0 }'
}

# A port that nothing listens on at the moment.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# wait_port PORT: until somebody listens there.
wait_port() {
	local until=$((SECONDS + 120))
	while [ $SECONDS -lt $until ]; do
		grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 && return 0
		sleep 0.02
	done
	return 1
}

# start_server COMMAND...: starts it with a free port as its last word, and waits until somebody listens there.
# Sets server_pid and server_port.
start_server() {
	server_port=$(free_port)
	"$@" "$server_port" > /dev/null 2>&1 &
	server_pid=$!
	children+=("$server_pid")
	wait_port "$server_port"
}

# start_telling COMMAND...: starts a server whose first line says its port; more of its output can be read from
# descriptor $in. Sets server_pid and server_port.
start_telling() {
	local fifo
	fifo=$(mktemp -u "$work/fifo.XXXXXX")
	mkfifo "$fifo"
	"$@" > "$fifo" &
	server_pid=$!
	children+=("$server_pid")
	exec {in}< "$fifo"
	rm "$fifo"
	read -r _ server_port <&"$in"
}

# start_redis WRAP: as start_server, with a redis that writes nothing to disk.
start_redis() {
	start_server $1 redis-server --save "" --appendonly no --dir "$work" --port
}

# counter NAME FILE...: the sum of a counter over statistics files.
counter() {
	local name=$1
	shift
	cat "$@" 2> /dev/null | grep -o "\"$name\": *[0-9]*" |
		awk '{ n += $NF } END { printf "%.0f\n", n }' FS='[: ]+'
}

transfer=${TRANSFER:-$builddir/tests/calls/transfer/transfer}

# pair FILE SERVER-WRAP CLIENT-WRAP OPTIONS...: a transfer; both transcripts in FILE.
pair() {
	local file=$1 server=$2 client=$3 rc=0
	shift 3
	SHUNT_STATS=$file.stat.%p start_telling $server "$transfer" server "$@" 2> "$file.server.err"
	SHUNT_STATS=$file.stat.%p timeout "${TEST_LIMIT:-600}" $client "$transfer" client "$server_port" "$@" \
		> "$file.client" 2> "$file.err" || rc=1
	cat <&"$in" > "$file.server"
	exec {in}<&-
	{ wait "$server_pid" || rc=1; } 2> /dev/null
	sed 's/^/server: /' "$file.server" > "$file"
	sed 's/^/client: /' "$file.client" >> "$file"
	return $rc
}

# --- a pair that runs while a script does something to it ---

# start_pair OPTIONS...: both ends in the background; sets server and client, their process ids. MOCK is the SHUNT_MOCK of
# both, or "SERVER CLIENT".
start_pair() {
	local mocks
	read -ra mocks <<< "${MOCK:-auto}"
	rm -f "$work"/stat.* "$work/err"
	SHUNT_MOCK=${mocks[0]} SHUNT_STATS=$work/stat.%p start_telling $shunt_run "$transfer" server "$@" 2>> "$work/err"
	server=$server_pid
	SHUNT_MOCK=${mocks[-1]} SHUNT_STATS=$work/stat.%p $shunt_run "$transfer" client "$server_port" "$@" > "$work/client" 2>> "$work/err" &
	client=$!
	children+=("$client")
}

# Both ends have found every byte in its place.
end_pair() {
	local rc=0
	wait "$client" || rc=1
	cat <&"$in" > "$work/server"
	exec {in}<&-
	wait "$server" || rc=1
	[ $rc = 0 ] || cat "$work/err" "$work"/stat.* | cut -c1-3000 | sed 's/^/# /'
	return $rc
}

leave_pair() {
	kill "$client" "$server"
	wait "$client" "$server"
	exec {in}<&-
} 2> /dev/null

adm() {
	"$builddir/tools/shunt" adm "$@" > /dev/null
}

# ask PID EXPRESSION: of its first stream.
ask() {
	"$builddir/tools/shunt" stat --json "$1" 2> /dev/null |
		jq -r "(.[0].streams // [])[] | select(.state != \"plain\") | $2" | head -1
}

# within COMMAND...: it becomes true.
within() {
	local until=$((SECONDS + ${WITHIN:-120}))
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.01
	done
}
