#!/bin/bash
# A program that listens for one connection only and closes the listener before that is used, as benchmarks and FTP do: it
# is on the link all the same, and the name of the rendezvous goes soon after. TAP.
# shellcheck disable=SC2086	# the command is several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt

cat > "$work/once" << 'END'
import socket, threading, time

BYTES = 20000000

def names(port):
    with open("/proc/net/unix") as file:
        return sum(" 00010000 " in line and "shunt/tcp/" in line and line.endswith(f":{port}\n") for line in file)

listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
sender = socket.create_connection(("127.0.0.1", port))
receiver, _ = listener.accept()
listener.close()
thread = threading.Thread(target=sender.sendall, args=(bytes(BYTES),))
thread.start()
got = 0
while got < BYTES:
    got += len(receiver.recv(65536))
thread.join()
deadline = time.monotonic() + 20
while names(port) and time.monotonic() < deadline:
    time.sleep(0.05)
print(got, names(port))
END

python3 "$work/once" > "$work/bare"
SHUNT_STATS=$work/stats timeout 60 $shunt_run python3 "$work/once" > "$work/shunted"
check "the same as bare: bytes, and no name is left" cmp "$work/bare" "$work/shunted"
check "most of it came by the link" [ "$(counter link "$work/stats")" -gt 10000000 ]
plan
