#!/bin/bash
# SPDX-License-Identifier: MIT
# An older peer, and an older kernel. A peer of another wire version stays on TCP, with a reason of its own and without
# distrust. Waits in epoll sets agree with the bare kernel's also where that lacks what Shunt would use: TAP of diff.sh,
# twice. older.sh version: the first part alone.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt
older=$here/older.py
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=300,refused_ms=0 SHUNT_LOG=info

stat_has() { # PID PATTERN
	"$builddir/tools/shunt" stat --json "$1" 2>&1 | grep -qE -- "$2"
}

# client FILE COMMAND...: something that says what it does, and does it again for each line; sets client_pid.
client() {
	local fifo=$work/use.$RANDOM err=$1
	shift
	mkfifo "$fifo.in" "$fifo.out"
	"$@" < "$fifo.in" > "$fifo.out" 2> "$err" &
	client_pid=$!
	children+=("$client_pid")
	exec {client_in}> "$fifo.in" {client_out}< "$fifo.out"
}

# hears TEXT: its next line.
hears() {
	local line=
	read -r -t 60 line <&"$client_out"
	[ "$line" = "$1" ] || { echo "# '$line', not '$1'"; return 1; }
}

leave() {
	exec {client_in}>&- {client_out}<&-
	wait "$client_pid"
}

# A new client: the name is there, and who has it speaks an older version.
older_server() {
	local line
	start_telling python3 "$older" serve
	client "$work/client" $shunt_run python3 "$here/reasons.py" use "$server_port"
	echo >&"$client_in"
	hears used || return
	within stat_has "$client_pid" '"reason": "the peer speaks another version"' || return
	stat_has "$client_pid" '"links_distrusted": 0' || return
	echo >&"$client_in"
	hears used || return
	leave
	read -r line <&"$in"
	[ "${line#knocked }" -ge 1 ] || { echo "# $line"; return 1; }
	if ! grep -q "info: .* to 127.0.0.1:$server_port: stays on TCP: the peer speaks another version\$" "$work/client" ||
		grep -q 'warn: ' "$work/client"; then
		sed 's/^/# /' "$work/client"
		return 1
	fi
	wait "$server_pid"
	exec {in}<&-
}

# A new server: it hangs up on the older client and believes nothing, and serves its connection on TCP.
older_client() {
	start_telling $shunt_run python3 "$here/reasons.py" serve 2> "$work/server"
	within grep -q "@shunt/tcp/::ffff:127.0.0.1:$server_port\$" /proc/net/unix || return
	client "$work/client" python3 "$older" knock "$server_port"
	hears "hung up after 15" || return	# its own knock, which says the version, and nothing else
	echo >&"$client_in"
	hears used || return
	within stat_has "$server_pid" '"reason": "the peer runs without Shunt"' || return
	stat_has "$server_pid" '"links_distrusted": 0' || return
	leave
	! grep -q 'warn: ' "$work/server" || { sed 's/^/# /' "$work/server"; return 1; }
	wait "$server_pid"
	exec {in}<&-
}

check "a server of an older version" older_server
check "a client of an older version" older_client
[ "${1-}" != version ] || plan
echo "1..$tests"
SHUNT_TUNE+=,claim_ms=1000,refused_ms=2000
unset SHUNT_LOG

lacking=$builddir/tests/calls/lacking
for how in enosys eperm; do
	if ! "$lacking" $how true; then
		echo "# SKIP no system calls can be refused here"
		break
	fi
	RUN_SHUNT="$lacking $how $shunt_run" PASSES="cold warm" "$here/diff.sh" '^(epoll|timeout)_' || failures=$((failures + 1))
done
exit $((failures > 0))
