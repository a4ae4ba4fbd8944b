#!/bin/bash
# SPDX-License-Identifier: MIT
# What programs do with a connection and need not keep it off the link: a listener for one connection only, closed before
# that is used, as benchmarks and FTP have; SO_TIMESTAMP, set on a listener and so on what it accepts, as long as nobody has
# room for times; a listener of MPTCP, whose peer has none. TAP.
# shellcheck disable=SC2086,SC2317	# the command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt

# Small things to and fro for a while, as a program does that has come to stay; then what counts.
cat > "$work/carried" << 'END'
import socket, sys, threading, time

BYTES, SO_TIMESTAMP = 20000000, 29

def names(port):
    with open("/proc/net/unix") as file:
        return sum(" 00010000 " in line and "shunt/tcp/" in line and line.endswith(f":{port}\n") for line in file)

def gone(port):
    deadline = time.monotonic() + 20
    while names(port) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not names(port)

def times():	# the kernel starts its clock some time after it has been asked
    while True:
        sender.send(b"x")
        _, control, _, _ = receiver.recvmsg(1, 1000)
        if control:
            return [(level, type) for level, type, _ in control]

def multipath():	# a peer that has it, too: those bytes are the kernel's
    other = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    other.connect(("127.0.0.1", port))
    accepted, _ = listener.accept()
    for i in range(1000):
        other.sendall(bytes([i % 256]) * 1000)
        assert accepted.recv(1000, socket.MSG_WAITALL) == bytes([i % 256]) * 1000
    return [end.getsockopt(socket.SOL_SOCKET, 38) for end in (listener, sender, receiver, other, accepted)]

if sys.argv[1] == "multipath":
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
else:
    listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
if sys.argv[1] == "times":
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
sender = socket.create_connection(("127.0.0.1", port))
receiver, _ = listener.accept()
if sys.argv[1] == "once":
    listener.close()
until = time.monotonic() + 0.5
while time.monotonic() < until:
    sender.send(b"x")
    receiver.send(receiver.recv(1))
    sender.recv(1)
thread = threading.Thread(target=sender.sendall, args=(bytes(BYTES),))
thread.start()
got = 0
while got < BYTES:
    got += len(receiver.recv(65536))
thread.join()
print(got, gone(port) if sys.argv[1] == "once" else multipath() if sys.argv[1] == "multipath" else times())
END

carried() { # HOW WHAT
	python3 "$work/carried" $1 > "$work/bare"
	SHUNT_STATS=$work/stats.$1 timeout 300 $shunt_run python3 "$work/carried" $1 > "$work/shunted"
	check "$2: as bare" cmp "$work/bare" "$work/shunted"
	check "$2: most comes by the link" [ "$(counter link "$work/stats.$1")" -gt 10000000 ]
}

carried once "a listener for one connection"
carried times "times that nobody asks for, and then somebody"
if python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)' 2> "$work/why"; then
	carried multipath "a listener of MPTCP"
else
	skip "a listener of MPTCP" "$(tail -1 "$work/why")"
fi
plan
