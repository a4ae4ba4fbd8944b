#!/bin/bash
# SPDX-License-Identifier: MIT
# A reader gives its connection to a program without Shunt, while more of it is unread than a socket holds: the sender
# has it again for TCP. If it is killed then, the new reader finds a reset and no end; else it finds everything. TAP.
# shellcheck disable=SC2086,SC2317	# the command is several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt
export SHUNT_TUNE=${SHUNT_TUNE-},ring_min=64K
bytes=60000

cat > "$work/reader" << 'END'
import os, socket, sys

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("127.0.0.1", 0))
listener.listen(1)
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
for i in range(100):
    connection.sendall(connection.recv(1))
sys.stdin.readline()	# everything has been sent
connection.set_inheritable(True)
os.execve(sys.executable, [sys.executable, sys.argv[1], str(connection.fileno())], dict(os.environ, SHUNT_ENABLE="0"))
END

cat > "$work/heir" << 'END'
import socket, sys

connection = socket.socket(fileno=int(sys.argv[1]))
print("here", flush=True)
sys.stdin.readline()
got = 0
try:
    while data := connection.recv(65536):
        got += len(data)
    print("end", got, flush=True)
except ConnectionResetError:
    print("reset", flush=True)
END

cat > "$work/sender" << 'END'
import socket, struct, sys

connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
connection.connect(("127.0.0.1", int(sys.argv[1])))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for i in range(100):
    connection.sendall(b"x")
    connection.recv(1)
connection.sendall(bytes(int(sys.argv[2])))
print("sent", flush=True)
sys.stdin.readline()
linger = lambda: struct.unpack("ii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
before = linger()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 7))
after = linger()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
print(*before, *after, flush=True)	# from here on it may be killed
sys.stdin.readline()
END

# Starts both, and has the reader give the connection away: {to,from}_{reader,sender}, and the line about SO_LINGER.
hand_over() {
	local port line
	coproc READER { exec $shunt_run python3 "$work/reader" "$work/heir"; }
	reader=$! from_reader=${READER[0]} to_reader=${READER[1]}
	children+=("$reader")
	read -r port <&"$from_reader"
	mkfifo "$work/to_sender.$1" "$work/from_sender.$1"
	$shunt_run python3 "$work/sender" "$port" $bytes < "$work/to_sender.$1" > "$work/from_sender.$1" &
	sender=$!
	children+=("$sender")
	exec {to_sender}> "$work/to_sender.$1" {from_sender}< "$work/from_sender.$1"
	read -r line <&"$from_sender" && [ "$line" = sent ] || return
	echo >&"$to_reader"
	read -r line <&"$from_reader" && [ "$line" = here ] || return
	echo >&"$to_sender"
	read -r linger <&"$from_sender"
}

reader_finds() {
	local line
	echo >&"$to_reader"
	read -r line <&"$from_reader"
	wait "$reader"
	[ "$line" = "$1" ] || echo "# it finds: $line"
	[ "$line" = "$1" ]
}

check "a connection is given away with bytes unread" hand_over killed
check "the sender's SO_LINGER is what it has set" [ "$linger" = "0 0 1 7" ]
kill -9 "$sender"
wait "$sender" 2> /dev/null
check "it is killed: its bytes went with it, and that is no end" reader_finds reset

check "another is given away" hand_over alive
echo >&"$to_sender"	# it exits, and Shunt waits for room meanwhile
check "it ends: everything is there, and then an end" reader_finds "end $bytes"
plan
