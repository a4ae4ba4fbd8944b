# SPDX-License-Identifier: MIT
"""taken.py COMMAND...: runs it while its names are taken.

The names are those of the product which a process with its id, or an engine at one of the simulator's
ports, could want. A name by chance cannot be taken before it is used.
All who come are let in and hung up on. The status is the command's; 1 if anybody has come.
"""
import os
import select
import socket
import sys

PID_MAX = 1 << 22  # the simulator's second engine has an id that is so much higher


def names_of(pid):
    pids = (pid, pid + PID_MAX)
    own = b"::ffff:127.%d.%d.%d" % (pid >> 16 & 255, pid >> 8 & 255, pid & 255)
    hosts = (b"*", b"*6", own, b"::ffff:192.0.2.1", b"::ffff:192.0.2.2")
    names = [b"shunt/link/%d" % its for its in pids]
    return names + [b"shunt/%s/%s:%d" % (kind, host, port)
                    for kind in (b"tcp", b"have") for host in hosts for port in (7000, 7001, 7002)]


def take(name):
    taken = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    taken.bind(b"\0" + name)
    taken.listen()
    return taken


def main():
    go, ready = os.pipe()
    child = os.fork()
    if not child:
        os.close(ready)
        os.read(go, 1)
        os.execv(sys.argv[1], sys.argv[1:])
    listeners = [take(name) for name in names_of(child)]
    os.close(ready)
    ended = os.pidfd_open(child)
    guests = 0
    while True:
        come = select.select(listeners + [ended], [], [])[0]
        guests += sum(listener != ended for listener in come)
        for listener in come:
            if listener != ended:
                listener.accept()[0].close()
        if ended in come:
            break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if guests:
        print("%d have come to names that are another process's" % guests)
    sys.exit(status if status > 0 else 1 if status or guests else 0)


main()
