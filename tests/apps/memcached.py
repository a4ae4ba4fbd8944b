#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""memcached.py PORT CLIENTS ROUNDS [LARGEST]: threads that set, get and delete values, and look at each byte."""
import hashlib
import random
import socket
import sys
import threading

port, clients, rounds, largest = map(int, (*sys.argv[1:], 4000000)[:4])
failed = []


def value_of(key, length):
    return (hashlib.sha512(key).digest() * (length // 64 + 1))[:length]


def line(file):
    return file.readline().rstrip(b"\r\n")


def client(number):
    chance = random.Random(number)
    kept = {}
    with socket.create_connection(("127.0.0.1", port)) as sock, sock.makefile("rwb") as file:
        for i in range(rounds):
            key = b"k%d.%d" % (number, i)
            length = chance.choice((1, 10, 100, 1000, 10000, 100000)) if i % 100 else largest
            value = value_of(key, length)
            file.write(b"set %s 0 0 %d\r\n%s\r\n" % (key, length, value))
            file.flush()
            assert line(file) == b"STORED"
            kept[key] = length
            # several at once, in pieces as they come
            asked = chance.sample(sorted(kept), min(5, len(kept)))
            file.write(b"get " + b" ".join(asked) + b"\r\n")
            file.flush()
            for key in asked:
                assert line(file) == b"VALUE %s 0 %d" % (key, kept[key])
                assert file.read(kept[key]) == value_of(key, kept[key])
                assert line(file) == b""
            assert line(file) == b"END"
            if len(kept) > 20:
                key = chance.choice(sorted(kept))
                file.write(b"delete %s noreply\r\nget %s\r\n" % (key, key))
                file.flush()
                assert line(file) == b"END"
                del kept[key]


def checked(number):
    try:
        client(number)
    except BaseException as error:
        failed.append(repr(error))


threads = [threading.Thread(target=checked, args=(i,)) for i in range(clients)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(failed) or "all as expected")
sys.exit(bool(failed))
