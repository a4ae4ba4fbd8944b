#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A connection for each request: what either end can see of one that is used again (core/stream/spare.h).

born.py server, born.py threads, born.py port (with SO_REUSEPORT), born.py client PORT [born]: the client asks so often, and
tells the server on standard input what is next. Each says on standard output what it has seen that the kernel would not show,
and exits with 1 then. born: it begins once a connection has been used again. See born.sh.

born.py queue [mixed], born.py crowd PORT, born.py plain PORT: the clients come while the server accepts nothing. It counts in
which order they are accepted then. mixed: births do not wait until all others have been accepted.

born.py joined, born.py crowd PORT: a child of the server comes to accept, too, while they wait.

born.py reset, born.py crowd PORT reset: they have been reset by then.
"""
import ctypes
import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time

THREADS = 4  # in accept() at once
TIMES = 400
LEAVES = 100  # connections that are closed behind their only message
WAYS = [b"", b"first", b"shut", b"abort"]  # who closes first, and how
OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    (socket.SOL_SOCKET, socket.SO_PRIORITY),
]
bad = []
ports = []  # of the client's connections


def expect(what, seen, wanted):
    if seen != wanted and len(bad) < 5:
        bad.append(what)
        print(f"{what}: {seen}, and not {wanted}", flush=True)


def values(s):
    return [s.getsockopt(*option) for option in OPTIONS]


def change(s):
    for option in OPTIONS:
        s.setsockopt(*option, 3)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def listen():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print("port", listener.getsockname()[1], flush=True)
    return listener


def answer(client, lefts):
    client.settimeout(None)
    while data := client.recv(1000):
        if data == b"left":
            lefts.append(data)
            continue
        client.send(data + b"%d" % client.getpeername()[1])
        if data.split()[1:]:
            if data.split()[1] == b"shut":
                client.shutdown(socket.SHUT_WR)
            break
    client.close()


def accept_each(listener, first, lefts, counts, number):
    while True:
        try:
            client, address = listener.accept()
        except OSError as error:
            expect("accept of a listener that is shut", error.errno, errno.EINVAL)
            return
        counts[number] += 1
        expect("getpeername", client.getpeername(), address)
        expect("options of what was accepted", values(client), first)
        expect("O_NONBLOCK of what was accepted", os.get_blocking(client.fileno()), True)
        change(client)
        answer(client, lefts)


def serve_by_threads(listeners):
    lefts = []
    first = values(listeners[0])
    counts = [0] * len(listeners)
    threads = [
        threading.Thread(target=accept_each, args=(listeners[i % len(listeners)], first, lefts, counts, i % len(listeners)))
        for i in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    os.read(0, 1)
    for listener in listeners:
        listener.shutdown(socket.SHUT_RD)
    print("closed", flush=True)
    for thread in threads:
        thread.join()
    expect("messages of those that have closed", len(lefts), LEAVES)
    for count in counts:
        expect("a fair share of connections", count > sum(counts) / len(counts) / 2, True)


def share_port():
    listeners = [socket.socket(), socket.socket()]
    for listener in listeners:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", 0) if listener == listeners[0] else listeners[0].getsockname())
        listener.listen(64)
    print("port", listeners[0].getsockname()[1], flush=True)
    return listeners


def serve():
    listener = listen()
    listener.setblocking(False)
    first = values(listener)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    clients = {}
    left = 0
    while listener or clients:
        for fd, _ in poll.poll():
            if fd == 0:
                os.read(0, 1)
                poll.unregister(listener)
                poll.unregister(0)
                listener.close()
                listener = None
                print("closed", flush=True)
            elif listener and fd == listener.fileno():
                try:
                    client, address = listener.accept()
                except BlockingIOError:
                    continue
                expect("a number of the program's", client.fileno() < 1000, True)
                expect("getpeername", client.getpeername(), address)
                expect("options of what was accepted", values(client), first)
                expect("O_NONBLOCK of what was accepted", os.get_blocking(client.fileno()), True)
                change(client)
                client.setblocking(False)
                clients[client.fileno()] = client
                poll.register(client, select.EPOLLIN)
            else:
                client = clients[fd]
                data = client.recv(1000)
                left += data == b"left"
                if data == b"left":
                    continue
                if data:
                    client.send(data + b"%d" % client.getpeername()[1])
                    if not data.split()[1:]:
                        continue
                    if data.split()[1] == b"shut":
                        client.shutdown(socket.SHUT_WR)
                poll.unregister(client)
                client.close()
                del clients[fd]
    expect("messages of those that have closed", left, LEAVES)


def register_and_begin(s, port):
    poll = select.epoll()
    poll.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET)
    expect("connect of one that is registered", s.connect_ex(("127.0.0.1", port)), errno.EINPROGRESS)
    expect("what is registered", poll.poll(), [(s.fileno(), select.EPOLLOUT)])
    poll.modify(s, select.EPOLLIN)
    expect("what is modified", poll.poll(0), [])
    poll.unregister(s)
    poll.close()


def begin(port, how):
    s = socket.socket()
    expect("options of a new socket", values(s), values_of_new)
    if how % 2:
        s.connect(("127.0.0.1", port))
        return s
    s.setblocking(False)
    if how % 4:
        register_and_begin(s, port)
        s.setblocking(True)
        return s
    expect("connect that does not block", s.connect_ex(("127.0.0.1", port)), errno.EINPROGRESS)
    select.select([], [s], [])
    expect("SO_ERROR", s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)
    expect("the second connect", s.connect_ex(("127.0.0.1", port)), 0)
    expect("the third connect", s.connect_ex(("127.0.0.1", port)), errno.EISCONN)
    s.setblocking(True)
    return s


def ask(port, i):
    way = WAYS[i // 2 % len(WAYS)]
    question = b"%d %s " % (i, way)
    s = begin(port, i)
    change(s)
    s.send(question)
    answer = s.recv(1000)
    expect("answer", answer, question + b"%d" % s.getsockname()[1])
    expect("getpeername", s.getpeername(), ("127.0.0.1", port))
    ports.append(s.getsockname()[1])
    if way:
        expect("end", s.recv(1000), b"")
    if way == b"abort":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def is_born(port):
    before = ports.copy()
    ask(port, 0)
    return ports[-1] in before


def client(port, born):
    # A machine that is full makes the first link late: connections before it are the kernel's.
    expect("one is used again in time", not born or any(is_born(port) for i in range(20000)), True)
    for i in range(TIMES):
        ask(port, i)
    for i in range(LEAVES):
        s = begin(port, 1)
        s.send(b"left")
        s.close()
    before = descriptors()
    for i in range(TIMES):
        ask(port, i)
    expect("few descriptors at the end", descriptors() < before + TIMES // 10, True)
    print("through", flush=True)
    os.read(0, 1)  # the listener is closed
    s = socket.socket()
    expect("connect to nobody", s.connect_ex(("127.0.0.1", port)), errno.ECONNREFUSED)


CROWD = 20  # clients of each kind that wait at once
ROUNDS = 50  # so long that all of their connections come to the link
AT_MOST = 4  # births in a row, while others wait (core/stream/births.c)


def serve_crowd(listener):
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients = {}
    served = 0
    while served < CROWD:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                client, _ = listener.accept()
                clients[client.fileno()] = client
                poll.register(client, select.EPOLLIN)
                continue
            data = clients[fd].recv(1000)
            if data:
                clients[fd].send(data)
                continue
            clients.pop(fd).close()
            served += 1
    print("served", flush=True)


def serve_queue(mixed):
    listener = listen()
    serve_crowd(listener)
    os.read(0, 1)
    accepted = [listener.accept()[0] for _ in range(2 * CROWD)]
    names = [client.recv(1000) for client in accepted]
    for client in accepted:
        client.send(b"x")
    for client in accepted:
        expect("the end", client.recv(1000), b"")
        client.close()
    for kind in b"b", b"p":
        expect("all have come", sorted(name for name in names if name[:1] == kind), sorted(kind + b"%d" % i for i in range(CROWD)))
    last = max(i for i in range(2 * CROWD) if names[i][:1] == b"p")
    runs = b"".join(name[:1] for name in names[:last]).split(b"p")
    expect("births in a row while others wait", [run for run in runs if len(run) > AT_MOST], [])
    first = names[: CROWD + CROWD // AT_MOST if mixed else None]
    for kind in b"b", b"p":  # one of the crowd whose last connection was a second ago has made one as others do: it comes last
        some = [int(name[1:]) for name in first if name[:1] == kind]
        expect("order", some, sorted(some))
        expect("births do not wait until all others are accepted", len(some) > 0, True)


def serve_joined():
    listener = listen()
    serve_crowd(listener)
    os.read(0, 1)
    child = os.fork()
    if not child:
        client = listener.accept()[0]
        client.send(b"x")
        while client.recv(1000):
            pass
        os._exit(0)
    time.sleep(0.2)  # in that time it is known that the child accepts here; without it the test is less strict
    listener.setblocking(False)
    accepted = []
    while len(accepted) < CROWD:
        select.select([listener], [], [], 1)
        if child and os.waitpid(child, os.WNOHANG)[0]:
            child = 0
            accepted.append(None)
        try:
            accepted.append(listener.accept()[0])
            accepted[-1].send(b"x")
        except BlockingIOError:
            pass
    if child:
        os.kill(child, signal.SIGKILL)
    for client in filter(None, accepted):
        client.setblocking(True)
        expect("the end", client.recv(1000)[-1:].strip(b"0123456789"), b"")


def serve_reset():
    listener = listen()
    serve_crowd(listener)
    os.read(0, 1)
    for _ in range(CROWD):
        client, address = listener.accept()
        expect("address of one that was reset", (address[0], address[1] > 0), ("127.0.0.1", True))
        expect("error", errno.errorcode[client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)], "ECONNRESET")
        client.close()
    length = ctypes.c_uint32(16)
    call = ctypes.CDLL(None, use_errno=True).accept
    for room, wanted in (ctypes.c_void_p(1), errno.EFAULT), (ctypes.create_string_buffer(16), errno.EINVAL):
        expect("accept", (call(listener.fileno(), room, ctypes.byref(length)), ctypes.get_errno()), (-1, wanted))
        length.value = 1 << 31
    listener.setblocking(False)
    try:
        listener.accept()
        expect("connections whose address could not be told", "there", "gone")
    except BlockingIOError:
        pass


def reset(port):
    for i in range(CROWD + 2):
        s = socket.socket()
        s.connect(("127.0.0.1", port))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
    print("there", flush=True)


def come(port, kind):
    crowd = []
    for i in range(CROWD):
        s = socket.socket()
        s.connect(("127.0.0.1", port))
        s.send(kind + b"%d" % i)
        crowd.append(s)
    print("there", flush=True)
    for s in crowd:
        expect("answer", s.recv(1000), b"x")
        s.close()


def crowd(port, resets):
    crowd = []
    yes_at = time.monotonic()	# or later: the kernel's yes, which holds for a second
    for _ in range(CROWD):
        s = socket.socket()
        s.connect(("127.0.0.1", port))
        crowd.append(s)
    for _ in range(ROUNDS):
        for s in crowd:
            s.send(b"x")
            s.recv(1000)
    for s in crowd:
        s.close()
    print("warm", flush=True)
    os.read(0, 1)
    if resets:
        reset(port)
    else:
        come(port, b"b")
    if time.monotonic() - yes_at > 0.9:
        print("late", flush=True)


values_of_new = values(socket.socket())
if sys.argv[1] == "server":
    serve()
elif sys.argv[1] == "threads":
    serve_by_threads([listen()])
elif sys.argv[1] == "port":
    serve_by_threads(share_port())
elif sys.argv[1] == "queue":
    serve_queue(len(sys.argv) > 2)
elif sys.argv[1] == "joined":
    serve_joined()
elif sys.argv[1] == "crowd":
    crowd(int(sys.argv[2]), len(sys.argv) > 3)
elif sys.argv[1] == "reset":
    serve_reset()
elif sys.argv[1] == "plain":
    print("begun", flush=True)
    os.read(0, 1)
    come(int(sys.argv[2]), b"p")
else:
    client(int(sys.argv[2]), len(sys.argv) > 3)
sys.exit(bool(bad))
