#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""doors_fake.py DOOR HOW: a process that means no good to those who ask at its door. Says its process id and its port on a line.

DOOR    stat, adm, or tcp: a listener's rendezvous, with a listener that never speaks
HOW     lingers        a socket whose close() takes hours, at once
        lingers-later  the same, in the midst of an answer
        lingers-behind the same, behind a whole answer
        counts         a line for each who comes, and nothing else

The last descriptor of that socket is in the queue of who asks.
"""
import array
import os
import pathlib
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


def main():
    door, how = sys.argv[1:]
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
