#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain programs that somebody attacks: they know nothing of Shunt, and miss no byte.

victim.py serve ADDRESS PORT   an echo server; says "port N"; ends with its standard input. A client may ask for what such servers
                               do with a connection by the first word of what it sends: see ODD
victim.py call PORT CALLS SPEECH
                               short connections, some of which wait before their first byte, beside a long one; says how long
                               each step took, as JSON, then keeps two connections busy; ends with its standard input
"""
import json
import os
import random
import select
import socket
import sys
import time

sys.dont_write_bytecode = True
import speech  # noqa: E402

PATIENCE = 60	# seconds, after which a call is lost
IDLE = 0.03	# seconds that some connections wait for their first byte: time for a stranger to see them
IDLE_CALLS = 80	# that many calls, and of these a third


# --- the server ---

class Echo:
    def __init__(self, sock):
        self.sock, self.due, self.over = sock, bytearray(), False


def pass_on(sock):
    with_, to = socket.socketpair()
    socket.send_fds(with_, [b"x"], [sock.fileno()])
    with_.close()
    to.close()


def splice(sock):
    out, into = os.pipe()
    try:
        os.splice(sock.fileno(), into, 4096)
    except BlockingIOError:
        pass
    os.close(out)
    os.close(into)


def change_user(sock):
    os.setresuid(*os.getresuid())


def fork_and_read(sock):
    if os.fork():
        os.wait()
        return
    try:
        sock.recv(1)
    except OSError:
        pass
    os._exit(0)


ODD = {b"pass!": pass_on, b"splice": splice, b"setresuid": change_user, b"fork": fork_and_read}


def read(echo):
    try:
        data = echo.sock.recv(1 << 16)
        if data in ODD:
            ODD[data](echo.sock)
    except BlockingIOError:
        return
    except ConnectionResetError:
        data = b""
    echo.over = not data
    echo.due += data


def write(echo):
    try:
        while echo.due:
            del echo.due[:echo.sock.send(echo.due)]
    except BlockingIOError:
        pass
    except OSError:
        echo.over = True
        echo.due.clear()


def accept(listener, poll, echoes):
    try:
        while True:
            sock = listener.accept()[0]
            sock.setblocking(False)
            echoes[sock.fileno()] = Echo(sock)
            poll.register(sock, select.EPOLLIN)
    except BlockingIOError:
        pass


def serve(address, port):
    listener = socket.create_server((address, int(port)), backlog=1024)
    listener.setblocking(False)
    poll, echoes = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    print("port", listener.getsockname()[1], flush=True)
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                return
            if fd == listener.fileno():
                accept(listener, poll, echoes)
                continue
            echo = echoes[fd]
            read(echo)
            write(echo)
            if echo.over and not echo.due:
                del echoes[fd]
                poll.unregister(fd)
                echo.sock.close()
            else:
                poll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if echo.due else 0))


# --- the client ---

class Times(dict):
    """Seconds of each step."""
    def take(self, what, call, *arguments):
        begun = time.monotonic()
        result = call(*arguments)
        self.setdefault(what, []).append(time.monotonic() - begun)
        return result

    def figures(self):
        return {what: {"median": sorted(some)[len(some) // 2], "most": max(some)} for what, some in self.items()}


def dial(port):
    sock = socket.socket()
    sock.settimeout(PATIENCE)
    sock.connect(("127.0.0.1", port))
    return sock


def ask(sock, speaks, rng, most):
    out = speech.data_of(speaks, rng, rng.randrange(1, most))
    try:
        back = speech.ask(speaks, sock, out)
    except EOFError as error:
        sys.exit(str(error))
    if back != out:
        sys.exit("the bytes are others")


def close(sock):
    sock.close()


def call_once(port, ask_it, times, idle):
    begun = time.monotonic()
    sock = times.take("connect", dial, port)
    waits = time.monotonic()
    if idle:
        time.sleep(IDLE)
    waits = time.monotonic() - waits
    times.take("first", ask_it, sock, 4096)
    spent = time.monotonic() - begun - waits
    for _ in range(3):
        times.take("more", ask_it, sock, 4096)
    begun = time.monotonic()
    times.take("close", close, sock)
    times.setdefault("whole", []).append(spent + time.monotonic() - begun)


def call(port, calls, speaks):
    port, rng, times = int(port), random.Random(os.getpid()), Times()
    ask_it = lambda sock, most: ask(sock, speaks, rng, most)  # noqa: E731
    long = dial(port)
    ask_it(long, 4096)
    for i in range(int(calls)):
        call_once(port, ask_it, times, i % 3 == 0 and i < IDLE_CALLS)
        times.take("long", ask_it, long, 1 << 16)
    fresh = dial(port)
    time.sleep(IDLE)
    ask_it(fresh, 4096)
    print(json.dumps(times.figures()), flush=True)
    while not select.select([0], [], [], 0.02)[0]:
        ask_it(long, 4096)
        ask_it(fresh, 4096)
    for sock in long, fresh:
        sock.shutdown(socket.SHUT_WR)
        if sock.recv(1):
            sys.exit("bytes behind the end")
    print("exact", flush=True)


if __name__ == "__main__":
    {"serve": serve, "call": call}[sys.argv[1]](*sys.argv[2:])
