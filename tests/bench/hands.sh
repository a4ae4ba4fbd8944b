#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs whose connections change hands: how much of BYTES goes by the link, and how long it takes beside plain TCP.
# Rounds in turns, medians. `share`: of the client's bytes; `ratio`: time of TCP by that with Shunt.
#
# ROUNDS=3 BYTES=100000000 PROGRAMS="cat git ssh scp sftp node" tests/bench/hands.sh
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
need_shunt
rounds=${ROUNDS:-3}
bytes=${BYTES:-100000000}
so=$builddir/.libs/libshunt.so
port=$(free_port)
chmod 755 "$work"
head -c "$bytes" /dev/urandom > "$work/large"

# served SHUNTED COMMAND...: by systemd-socket-activate, which has no Shunt itself.
served() {
	local with=()
	[ "$1" = "" ] || with=(-E "LD_PRELOAD=$so")
	shift
	systemd-socket-activate -a --inetd -l "127.0.0.1:$port" -E "HOME=$HOME" "${with[@]}" "$@" > /dev/null 2>&1 &
	server=$!
	children+=("$server")
	wait_port "$port"
}

cat_() {
	served "$1" "$(type -P cat)" || return
	client=(python3 -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); left = int(sys.argv[2]); piece = bytes(65536)
while left > 0:
    s.sendall(piece); left -= len(piece); n = len(piece)
    while n: n -= len(s.recv(n))' "$port" "$bytes")
}

git_() {
	[ -d "$work/repository" ] || (git init -q "$work/repository" && cd "$work/repository" && cp ../large . && git add . &&
		git -c user.name=a -c user.email=a@b commit -qm large) || return
	# The command git itself would start the daemon and keep the connection, too.
	served "$1" "$(git --exec-path)/git-daemon" --inetd --export-all "--base-path=$work" "$work" || return
	client=(sh -c "rm -rf '$work/clone' && git clone -q --bare git://127.0.0.1:$port/repository '$work/clone'")
}

sshd_() {
	[ -e "$work/id" ] || { ssh-keygen -q -t ed25519 -N '' -f "$work/id" && ssh-keygen -q -t ed25519 -N '' -f "$work/host"; } || return
	mkdir -p /run/sshd
	printf '%s\n' "Port $port" "ListenAddress 127.0.0.1" "HostKey $work/host" "PidFile none" "AuthorizedKeysFile $work/id.pub" "StrictModes no" "UsePAM no" \
		"Subsystem sftp internal-sftp" > "$work/sshd.conf"
	$1 "$(PATH=$PATH:/usr/sbin type -P sshd)" -D -f "$work/sshd.conf" 2> /dev/null &
	server=$!
	children+=("$server")
	wait_port "$port"
	options=(-F none -i "$work/id" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes)
}

ssh_() {
	sshd_ "$1" && client=(ssh "${options[@]}" -p "$port" 127.0.0.1 "cat $work/large")
}

scp_() {
	sshd_ "$1" && client=(scp -q "${options[@]}" -P "$port" "$work/large" "127.0.0.1:$work/copy")
}

sftp_() {
	printf 'get %s %s\n' "$work/large" "$work/got" > "$work/batch"
	sshd_ "$1" && client=(sftp -q "${options[@]}" -P "$port" -b "$work/batch" 127.0.0.1)
}

# The master accepts, and hands its connections to two workers.
node_() {
	$1 node -e '
const cluster = require("cluster"), net = require("net"), [port, bytes] = process.argv.slice(1).map(Number);
if (cluster.isPrimary) { cluster.fork(); cluster.fork(); }
else {
	const piece = Buffer.alloc(65536);	// one large write would be one call of the kernel, and over before anything is known
	function* pieces() { for (let left = bytes; left > 0; left -= piece.length) yield piece; }
	net.createServer(s => { s.on("error", () => {}); s.on("data", () => require("stream").Readable.from(pieces()).pipe(s)); }).listen(port, "127.0.0.1");
}' "$port" "$bytes" &
	server=$!
	children+=("$server")
	wait_port "$port"
	client=(python3 -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); s.sendall(b"?")
while s.recv(65536): pass' "$port")
}

# once PROGRAM WRAP: sets $seconds.
once() {
	local begun
	"$1_" "$2" || return
	rm -f "$work"/stat.*
	begun=$(date +%s.%N)
	SHUNT_STATS=$work/stat.%p $2 "${client[@]}" > /dev/null || return
	seconds=$(awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')
	kill "$server"
	wait "$server"
	port=$(free_port)
} 2> /dev/null

share() {
	cat "$work"/stat.* | jq -s 'map(.totals | .tx.tcp + .rx.tcp) as $t | map(.totals | .tx.link + .rx.link) as $l |
		($l | add) * 100 / (($t | add) + ($l | add) + 0.001) * 10 | floor / 10'
}

measured() {
	local i on_tcp with tcp=() link=() shares=()
	for ((i = 0; i < rounds; i++)); do
		once "$1" "" || return
		tcp+=("$seconds")
		once "$1" "$shunt_run" || return
		link+=("$seconds")
		shares+=("$(share)")
	done
	on_tcp=$(printf '%s\n' "${tcp[@]}" | median)
	with=$(printf '%s\n' "${link[@]}" | median)
	echo "$1: share $(printf '%s\n' "${shares[@]}" | median) %, ratio $(ratio "$on_tcp" "$with") (TCP $on_tcp s, Shunt $with s)"
}

for program in ${PROGRAMS:-cat git ssh scp sftp node}; do
	measured $program || echo "$program: failed, or is missing"
done
