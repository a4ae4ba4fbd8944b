#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ends of shunt ping that lie.

ping_liar.py long|garbage|hangup|flood  serves: a banner without an end; one that is no JSON; none at all; one that is
                                        sound, and answers of the wrong length behind it. Says its port
ping_liar.py ask PORT                   asks an answering end for nonsense: is it hung up on each time?
"""
import socket
import struct
import sys
import threading

BANNER = b"shunt-ping 1 "


def lie(connection, kind):
    with connection:
        try:
            if kind == "long":
                connection.sendall(BANNER + b"[" * 200000)
            elif kind == "garbage":
                connection.sendall(BANNER + b'{"devices": \x1b[2J}\n')
            elif kind == "flood":
                connection.sendall(BANNER + b'{"devices": 4, "peer": [], "boot": "\\u001b[2J"}\n')
                while connection.recv(4096):
                    connection.sendall(b"SPGs\xff\xff\xff\xff" + b"x" * 100)
            else:
                return
            while connection.recv(4096):
                pass
        except OSError:
            pass


def serve(kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=lie, args=(connection, kind), daemon=True).start()


def ask(port):
    nonsense = [b"GET / HTTP/1.0\r\n\r\n", b"SPGe\xff\xff\xff\xff", b"SPGs\0\0\0\1", b"SPGx\0\0\0\0", b"\0" * 4096]
    for words in nonsense:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.settimeout(60)
            reader = connection.makefile("rb")
            assert reader.readline().startswith(BANNER)
            connection.sendall(words)
            try:
                assert reader.read() == b"", words
            except ConnectionResetError:
                pass
    with socket.create_connection(("127.0.0.1", port)) as connection:
        reader = connection.makefile("rb")
        reader.readline()
        for byte in b"SPGe" + struct.pack("!I", 3) + b"abc":
            connection.sendall(bytes([byte]))
        assert reader.read(11) == b"SPGe\0\0\0\3abc"
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    for connection in crowd:
        connection.close()


if sys.argv[1] == "ask":
    ask(int(sys.argv[2]))
else:
    serve(sys.argv[1])
