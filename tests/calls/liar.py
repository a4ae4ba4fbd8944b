#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that has names as an engine's doors have, and says nothing there.

liar.py many   200 of each service; says its process id
liar.py gone   one of each, made by a process that has ended, and kept open by another; says the number of the
               first, or that this kernel cannot tell
"""
import os
import signal
import socket
import sys

SO_PEERPIDFD = 77
KINDS = {"stat": socket.SOCK_STREAM, "adm": socket.SOCK_SEQPACKET}


def listen():
    """A door for each service, of an identity that comes before those of engines."""
    identity = bytes(4).hex() + os.urandom(12).hex()
    for service, kind in KINDS.items():
        door = socket.socket(socket.AF_UNIX, kind)
        door.bind(f"\0shunt/{service}/{identity}")
        door.listen(100)
        yield door


def many():
    doors = [door for _ in range(200) for door in listen()]
    print(os.getpid(), flush=True)
    signal.pause()
    del doors


def gone():
    here, there = socket.socketpair()
    try:
        os.close(here.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
    except OSError:
        print("cannot be told", flush=True)    # before Linux 6.5
        return
    maker = os.fork()
    if not maker:
        socket.send_fds(there, [b"x"], [door.detach() for door in listen()])
        os._exit(0)
    doors = socket.recv_fds(here, 1, len(KINDS))[1]
    os.waitpid(maker, 0)
    print(maker, len(doors), flush=True)
    signal.pause()


{"many": many, "gone": gone}[sys.argv[1]]()
