# Shared by the scripts of tests/calls and tests/bench: where things are, TAP, medians. Sourced.
# shellcheck shell=bash disable=SC2034,SC2086,SC2317

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
builddir=${SHUNT_BUILD:-${top_builddir:-$PWD}}
# The names SHUNT_* are the product's; this one is only for the person who calls.
unset SHUNT_BUILD
export top_builddir=$builddir
shunt_run=${RUN_SHUNT:-$builddir/tools/shunt run}
work=$(mktemp -d "/tmp/shunt-test.XXXXXX")
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
	[ "${KEEP:-}" ] || rm -rf "$work"
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
	local i
	for ((i = 0; i < 500; i++)); do
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

# start_redis WRAP: the same with a redis that writes nothing to disk.
start_redis() {
	start_server $1 redis-server --save "" --appendonly no --dir "$work" --port
}

# counter NAME FILE...: the sum of a counter over statistics files.
counter() {
	local name=$1
	shift
	cat "$@" 2> /dev/null | grep -o "\"$name\": *[0-9]*" |
		awk '{ n += $NF } END { print n + 0 }' FS='[: ]+'
}

transfer=${TRANSFER:-$builddir/tests/calls/transfer/transfer}

# pair FILE SERVER-WRAP CLIENT-WRAP OPTIONS...: a transfer; both transcripts in FILE.
pair() {
	local file=$1 server=$2 client=$3 port pid rc=0
	shift 3
	mkfifo "$file.fifo"
	SHUNT_STATS=$file.stat.%p $server "$transfer" server "$@" > "$file.fifo" 2> "$file.server.err" &
	pid=$!
	children+=("$pid")
	exec {in}< "$file.fifo"
	read -r _ port <&"$in"
	SHUNT_STATS=$file.stat.%p timeout "${TEST_LIMIT:-60}" $client "$transfer" client "$port" "$@" \
		> "$file.client" 2> "$file.err" || rc=1
	cat <&"$in" > "$file.server"
	exec {in}<&-
	{ wait "$pid" || rc=1; } 2> /dev/null
	rm -f "$file.fifo"
	sed 's/^/server: /' "$file.server" > "$file"
	sed 's/^/client: /' "$file.client" >> "$file"
	return $rc
}
