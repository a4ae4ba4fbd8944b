# SPDX-License-Identifier: MIT
"""A server of several processes that sends back what comes, and its client, which checks every byte.

crew.py fork ADDRESS PORT          one process accepts and forks one for each connection
crew.py workers ADDRESS PORT       four processes accept at a listener that their parent has made
crew.py reuseport ADDRESS PORT     four processes accept at listeners of their own (SO_REUSEPORT)
crew.py asks ADDRESS PORT COUNT    COUNT connections exchange blocks until the client is ended (SIGTERM)

A server says `worker PID` of each process that accepts. To each connection it says the number of its process first. The
client says `broken PID` of each connection that has ended before its time, and then `whole COUNT bytes BYTES`.
"""
import os
import random
import signal
import socket
import sys
import threading

WORKERS, BLOCK = 4, 8192
ended = threading.Event()


def serve(connection):
    connection.sendall(b"%8d" % os.getpid())
    try:
        while got := connection.recv(1 << 16):
            connection.sendall(got)
    except ConnectionError:
        pass
    connection.close()


def fork_each(listener):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("worker", os.getpid(), flush=True)
    while True:
        connection = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            serve(connection)
            os._exit(0)
        connection.close()


def accept_all(listener):
    print("worker", os.getpid(), flush=True)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def end(children):
    for child in children:  # their numbers stay theirs until they are waited for
        os.kill(child, signal.SIGKILL)


def crew(address, reuse):
    listener = None if reuse else socket.create_server(address, backlog=64)
    children = []
    for _ in range(WORKERS):
        child = os.fork()
        if not child:
            accept_all(listener or socket.create_server(address, backlog=64, reuse_port=True))
        children.append(child)
    signal.signal(signal.SIGTERM, lambda *_: end(children))
    for child in children:
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)


def receive(connection, count):
    got = b""
    while len(got) < count:
        more = connection.recv(count - len(got))
        if not more:
            raise ConnectionResetError
        got += more
    return got


def ask(connection, result):
    data = random.Random(id(result)).randbytes(BLOCK * 2)
    result["worker"] = int(receive(connection, 8))
    try:
        while not ended.is_set():
            at = result["bytes"] % BLOCK
            connection.sendall(data[at:at + BLOCK])
            if receive(connection, BLOCK) != data[at:at + BLOCK]:
                print("wrong bytes from", result["worker"], flush=True)
                os._exit(1)
            result["bytes"] += BLOCK - 1
        connection.shutdown(socket.SHUT_WR)
        result["whole"] = connection.recv(1) == b""
    except ConnectionError:
        pass


def asks(address, count):
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    results = [{"bytes": 0, "whole": False} for _ in range(count)]
    threads = [threading.Thread(target=ask, args=(socket.create_connection(address), result)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():    # a signal is seen between two of them
            thread.join(0.2)
    for result in results:
        if not result["whole"]:
            print("broken", result["worker"])
    print("whole", sum(result["whole"] for result in results), "bytes", sum(result["bytes"] for result in results))


what, where = sys.argv[1], (sys.argv[2], int(sys.argv[3]))
if what == "asks":
    asks(where, int(sys.argv[4]))
elif what == "fork":
    fork_each(socket.create_server(where, backlog=64))
else:
    crew(where, what == "reuseport")
