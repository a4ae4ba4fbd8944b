#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Throws at a running `shunt monitor` what no client would say, for a while, and wants it whole afterwards.

monitor.py SECONDS SEED COMMAND...   COMMAND is `shunt monitor --json --listen 127.0.0.1:0`, with more options or none

Each connection has one of the attacks below, many at once; between them are requests that must be answered rightly.
With AddressSanitizer (--enable-sanitizers) a finding ends the monitor, and its exit status says so.
"""
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time

CROWD = 100
WORDS = [b"GET", b"HEAD", b"POST", b"/", b"/metrics", b"/log", b"/healthz", b" ", b"\r\n", b"\n", b"\r", b"\0", b":", b"HTTP/1.1",
         b"HTTP/1.0", b"HTTP/9.9", b"Host: localhost", b"Host:", b"Content-Length: 5", b"Content-Length: -1",
         b"Content-Length: 99999999999999999999", b"Transfer-Encoding: chunked", b"ffffffffffffffff\r\n", b"0\r\n\r\n",
         b"Accept: application/openmetrics-text", b"Authorization: Bearer ", b"Connection: keep-alive", b"Expect: 100-continue",
         b"Upgrade: websocket", b"Cookie: a=b; c", b"%00", b"%zz", b"?a=b&c", b"\xff\xfe", b"A" * 1000, b"\t", b"Range: bytes=0-"]
WHOLE = b"GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n"


def words(dice):
    return b"".join(dice.choice(WORDS) for _ in range(dice.randrange(1, 60)))


def noise(dice):
    return dice.randbytes(dice.randrange(1, 5000))


def mutant(dice):
    text = bytearray(WHOLE % (dice.choice([b"/metrics", b"/", b"/healthz", b"/log"]),
                              b"".join(dice.choice(WORDS) + b"\r\n" for _ in range(dice.randrange(5)))))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(text))
        kind = dice.randrange(3)
        if kind == 0:
            text[at] = dice.randrange(256)
        elif kind == 1:
            text[at:at] = dice.choice(WORDS)
        else:
            del text[at:at + dice.randrange(1, 9)]
            text = text or bytearray(b"G")
    return bytes(text)


def long_headers(dice):
    return WHOLE % (b"/", b"".join(b"H%d: %s\r\n" % (i, dice.randbytes(20).hex().encode() * dice.randrange(1, 50))
                                   for i in range(dice.randrange(1, 400))))


def long_line(dice):
    return b"GET /" + b"a" * dice.randrange(1, 100000) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"


def partial(dice):
    text = WHOLE % (b"/metrics", b"Accept: */*\r\n")
    return text[:dice.randrange(1, len(text))]


def pipeline(dice):
    return (WHOLE % (dice.choice([b"/metrics", b"/", b"/log"]), b"")) * dice.randrange(2, 200)


def body(dice):
    return b"%s / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        dice.choice([b"GET", b"POST"]), dice.randrange(100000), dice.randbytes(dice.randrange(5000)))


def nothing(_):
    return b""


ATTACKS = [words, noise, mutant, mutant, long_headers, long_line, partial, pipeline, body, nothing]


class Client:
    """It sends a part now and then; it reads, or does not; it ends with a FIN, a RST or half."""

    def __init__(self, dice, port):
        self.stream = socket.socket()
        self.stream.setblocking(False)
        self.stream.connect_ex(("127.0.0.1", port))
        self.left = dice.choice(ATTACKS)(dice)
        self.piece = dice.choice([1, 7, 100, 100000])
        self.reads = dice.random() < 0.7
        self.steps = dice.randrange(1, 30)
        self.last = dice.randrange(3)

    def step(self):
        self.steps -= 1
        try:
            if self.left:
                self.left = self.left[self.stream.send(self.left[:self.piece]):]
            if self.reads:
                self.stream.recv(100000)
            if not self.left and self.last == 0:
                self.stream.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass
        except OSError:
            return False
        return self.steps > 0

    def end(self):
        if self.last == 1:
            self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.stream.close()


def sane(port, path, wanted):
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.settimeout(120)
        stream.sendall(WHOLE % (path, b""))
        answer = b""
        try:
            while got := stream.recv(100000):
                answer += got
        except ConnectionResetError:
            pass    # a crowd has ended it
        if answer and (not answer.startswith(b"HTTP/1.1 200 ") or wanted not in answer):
            sys.exit("%r was answered: %r" % (path, answer[:500]))
        return bool(answer)


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(seed)
    monitor = subprocess.Popen(sys.argv[3:], stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+)/", json.loads(monitor.stdout.readline())["url"])[1])
    until, clients, count, answered, asked = time.monotonic() + seconds, [], 0, 0, 0
    while time.monotonic() < until and monitor.poll() is None:
        while len(clients) < CROWD:
            clients.append(Client(dice, port))
            count += 1
        going = []
        for client in clients:
            if client.step():
                going.append(client)
            else:
                client.end()
        clients = going
        if dice.random() < 0.05:
            asked += 1
            answered += sane(port, *dice.choice([(b"/healthz", b"ok\n"), (b"/metrics", b"# EOF\n"), (b"/", b"</html>")]))
    for client in clients:
        client.end()
    alive = monitor.poll() is None and sane(port, b"/metrics", b"# EOF\n")
    monitor.send_signal(signal.SIGTERM)
    status = monitor.wait()
    print("seed %d: %d connections, %d of %d requests answered between them; exit status %d" % (seed, count, answered, asked, status))
    if not alive or status or not answered:
        sys.exit("it did not survive")


main()
