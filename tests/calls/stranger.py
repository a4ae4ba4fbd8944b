#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process that would like to have a part in somebody else's connections: what does it get?

stranger.py PORT PID: introduces itself at the rendezvous of a server's port as an engine does, and asks for the statistics
of its process. One line each.
"""
import array
import fcntl
import os
import socket
import struct
import sys

sys.dont_write_bytecode = True
import door  # noqa: E402
import wire  # noqa: E402

MESSAGE = 320		# include/shunt/wire.h
HELLO, KNOCK = wire.messages()["HELLO"], wire.messages()["KNOCK"]
BYTES = 16 << 20	# of a segment: core/device/soft/shm_segment.h
QUEUE, DEPTH = 4096 + 1024 * 32, 64


def segment():
    """Shared memory as a peer of the same user would bring it."""
    fd = os.memfd_create("stranger", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, BYTES)
    os.pwrite(fd, struct.pack("<IIQ", 0x45534853, 1, BYTES), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def hello():
    address = struct.pack("<IIQQII", 0x41534853, 1, QUEUE, BYTES, DEPTH, 0)
    text = struct.pack("<IIQQIIIIIIHHI", wire.MAGIC, wire.VERSION, 0x10000000, BYTES // 2, 1, DEPTH, 32, os.getpid(),
                       1, 1, 0, 0, 0)
    return (struct.pack("<II", HELLO, 0) + text + address).ljust(MESSAGE, b"\0")


def knock():
    return struct.pack("<IIII", KNOCK, 0, wire.MAGIC, wire.VERSION).ljust(MESSAGE, b"\0")


def meet(name, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(120)
    s.connect("\0" + name)
    return s


def receive(s):
    """A message, and whether memory came with it."""
    data, rights, _, _ = s.recvmsg(MESSAGE, 128)
    return data, any(kind == socket.SCM_RIGHTS for _, kind, _ in rights)


def rendezvous(port):
    s = meet(f"shunt/tcp/::ffff:127.0.0.1:{port}", socket.SOCK_SEQPACKET)
    who = struct.pack("iII", os.getpid(), os.geteuid(), os.getegid())
    fds = array.array("i", [segment(), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)])
    try:
        s.sendmsg([knock()], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, who)])
        answer, _ = receive(s)
        if not answer:
            return "nothing"
        s.sendmsg([hello()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        answer, memory = receive(s)
    except (BrokenPipeError, ConnectionResetError):
        return "nothing"
    except PermissionError:  # SO_PASSRIGHTS
        return "no more than a knock"
    return f"{len(answer)} bytes, " + ("memory" if memory else "no memory") if answer else "no more than a knock"


def statistics(pid):
    try:
        said = meet(door.find(pid, "stat")[1:], socket.SOCK_STREAM).recv(100000)
        return "them" if said.startswith(b"{") else "nothing"
    except ConnectionResetError:
        return "nothing"


def main():
    port, pid = sys.argv[1:3]
    print("rendezvous:", rendezvous(port))
    print("statistics:", statistics(pid))


main()
