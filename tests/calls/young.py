# SPDX-License-Identifier: MIT
# Connections of one question each, from an event loop to another; then perhaps one that lasts.
#	young.py server FILE		prints its port; an answer is FILE
#	young.py client PORT COUNT	COUNT brief connections
#	young.py lasts PORT COUNT	then one that asks until its bytes are on the link
import os
import select
import socket
import struct
import sys

MANY = 50000	# questions, at most


def server(path):
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)
    listener.setblocking(False)
    answer = os.open(path, os.O_RDONLY)
    size = os.fstat(answer).st_size
    epoll = select.epoll()
    epoll.register(listener, select.EPOLLIN)
    open_ones = {}
    print("port", listener.getsockname()[1], flush=True)
    while True:
        for fd, _ in epoll.poll():
            if fd == listener.fileno():
                one, _ = listener.accept()
                one.setblocking(False)
                epoll.register(one, select.EPOLLIN)
                open_ones[one.fileno()] = one
                continue
            try:
                question = os.read(fd, 100)
            except BlockingIOError:	# a wait may tell too much (select(2))
                continue
            if question == b"end":
                return
            if question:
                os.sendfile(fd, answer, 0, size)
            else:
                open_ones.pop(fd).close()


def answer(epoll, one):
    while True:
        epoll.poll()
        try:
            return os.read(one.fileno(), 100)
        except BlockingIOError:
            pass


def ask(epoll, one):
    os.write(one.fileno(), b"what?")
    epoll.modify(one, select.EPOLLIN)
    assert answer(epoll, one) == b"answer\n"


def begin(epoll, port):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", port))
    epoll.register(one, select.EPOLLOUT)
    epoll.poll()
    return one


def by_tcp(one):
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    return sum(struct.unpack_from("QQ", info, 120))	# tcpi_bytes_acked, tcpi_bytes_received


def brief(epoll, port, count):
    for _ in range(count):
        one = begin(epoll, port)
        ask(epoll, one)
        one.close()


def end(epoll, port):
    one = begin(epoll, port)
    os.write(one.fileno(), b"end")


def lasts(epoll, port, count):
    brief(epoll, port, count)
    one = begin(epoll, port)
    for i in range(MANY):
        ask(epoll, one)
        before = by_tcp(one)
        ask(epoll, one)
        ask(epoll, one)
        if by_tcp(one) == before:
            print("linked")
            return
    print("still on TCP after", 3 * MANY)


if sys.argv[1] == "server":
    server(sys.argv[2])
else:
    sets = select.epoll()
    {"client": brief, "lasts": lasts}[sys.argv[1]](sets, int(sys.argv[2]), int(sys.argv[3]))
    end(sets, int(sys.argv[2]))
