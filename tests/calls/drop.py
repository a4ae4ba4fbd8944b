#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An echo server that gives up what it was.

drop.py user|effective|dumpable|late: becomes user 65534 for good; or so that it could be root again; or stays who it is and may
not be dumped; or becomes that user after it has listened, and may be dumped all the same. Prints "port N"; ends when its last
connection does.
"""
import ctypes
import os
import selectors
import socket
import sys

NOBODY = 65534
PR_SET_DUMPABLE = 4


def set_dumpable(value):
    if ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, value, 0, 0, 0):
        raise OSError("prctl")


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def main():
    how = sys.argv[1]
    if how == "user":
        become_nobody()
    elif how == "effective":
        os.setresgid(NOBODY, NOBODY, 0)
        os.setresuid(NOBODY, NOBODY, 0)
        set_dumpable(1)
    elif how == "dumpable":
        set_dumpable(0)
    listener = socket.create_server(("127.0.0.1", 0))
    if how == "late":
        become_nobody()
        set_dumpable(1)
    print("port", listener.getsockname()[1], flush=True)
    ready, last = selectors.DefaultSelector(), 0
    ready.register(listener, selectors.EVENT_READ)
    while last >= 0:
        for key, _ in ready.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                ready.register(connection, selectors.EVENT_READ)
                last += 1
                continue
            data = key.fileobj.recv(4096)
            if data:
                key.fileobj.sendall(data)
                continue
            ready.unregister(key.fileobj)
            key.fileobj.close()
            last = last - 1 or -1


main()
