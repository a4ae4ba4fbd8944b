#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that means no good, at the abstract Unix sockets @shunt/... of one server and no other process.

hostile.py SECONDS PORT PID [SEED]: connects and sends noise, halves of messages, far too much, descriptors of
all kinds, or nothing at all, and prints how many sockets it found and how often it struck.
"""
import array
import os
import random
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True
import door  # noqa: E402
import wire  # noqa: E402


def names(port, pid):
    """The server's abstract names at present, and which kind of socket each is."""
    return {name: kind for name, kind in door.listening()
            if name.endswith(f":{port}") or door.owner(name, kind) == pid}


def descriptors(rng):
    """A handful of descriptors that have nothing to do with the matter."""
    some = []
    for _ in range(rng.choice([1, 2, 5, 100, 250])):
        kind = rng.randrange(4)
        if kind == 0:
            some.append(os.open("/dev/null", os.O_RDWR))
        elif kind == 1:
            some.append(os.memfd_create("x"))
        elif kind == 2:
            some.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach())
        else:
            some.append(os.dup(0))
    return some


def noise(rng):
    """Random bytes, small numbers, or a header that promises too much."""
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.choice([1, 3, 8, 31, 64, 200, 4096, 60000]))
    if kind == 1:
        return b"".join(struct.pack("<I", rng.randrange(16)) for _ in range(rng.randrange(1, 64)))
    if kind == 2:
        return struct.pack("<II", rng.randrange(8), 0xffffffff) + rng.randbytes(40)
    return bytes(rng.randrange(1, 5000))


def connections(port):
    """The client's ports of connections to the server at present."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split()[1:4] for line in table]
    return [int(far.split(":")[1], 16) for near, far, state in rows
            if state == "01" and near == f"0100007F:{port:04X}"]


def lie(rng, port, clients):
    """What a process says that accepts at the server's address: that it has somebody's connection."""
    loopback = bytes(10) + b"\xff\xff" + socket.inet_aton("127.0.0.1")
    near = struct.pack(">16sH", loopback, rng.choice([port, port, port, 1]))
    far = struct.pack(">16sH", loopback, rng.choice(clients))
    kind = rng.choice([1, 2, 2, 2, 2, 3, 9])
    return struct.pack("=IIII16s16s2s2s", wire.MAGIC, wire.VERSION, kind, rng.randrange(3), near[:16], far[:16], near[16:], far[16:])


def send(s, data, fds):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([data], rights, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)


def strike(rng, name, kind, held, port):
    s = socket.socket(socket.AF_UNIX, kind)
    s.setblocking(False)
    fds = []
    try:
        s.connect(name)
        liar = name.startswith("\0shunt/have/") and rng.random() < 0.7
        clients = connections(port) or [1] if liar else []
        if liar and rng.random() < 0.9:
            send(s, struct.pack("=II", wire.MAGIC, wire.VERSION) + struct.pack("=I", 1) + bytes(40), [])
        for _ in range(rng.choice([0, 1, 1, 2, 20, 500 if liar else 3])):
            if liar:
                send(s, lie(rng, port, clients), [])
                continue
            fds = descriptors(rng) if rng.random() < 0.3 else []
            send(s, noise(rng), fds)
            for fd in fds:
                os.close(fd)
            fds = []
        if rng.random() < 0.3:
            s.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    for fd in fds:
        os.close(fd)
    if rng.random() < 0.2:
        held.append(s)
    else:
        s.close()
    if len(held) > 50:
        held.pop(rng.randrange(len(held))).close()


def main():
    end = time.monotonic() + float(sys.argv[1])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    held, seen, strikes = [], set(), 0
    while time.monotonic() < end:
        targets = names(int(sys.argv[2]), int(sys.argv[3]))
        seen.update(targets)
        for name, kind in targets.items():
            for _ in range(20):
                strike(rng, name, kind, held, int(sys.argv[2]))
                strikes += 1
        if not targets:
            time.sleep(0.01)
    print(len(seen), strikes)


main()
