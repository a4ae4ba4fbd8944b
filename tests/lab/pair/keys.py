# SPDX-License-Identifier: MIT
"""keys.py HOST PORT: sets keys of a redis and gets them again until it is ended (SIGTERM), and checks every answer.

Says `pause MS` of each answer that took longer than a twentieth of a second, and at the end how many were checked. A wrong
answer or an error ends it with status 1.
"""
import signal
import socket
import sys
import time

DEPTH, BYTES, KEYS = 16, 4096, 200
ended = False


def end(_signal, _frame):
    global ended
    ended = True


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def value(number):
    return (b"%08d" % number) * (BYTES // 8)


def exchange(connection, question, answer):
    connection.sendall(question)
    got = b""
    while len(got) < len(answer):
        part = connection.recv(len(answer) - len(got))
        if not part:
            sys.exit("the connection has ended")
        got += part
    if got != answer:
        sys.exit("a wrong answer")


def main():
    signal.signal(signal.SIGTERM, end)
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    number = 0
    before = time.monotonic()
    while not ended:
        question = answer = b""
        for _ in range(DEPTH):
            number += 1
            key = b"key:%d" % (number % KEYS)
            question += command(b"SET", key, value(number)) + command(b"GET", key)
            answer += b"+OK\r\n$%d\r\n%s\r\n" % (BYTES, value(number))
        exchange(connection, question, answer)
        now = time.monotonic()
        if now - before > 0.05:
            print("pause", int((now - before) * 1000), flush=True)
        before = now
    print("checked", 2 * number, flush=True)


main()
