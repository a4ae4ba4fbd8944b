# SPDX-License-Identifier: MIT
"""Plain ends of one connection, for reasons.sh and doors.sh; they know nothing of Shunt.

reasons.py serve [UID]   listens and says "port N"; echoes what one client says, in a child of that user if UID is given,
                         whose process id is said then
reasons.py defer         the same where the kernel tells of a connection with its first byte (TCP_DEFER_ACCEPT)
reasons.py wait PORT     waits until it may send, and then does as `use`
reasons.py use PORT      says something for each line of standard input, and "used" when the echo has come
"""
import os
import select
import socket
import sys


def echo(listener):
    stream, _ = listener.accept()
    while True:
        said = stream.recv(4096)
        if not said:
            break
        stream.sendall(said)


def serve(uid=None):
    listener = socket.create_server(("127.0.0.1", 0))
    print("port", listener.getsockname()[1], flush=True)
    if uid is None:
        echo(listener)
        return
    child = os.fork()
    if not child:
        os.setuid(int(uid))
        echo(listener)
        os._exit(0)
    print("child", child, flush=True)
    os.waitpid(child, 0)


def defer():
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 60)
    print("port", listener.getsockname()[1], flush=True)
    echo(listener)


def wait(port):
    use(port, True)


def use(port, waits=False):
    stream = socket.create_connection(("127.0.0.1", int(port)))
    if waits:
        select.select([], [stream], [])
    for _ in sys.stdin:
        stream.sendall(b"said")
        left = 4
        while left:
            left -= len(stream.recv(left))
        print("used", flush=True)


{"serve": serve, "defer": defer, "use": use, "wait": wait}[sys.argv[1]](*sys.argv[2:])
