#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ends of a stream that never ends.

top_load.py server        says its port, accepts, and reads for ever
top_load.py client PORT   connects, says so, and sends for ever
"""
import socket
import sys


def main():
    if sys.argv[1] == "server":
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        stream, _ = listener.accept()
        while stream.recv(1 << 16):
            pass
        return
    stream = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    print("connected", flush=True)
    while True:
        stream.sendall(bytes(1 << 16))


main()
