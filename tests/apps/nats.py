#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nats.py PORT PAIRS MESSAGES: so many subscribers, each with a publisher, whose messages must come in order and whole."""
import socket
import sys
import threading

port, pairs, messages = map(int, sys.argv[1:])
SIZES = (0, 1, 10, 100, 1000, 8000)
results = [None] * pairs


def message(i):
    return b"%d." % i + bytes([i % 251]) * SIZES[i % len(SIZES)]


def connected():
    sock = socket.create_connection(("127.0.0.1", port))
    file = sock.makefile("rb")
    assert file.readline().startswith(b"INFO ")
    sock.sendall(b'CONNECT {"verbose":false,"pedantic":false}\r\nPING\r\n')
    assert file.readline() == b"PONG\r\n"
    return sock, file


def publish(number):
    sock, file = connected()
    part = []
    for i in range(messages):
        body = message(i)
        part.append(b"PUB subject.%d %d\r\n%s\r\n" % (number, len(body), body))
        if len(part) == 1 + i % 100:
            sock.sendall(b"".join(part))
            part.clear()
    sock.sendall(b"".join(part) + b"PING\r\n")
    while file.readline() != b"PONG\r\n":
        pass
    sock.close()


def pair(number):
    sock, file = connected()
    sock.sendall(b"SUB subject.%d 1\r\nPING\r\n" % number)
    assert file.readline() == b"PONG\r\n"
    publisher = threading.Thread(target=publish, args=(number,))
    publisher.start()
    good = 0
    while good < messages:
        line = file.readline()
        if line == b"PING\r\n":
            sock.sendall(b"PONG\r\n")
            continue
        words = line.split()
        assert words[0] == b"MSG", line
        body = file.read(int(words[-1]) + 2)[:-2]
        assert body == message(good), (good, body[:20])
        good += 1
    publisher.join()
    sock.close()
    results[number] = good


threads = [threading.Thread(target=pair, args=(number,)) for number in range(pairs)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results)
sys.exit(None in results)
