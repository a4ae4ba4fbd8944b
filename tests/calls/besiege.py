#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that keeps whoever closes what it has sent: TCP sockets with SO_LINGER and bytes that nobody reads.

besiege.py PORT PID COUNT: sends so many to each abstract name of a server, prints how many went to which kind of name, and holds
the other ends until its standard input ends.
"""
import array
import collections
import os
import socket
import struct
import sys

sys.dont_write_bytecode = True
import door  # noqa: E402

SECONDS = 10000


def names(port, pid):
    return {name: kind for name, kind in door.listening()
            if name.endswith(f":{port}") or door.owner(name, kind) == pid}


def lingering():
    """A socket that is full, and the end at which nobody reads."""
    server, near = socket.socket(), socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    near.connect(server.getsockname())
    far, _ = server.accept()
    near.setblocking(False)
    try:
        while True:
            near.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SECONDS))
    return near, far


def send_and_leave(s, name, near):
    """By a child, whose end does not linger: then the server has the last of it, however fast it is."""
    go, gone = os.pipe()
    child = os.fork()
    if not child:
        os.close(gone)
        os.read(go, 1)
        try:
            s.connect(name)
            s.sendmsg([bytes(320)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [near.fileno()]))])
        except OSError:
            os._exit(1)
        os._exit(0)
    os.close(go)
    near.close()
    os.close(gone)
    return os.waitpid(child, 0)[1] == 0


def main():
    held, sent = [], collections.Counter()
    for name, kind in names(sys.argv[1], int(sys.argv[2])).items():
        word = name.split("/")[1]
        for _ in range(int(sys.argv[3])):
            s = socket.socket(socket.AF_UNIX, kind)
            s.setblocking(False)
            near, far = lingering()
            sent[word] += send_and_leave(s, name, near)
            held.append((s, far))
    print(*(f"{word} {count}" for word, count in sorted(sent.items())), flush=True)
    sys.stdin.read()


main()
