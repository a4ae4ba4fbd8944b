#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests and answers, with a delay where the test wants one. For tests/trace.sh.

trace.py server WHERE MS    says its port, answers what one client asks; waits MS ms
                            poll: when a request has been sent, and before it looks
                            program: when it has looked, and before it reads
                            none: nowhere
trace.py client PORT COUNT  asks COUNT times 100 bytes; says a line when it has done so, and waits for one

The client says on the pipe of descriptor 9 that it has asked, so that the server knows without looking."""
import os
import select
import socket
import sys
import time

PIPE = 9
REQUEST, ANSWER = 100, 50


def receive(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            return None
        data += more
    return data


def server(where, ms):
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    stream, _ = listener.accept()
    epoll = select.epoll()
    epoll.register(stream, select.EPOLLIN)
    while os.read(PIPE, 1):
        if where == "poll":
            time.sleep(ms / 1000)
        epoll.poll()
        if where == "program":
            time.sleep(ms / 1000)
        if not receive(stream, REQUEST):
            break
        stream.sendall(b"a" * ANSWER)
    epoll.poll()


def client(port, count):
    stream = socket.create_connection(("127.0.0.1", port))
    for _ in range(count):
        stream.sendall(b"q" * REQUEST)
        os.write(PIPE, b".")
        receive(stream, ANSWER)
    print("done", flush=True)
    while sys.stdin.readline():
        if count:
            stream.sendall(b"q" * REQUEST)
            os.write(PIPE, b".")
            receive(stream, ANSWER)
        print("done", flush=True)


if sys.argv[1] == "server":
    server(sys.argv[2], int(sys.argv[3]))
else:
    client(int(sys.argv[2]), int(sys.argv[3]))
