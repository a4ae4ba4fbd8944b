#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The doors of a shunted process: its listening Unix sockets of our names (docs/dev/PROTOCOL.md, "Names").

door.py PID SERVICE: the name of one, without its zero byte; as a module: names() and find().
"""
import re
import socket
import struct
import sys

SO_PEERCRED = struct.Struct("iII")


def owner(name, kind):
    """The process that listens there, as the kernel says. None: it lets nobody in now."""
    with socket.socket(socket.AF_UNIX, kind | socket.SOCK_NONBLOCK) as knocking:
        try:
            knocking.connect(name)
        except OSError:
            return None
        said = knocking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, SO_PEERCRED.size)
        return SO_PEERCRED.unpack(said)[0]


def listening():
    """All names of ours at which somebody listens, and which kind of socket each is."""
    with open("/proc/net/unix", encoding="latin-1") as table:
        for line in table:
            m = re.match(r"\S+ \S+ \S+ 00010000 (\S+) \S+ +\S+ @(shunt/.*)$", line)
            if m:
                yield "\0" + m.group(2), int(m.group(1), 16)


def names(pid, *services):
    """Those of one process: {name: kind}."""
    wanted = [(name, kind) for name, kind in listening()
              if not services or name[1:].split("/")[1] in services]
    return {name: kind for name, kind in wanted if owner(name, kind) == int(pid)}


def find(pid, service):
    """The one name of a process for a service; None: it has none."""
    return next(iter(names(pid, service)), None)


if __name__ == "__main__":
    found = find(sys.argv[1], sys.argv[2])
    if not found:
        sys.exit(1)
    print(found[1:])
