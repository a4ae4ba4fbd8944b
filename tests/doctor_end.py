# SPDX-License-Identifier: MIT
"""An end of connections that stay, for what looks at them.

doctor_end.py server               says its port, and sends back what comes
doctor_end.py client PORT [TEXT]   sends TEXT until 1 MiB has come back, says so and its addresses, and ends with its input
doctor_end.py exec PORT            the same, and then is another program, which inherits the connection
doctor_end.py hold FD              that program

Addresses are 127.0.0.1, or END_HOST.
"""
import os
import socket
import sys
import threading

HOST = os.environ.get("END_HOST", "127.0.0.1")


def serve(stream):
    while data := stream.recv(65536):
        stream.sendall(data)


def name(address):
    return "%s:%d" % address[:2]


def wait(stream):
    print(name(stream.getsockname()), name(stream.getpeername()), flush=True)
    sys.stdin.read()


def exchange(port, text):
    stream = socket.create_connection((HOST, port))
    for _ in range(64):
        data = (text * (16384 // len(text) + 1))[:16384]
        stream.sendall(data)
        left = len(data)
        while left:
            left -= len(stream.recv(left))
    return stream


def main(what, *rest):
    text = (rest[1] if len(rest) > 1 else "x").encode()
    if what == "server":
        listener = socket.create_server((HOST, 0))
        print(listener.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    elif what == "client":
        wait(exchange(int(rest[0]), text))
    elif what == "exec":
        stream = exchange(int(rest[0]), text)
        stream.set_inheritable(True)
        os.execv(sys.executable, [sys.executable, __file__, "hold", str(stream.fileno())])
    else:
        wait(socket.socket(fileno=int(rest[0])))


main(*sys.argv[1:])
