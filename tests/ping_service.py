#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ping_service.py FILE: a service that waits for its client to speak, and writes what it gets to FILE. Says its port."""
import selectors
import socket
import sys

listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
waits = selectors.DefaultSelector()
waits.register(listener, selectors.EVENT_READ)
while True:
    for key, _ in waits.select():
        if key.fileobj is listener:
            connection, _ = listener.accept()
            waits.register(connection, selectors.EVENT_READ)
            continue
        said = key.fileobj.recv(4096)
        if said:
            with open(sys.argv[1], "ab") as heard:
                heard.write(said)
        else:
            waits.unregister(key.fileobj)
            key.fileobj.close()
