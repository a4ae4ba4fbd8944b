#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""echod.py KIND PORT CERTIFICATE KEY: sends back what comes, in one of the ways in which Python serves."""
import asyncio
import os
import selectors
import signal
import socket
import socketserver
import ssl
import sys
import threading

kind, port = sys.argv[1], int(sys.argv[2])


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)


def classes(mixin):
    class Server(mixin, socketserver.TCPServer):
        allow_reuse_address = True
        request_queue_size = 100
        daemon_threads = True
        block_on_close = False
    return Server


def serve(server):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server.serve_forever()


def threads():
    serve(classes(socketserver.ThreadingMixIn)(("127.0.0.1", port), Echo))


def forking():
    serve(classes(socketserver.ForkingMixIn)(("127.0.0.1", port), Echo))


def tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[3:5])

    class Server(classes(socketserver.ThreadingMixIn)):
        def get_request(self):
            sock, address = super().get_request()
            return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), address

    serve(Server(("127.0.0.1", port), Echo))


def pool():
    """Children that accept on a listener of their parent."""
    listener = socket.create_server(("127.0.0.1", port), backlog=100)
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=lambda s=sock: echo_blocking(s), daemon=True).start()
        children.append(child)

    def end(*_):
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    while True:
        signal.pause()


def echo_blocking(sock):
    with sock:
        while data := sock.recv(65536):
            sock.sendall(data)


async def serve_asyncio():
    async def client(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: os._exit(0))
    server = await asyncio.start_server(client, "127.0.0.1", port, backlog=100)
    await server.serve_forever()


def serve_selectors():
    """Level-triggered, by hand, with partial writes."""
    chosen = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", port), backlog=100)
    listener.setblocking(False)
    chosen.register(listener, selectors.EVENT_READ)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        for key, events in chosen.select():
            if key.fileobj is listener:
                sock, _ = listener.accept()
                sock.setblocking(False)
                chosen.register(sock, selectors.EVENT_READ, bytearray())
            else:
                step(chosen, key.fileobj, key.data, events)


def step(chosen, sock, waiting, events):
    try:
        if events & selectors.EVENT_READ:
            data = sock.recv(65536)
            if not data:
                raise ConnectionError
            waiting += data
        if waiting:
            del waiting[:sock.send(waiting)]
    except BlockingIOError:
        pass
    except OSError:
        chosen.unregister(sock)
        sock.close()
        return
    wanted = selectors.EVENT_WRITE if waiting else selectors.EVENT_READ
    chosen.modify(sock, wanted, waiting)


{"asyncio": lambda: asyncio.run(serve_asyncio()), "threads": threads, "selectors": serve_selectors,
 "tls": tls, "forking": forking, "pool": pool}[kind]()
