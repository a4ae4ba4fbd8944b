# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For the tests of the shunt command: a scratch directory, and checks that say what they saw.

# shellcheck disable=SC2034 # used by the tests
shunt=${top_builddir:?}/tools/shunt
# shellcheck source-path=SCRIPTDIR source=scratch.sh
. "${top_srcdir:?}/tests/scratch.sh"
scratch test
work=$scratch
problems=0

# No variable of the caller's environment shall decide what a test sees.
for variable in $(compgen -e SHUNT_); do
	unset "$variable"
done
export SHUNT_CONF=none

problem() {
	echo "PROBLEM: $*"
	problems=1
}

# expect STATUS COMMAND…: runs it; its output is in $out and $err.
expect() {
	local wanted=$1 status=0
	shift
	"$@" >"$work/out" 2>"$work/err" || status=$?
	out=$(cat "$work/out")
	err=$(cat "$work/err")
	[ "$status" = "$wanted" ] || problem "$*: exit status $status, not $wanted; it said: $out $err"
}

# has TEXT PATTERN: an extended regular expression in one of its lines.
has() {
	grep -qE -- "$2" <<<"$1" || problem "no '$2' in: $1"
}

lacks() {
	! grep -qE -- "$2" <<<"$1" || problem "'$2' in: $1"
}

# narrow TEXT
narrow() {
	local wide
	wide=$(awk 'length > 100' <<<"$1")
	[ -z "$wide" ] || problem "wider than 100 columns: $wide"
}

finish() {
	exit "$problems"
}

# A shunted server that waits for its client, so that its engine is there and nothing else happens: $server, $port.
start_waiting() {
	mkfifo "$work/port"
	"$shunt" run "${top_builddir:?}/tests/calls/transfer/transfer" server -n 0 >"$work/port" 2>"$work/server" &
	server=$!
	trap 'kill $server 2>/dev/null; scratch_remove' EXIT
	exec {port_fd}<"$work/port"
	read -r _ port <&"$port_fd"
}
