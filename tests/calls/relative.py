#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A connection that a fork has given two owners, and one of them has on a link.

relative.py PORT [UID]: says "at PORT", its end of a connection, and keeps an echo server busy on it until a line comes on its
standard input; then forks. The child becomes user UID, says "child PID", and when the next line comes it tries a receive that must
not wait, asks the server once more, and says what came of both. The parent stays until its standard input ends.
With ANEW in its environment its doors have been closed and opened again before: it says "at PORT" and is busy on another
connection first, until a line comes.
relative.py squat PID: when that process has ended, takes the name at which it was asked, and lets
nobody in. Says "ready" and "full".
"""
import os
import select
import socket
import sys

sys.dont_write_bytecode = True
import door  # noqa: E402

MESSAGE = b"x" * 64


def squat(pid):
    name = door.find(pid, "rights")
    ended = os.pidfd_open(int(pid))
    print("ready", flush=True)
    select.select([ended], [], [])
    squatter = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    squatter.bind(name)
    squatter.listen(0)
    held = []
    try:
        while True:
            held.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            held[-1].setblocking(False)
            held[-1].connect(squatter.getsockname())
    except BlockingIOError:
        pass
    print("full", flush=True)
    sys.stdin.read()


def ask(connection):
    connection.sendall(MESSAGE)
    return connection.recv(len(MESSAGE), socket.MSG_WAITALL) == MESSAGE


def be_child(connection, user):
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    print("child", os.getpid(), flush=True)
    os.read(0, 1)
    try:
        first = connection.recv(1, socket.MSG_DONTWAIT)
    except OSError as error:
        first = type(error).__name__
    try:
        print(first, ask(connection), flush=True)
    except OSError as error:
        print(first, type(error).__name__, flush=True)
    os._exit(0)


def busy(port):
    """A connection that has been in use until the script says that it is on a link."""
    connection = socket.create_connection(("127.0.0.1", port))
    print("at", connection.getsockname()[1], flush=True)
    while not select.select([0], [], [], 0)[0]:
        ask(connection)
    os.read(0, 1)
    return connection


def begin_anew(port):
    """Its service thread ends and begins again: its doors have other names then.

    The link is up before: one that ends while it is set up leaves later connections to that peer on TCP.
    """
    first = busy(port)
    former = door.find(os.getpid(), "rights")
    os.setuid(os.getuid())
    second = socket.create_connection(("127.0.0.1", port))
    while not door.names(os.getpid(), "rights"):
        ask(second)
    if door.find(os.getpid(), "rights") == former:
        sys.exit("its door has its former name")
    return first, second


def main():
    if sys.argv[1] == "squat":
        squat(sys.argv[2])
        return
    kept = None
    if os.environ.get("ANEW"):
        kept = begin_anew(int(sys.argv[1]))     # without any connection the server would end
    connection = busy(int(sys.argv[1]))
    if not os.fork():
        be_child(connection, int(sys.argv[2]) if sys.argv[2:] else 0)
    os.wait()
    del kept


main()
