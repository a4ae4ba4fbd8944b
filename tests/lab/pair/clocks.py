#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether times of followed sends are right between two machines. For trace.sh.

clocks.py tell PORT               tells its CLOCK_MONOTONIC to one who asks
clocks.py compare HOST PORT       asks 300 times; says by how much that clock is ahead, and half the shortest round trip
clocks.py serve PORT FILE         answers requests, and writes down the times that each bears
clocks.py ask HOST PORT           sends requests until it is ended: its clock before the send, and behind the send before
clocks.py check FILE TRACE AHEAD ERROR
                                  each send in TRACE (`shunt adm PROCESS trace`) was called between its two times in FILE,
                                  by a clock that is AHEAD of theirs, within both errors; says how many there are
"""
import json
import socket
import struct
import sys
import time

REQUEST = struct.Struct("=QQ84x")
ANSWER = 10


def receive(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        if not more:
            sys.exit(0)
        data += more
    return data


def listen(port):
    listener = socket.create_server(("0.0.0.0", port))
    stream, _ = listener.accept()
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def tell(port):
    stream = listen(port)
    while receive(stream, 1):
        stream.sendall(struct.pack("=Q", time.monotonic_ns()))


def compare(host, port):
    stream = socket.create_connection((host, port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    best = None
    for _ in range(300):
        before = time.monotonic_ns()
        stream.sendall(b".")
        theirs, = struct.unpack("=Q", receive(stream, 8))
        after = time.monotonic_ns()
        if best is None or after - before < best[0]:
            best = after - before, theirs - (before + after) // 2
    print(best[1], best[0] // 2 + 1)


def serve(port, name):
    stream = listen(port)
    with open(name, "w", encoding="ascii") as file:
        while True:
            print(*REQUEST.unpack(receive(stream, REQUEST.size)), file=file, flush=True)
            stream.sendall(b"a" * ANSWER)


def ask(host, port):
    stream = socket.create_connection((host, port))
    after = 0
    while True:
        before = time.monotonic_ns()
        stream.sendall(REQUEST.pack(before, after))
        after = time.monotonic_ns()
        receive(stream, ANSWER)
        time.sleep(0.02)


def check(name, trace, ahead, error):
    with open(name, encoding="ascii") as file:
        stamps = [tuple(map(int, line.split())) for line in file]
    with open(trace, encoding="ascii") as file:
        records = json.load(file)["records"]
    seen = wrong = 0
    for record in records:
        at = record["end"] // REQUEST.size - 1
        if record["answer"] or at + 1 >= len(stamps):
            continue
        seen += 1
        most = error + record["error_ns"]
        least, last = stamps[at][0] + ahead - most, stamps[at + 1][1] + ahead + most
        if not least <= record["called_ns"] <= last:
            wrong += 1
            print(f"send {at}: called at {record['called_ns']}, not from {least} to {last}", file=sys.stderr)
    errors = sorted(record["error_ns"] for record in records) or [0]
    print(f"{seen} sends, {wrong} wrong; error of the engine {errors[len(errors) // 2] / 1000:.0f} us, of this test {error / 1000:.0f} us")
    sys.exit(seen < 20 or wrong > 0)


what, arguments = sys.argv[1], sys.argv[2:]
{"tell": lambda port: tell(int(port)),
 "compare": lambda host, port: compare(host, int(port)),
 "serve": lambda port, name: serve(int(port), name),
 "ask": lambda host, port: ask(host, int(port)),
 "check": lambda name, trace, ahead, error: check(name, trace, int(ahead), int(error))}[what](*arguments)
