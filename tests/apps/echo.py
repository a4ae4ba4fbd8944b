#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""echo.py KIND PORT CLIENTS ROUNDS [CERTIFICATE]: clients that check each byte that comes back."""
import asyncio
import concurrent.futures
import hashlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.managers
import os
import socket
import ssl
import subprocess
import sys
import threading

kind, port, clients, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
context = None
if len(sys.argv) > 5 and sys.argv[5]:
    context = ssl.create_default_context(cafile=sys.argv[5])
SIZES = (1, 7, 100, 1000, 16384, 70000, 300000)


def message(number, i):
    size = SIZES[(number + i) % len(SIZES)]
    return (hashlib.sha512(b"%d.%d" % (number, i)).digest() * (size // 64 + 1))[:size]


def connected():
    sock = socket.create_connection(("127.0.0.1", port))
    return context.wrap_socket(sock, server_hostname="localhost") if context else sock


def receive(sock, wanted):
    got = bytearray()
    while len(got) < len(wanted):
        part = sock.recv(len(wanted) - len(got))
        if not part:
            raise EOFError
        got += part
    assert got == wanted


def client(number):
    """Sends from one thread and reads in another, for what is under way is more than buffers hold."""
    if context:
        return tls_client(number)
    with connected() as sock:
        def send():
            for i in range(rounds):
                sock.sendall(message(number, i))
            sock.shutdown(socket.SHUT_WR)
        sender = threading.Thread(target=send)
        sender.start()
        for i in range(rounds):
            receive(sock, message(number, i))
        sender.join()
        assert sock.recv(1) == b""
    return rounds


def tls_client(number):
    """In turns, in pieces that buffers hold: before Python 3.13 no two threads may use one TLS connection at once."""
    with connected() as sock:
        for i in range(rounds):
            wanted = message(number, i)
            for start in range(0, len(wanted), 10000):
                sock.sendall(wanted[start:start + 10000])
                receive(sock, wanted[start:start + 10000])
    return rounds


async def one_asyncio(number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context,
                                                   server_hostname="localhost" if context else None)
    for i in range(rounds):
        wanted = message(number, i)
        writer.write(wanted)
        assert await reader.readexactly(len(wanted)) == wanted
    writer.close()
    await writer.wait_closed()
    return rounds


async def all_asyncio():
    return await asyncio.gather(*(one_asyncio(number) for number in range(clients)))


def square(n):
    return n * n


def answer(address):
    with multiprocessing.connection.Client(address, authkey=b"secret") as peer:
        while (asked := peer.recv()) is not None:
            peer.send([asked, len(asked)])


def all_multiprocessing():
    """Managers and connections over TCP of this host, pools and queues beside them."""
    with multiprocessing.connection.Listener(("127.0.0.1", 0), authkey=b"secret") as listener:
        child = multiprocessing.Process(target=answer, args=(listener.address,))
        child.start()
        with listener.accept() as peer:
            for i in range(200):
                peer.send("x" * (i * 100))
                assert peer.recv() == ["x" * (i * 100), i * 100]
            peer.send(None)
        child.join()
        print("child", child.exitcode)
    for method in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sum(pool.map(square, range(1000))))
    manager = multiprocessing.managers.SyncManager(("127.0.0.1", 0), authkey=b"secret")
    manager.start()
    shared = manager.dict()
    workers = [multiprocessing.Process(target=shared.update, args=({i: i * i},)) for i in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sorted(shared.items()))
    manager.shutdown()


def all_subprocess():
    """Programs that are given a connection as their standard streams."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sock = socket.create_connection(listener.getsockname())
        given, _ = listener.accept()
        sock.sendall(b"before")
        print(given.recv(6))
        program = subprocess.Popen(["tr", "a-z", "A-Z"], stdin=given, stdout=given)
        given.close()
        sock.sendall(b"some text " * 10000)
        sock.shutdown(socket.SHUT_WR)
        got = b"".join(iter(lambda: sock.recv(65536), b""))
        print(got == b"SOME TEXT " * 10000, program.wait())
        print(subprocess.run(["sh", "-c", "echo out; exit 3"], capture_output=True, check=False))


if __name__ == "__main__":
    if kind == "threads":
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            print(sum(pool.map(client, range(clients))))
    elif kind == "asyncio":
        print(sum(asyncio.run(all_asyncio())))
    elif kind == "processes":
        with multiprocessing.Pool(clients) as pool:
            print(sum(pool.map(client, range(clients))))
    elif kind == "multiprocessing":
        all_multiprocessing()
    elif kind == "subprocess":
        all_subprocess()
