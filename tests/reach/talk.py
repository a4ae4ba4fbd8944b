# SPDX-License-Identifier: MIT
"""talk.py KIND ADDRESS PORT FILE: a plain client with one connection, for quick.sh; it knows nothing of Shunt.

KIND is http, redis or memcached. For each line of standard input it does what the line says, and says the line again:
small   asks for something small
large   http: gets /large, which must be FILE; redis and memcached: sets what FILE has, gets it, and compares
"""
import http.client
import socket
import sys

PIECE = 500000  # a value of memcached is less than 1 MB


class Http:
    def __init__(self, address, port):
        self.connection = http.client.HTTPConnection(address, port, timeout=300)

    def get(self, path):
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        body = answer.read()
        assert answer.status == 200, answer.status
        assert not answer.will_close, "the server wants to close the connection"
        return body

    def small(self):
        self.get("/small")

    def large(self, content):
        assert self.get("/large") == content, "other bytes than those of the file"


class Text:
    def __init__(self, address, port):
        self.socket = socket.create_connection((address, port), timeout=300)
        self.file = self.socket.makefile("rwb")

    def say(self, *parts):
        for part in parts:
            self.file.write(part)
        self.file.flush()

    def line(self, wanted):
        line = self.file.readline()
        assert line == wanted, line

    def large(self, content):
        for at in range(0, len(content), PIECE):
            self.pass_on(content[at:at + PIECE])


class Redis(Text):
    def small(self):
        self.say(b"PING\r\n")
        self.line(b"+PONG\r\n")

    def pass_on(self, value):
        self.say(b"*3\r\n$3\r\nSET\r\n$1\r\nv\r\n$%d\r\n" % len(value), value, b"\r\n")
        self.line(b"+OK\r\n")
        self.say(b"GET v\r\n")
        self.line(b"$%d\r\n" % len(value))
        assert self.file.read(len(value) + 2) == value + b"\r\n", "other bytes than were set"


class Memcached(Text):
    def small(self):
        self.say(b"get nothing\r\n")
        self.line(b"END\r\n")

    def pass_on(self, value):
        self.say(b"set v 0 0 %d\r\n" % len(value), value, b"\r\n")
        self.line(b"STORED\r\n")
        self.say(b"get v\r\n")
        self.line(b"VALUE v 0 %d\r\n" % len(value))
        assert self.file.read(len(value) + 7) == value + b"\r\nEND\r\n", "other bytes than were set"


def main():
    kind, address, port, file = sys.argv[1:]
    with open(file, "rb") as opened:
        content = opened.read()
    client = {"http": Http, "redis": Redis, "memcached": Memcached}[kind](address, int(port))
    for line in sys.stdin:
        if line == "small\n":
            client.small()
        else:
            client.large(content)
        print(line, end="", flush=True)


main()
