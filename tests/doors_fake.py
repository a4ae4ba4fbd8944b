#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""doors_fake.py DOOR HOW: a process that means no good to those who ask at its door. Says its process id and its port on a line.

DOOR    stat, adm, or tcp: a listener's rendezvous, with a listener that never speaks
HOW     lingers        a socket whose close() takes hours, at once
        lingers-later  the same, in the midst of an answer
        lingers-behind the same, behind a whole answer
        counts         a line for each who comes, and nothing else
        many           4,200 doors that answer; says how many of them were asked when its standard input ends
        crowd          40 processes with ten silent doors each; the same

The last descriptor of that socket is in the queue of who asks.
"""
import array
import os
import pathlib
import select
import socket
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "reach"))
import enemy  # noqa: E402

ANSWERS = {"stat": (b'{"pid":1,', b'"program":"fake"}'), "adm": (b'*{"pid":1,', b'+"events":[]}'), "tcp": (b"", b"")}


def lingers(client, packet):
    """By a child, which may linger itself if the tool is quicker."""
    near, far = enemy.lingering()
    there, here = os.pipe()
    child = os.fork()
    if not child:
        os.close(here)
        os.read(there, 1)
        try:
            client.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [near.fileno()]))], socket.MSG_NOSIGNAL)
        except OSError:
            client.shutdown(socket.SHUT_RDWR)	# SO_PASSRIGHTS
        near.close()	# before the tool has woken up: its own is the last
        os._exit(0)
    near.close()
    os.close(there)
    os.close(here)
    return far


def serve(client, door, how):
    first, last = ANSWERS[door]
    kept = [client]
    if how == "counts":
        print("came", flush=True)
        return kept
    if how == "lingers":
        kept.append(lingers(client, first or b"x"))
        return kept
    client.send(first)
    if how == "lingers-later":
        kept.append(lingers(client, last))
    else:
        client.send(last)
        kept.append(lingers(client, b"x"))
    return kept


def make_doors(count):
    doors = []
    for _ in range(count):
        doors.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        doors[-1].bind(f"\0shunt/stat/{os.urandom(16).hex()}")
        doors[-1].listen(1)
    return doors


def count_asked(doors, answer, came):
    """A byte into `came` for each door that is asked, until the standard input ends."""
    poll, by_number, asked, kept = select.poll(), {door.fileno(): door for door in doors}, set(), []
    for fd in [0, *by_number]:
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                return
            client = by_number[fd].accept()[0]
            if fd not in asked:
                os.write(came, b"x")
            asked.add(fd)
            if not answer:
                kept.append(client)
                continue
            try:
                client.send(b"".join(ANSWERS["stat"]))
            except OSError:
                pass
            client.close()


def count_all(processes, doors, answer):
    there, here = os.pipe()
    children = []
    for _ in range(processes):
        children.append(os.fork())
        if not children[-1]:
            os.close(there)
            some = make_doors(doors)
            os.write(here, b"r")
            count_asked(some, answer, here)
            os._exit(0)
    os.close(here)
    for _ in children:
        os.read(there, 1)
    print(os.getpid(), 0, flush=True)
    came = 0
    while some := os.read(there, 65536):
        came += len(some)
    for child in children:
        os.waitpid(child, 0)
    print(came, flush=True)


def main():
    door, how = sys.argv[1:]
    if how in ("many", "crowd"):
        count_all(*((1, 4200, True) if how == "many" else (40, 10, False)))
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    port = listener.getsockname()[1]
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM if door == "stat" else socket.SOCK_SEQPACKET)
    unix.bind(f"\0shunt/tcp/::ffff:127.0.0.1:{port}" if door == "tcp" else f"\0shunt/{door}/{os.urandom(16).hex()}")
    unix.listen(100)
    print(os.getpid(), port, flush=True)
    kept = []
    while True:
        client = unix.accept()[0]
        try:
            kept.append(serve(client, door, how))
        except OSError:
            pass


main()
