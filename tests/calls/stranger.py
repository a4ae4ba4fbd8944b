#!/usr/bin/env python3
"""A process that would like to have a part in somebody else's connections: what does it get?

stranger.py PORT PID: introduces itself at the rendezvous of a server's port as an engine does, asks for the statistics
of its process, and shows a socket of its own as a fork's child does. One line each.
"""
import array
import fcntl
import os
import socket
import struct
import sys

sys.dont_write_bytecode = True
import wire  # noqa: E402

MESSAGE = 320		# include/shunt/wire.h
BYTES = 16 << 20	# of an estate: core/soft/estate.h
QUEUE, DEPTH = 4096 + 1024 * 32, 64


def estate():
    """Shared memory as a peer of the same user would bring it."""
    fd = os.memfd_create("stranger", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, BYTES)
    os.pwrite(fd, struct.pack("<IIQ", 0x45534853, 1, BYTES), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return fd


def hello():
    address = struct.pack("<IIQQII", 0x41534853, 1, QUEUE, BYTES, DEPTH, 0)
    text = struct.pack("<IIQQIIIIIIII", wire.MAGIC, wire.VERSION, 0x10000000, BYTES // 2, 1, DEPTH, 32, os.getpid(), 1, 0, 1, 0)
    return (struct.pack("<II", 1, 0) + text + address).ljust(MESSAGE, b"\0")


def meet(name, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(120)
    s.connect("\0" + name)
    return s


def rendezvous(port):
    s = meet(f"shunt/tcp/::ffff:127.0.0.1:{port}", socket.SOCK_SEQPACKET)
    fds = array.array("i", [estate(), os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)])
    try:
        s.sendmsg([hello()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        answer, rights, _, _ = s.recvmsg(MESSAGE, 64)
    except (BrokenPipeError, ConnectionResetError):
        return "nothing"
    if not answer:
        return "nothing"
    return f"{len(answer)} bytes, " + ("memory" if rights else "no memory")


def statistics(pid):
    try:
        return "them" if meet(f"shunt/stat/{pid}", socket.SOCK_STREAM).recv(100000).startswith(b"{") else "nothing"
    except ConnectionResetError:
        return "nothing"


def rights(pid):
    """A socket that is not the server's: nothing is to be done, which is said."""
    s = meet(f"shunt/rights/{pid}", socket.SOCK_SEQPACKET)
    own = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(own.getsockname())
    fds = array.array("i", [client.fileno()])
    s.sendmsg([b"\1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
    return "an answer" if s.recv(1) else "nothing"


def main():
    port, pid = sys.argv[1:3]
    print("rendezvous:", rendezvous(port))
    print("statistics:", statistics(pid))
    print("rights:", rights(pid))


main()
