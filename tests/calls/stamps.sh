#!/bin/bash
# SO_TIMESTAMP, set on a listener and so on what it accepts, keeps nothing off the link as long as the program has no room
# for times; with room it gets them. TAP.
# shellcheck disable=SC2086	# the command is several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt

cat > "$work/stamps" << 'END'
import socket, sys, threading

BYTES, SO_TIMESTAMP = 20000000, 29
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMP, 1)
listener.bind(("127.0.0.1", 0))
listener.listen(1)
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
thread = threading.Thread(target=sender.sendall, args=(bytes(BYTES),))
thread.start()
got = 0
while got < BYTES:
    got += len(receiver.recv(65536))
thread.join()
times = []
while not times:	# the kernel starts its clock some time after it has been asked
    sender.send(b"x")
    _, times, _, _ = receiver.recvmsg(1, 1000)
print(got, [(level, type) for level, type, _ in times])
END

python3 "$work/stamps" > "$work/bare"
SHUNT_STATS=$work/stats timeout 60 $shunt_run python3 "$work/stamps" > "$work/shunted"
check "the same as bare: bytes, and a time" cmp "$work/bare" "$work/shunted"
check "most of it came by the link" [ "$(counter link "$work/stats")" -gt 10000000 ]
plan
