# SPDX-License-Identifier: MIT
"""flow.py sink ADDRESS PORT swallows what comes, and tells each connection that has ended how much that was.

flow.py source ADDRESS PORT [BYTES] sends until it is ended (SIGTERM), or so much, and is idle then until it is ended. It says how
much it has sent, and how much has come.
"""
import signal
import socket
import sys
import threading

ended = threading.Event()


def end(_signal, _frame):
    ended.set()


def swallow(connection):
    count = 0
    while got := connection.recv(1 << 18):
        count += len(got)
    connection.sendall(b"%d\n" % count)
    connection.close()


def sink(listener):
    listener.listen(16)
    while True:
        threading.Thread(target=swallow, args=(listener.accept()[0],), daemon=True).start()


def source(connection, most):
    signal.signal(signal.SIGTERM, end)
    count, block = 0, b"x" * 65536
    while not ended.is_set() and count < most:
        connection.sendall(block)
        count += len(block)
    ended.wait()
    connection.shutdown(socket.SHUT_WR)
    print("sent", count, "came", int(connection.makefile().readline()), flush=True)


end_of_it = (sys.argv[2], int(sys.argv[3]))
if sys.argv[1] == "sink":
    sink(socket.create_server(end_of_it))
else:
    source(socket.create_connection(end_of_it), int(sys.argv[4]) if len(sys.argv) > 4 else float("inf"))
