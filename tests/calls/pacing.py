# SPDX-License-Identifier: MIT
"""The program's end of pacing.sh.

server: says its port. A connection's first line says what it wants: "send": bytes until it has gone, "take": they are
taken. fork server: a child each.
option PORT: connects and tells what SO_MAX_PACING_RATE says at each step; a line of input ends each wait.
send|take PORT: the same from the other end; a line "begun"."""
import os
import socket
import struct
import sys
import threading

RATE = 47  # SO_MAX_PACING_RATE
BLOCK = b"x" * 65536


def send(c):
    try:
        while True:
            c.sendall(BLOCK)
    except OSError:
        pass


def take(c):
    try:
        while c.recv(1 << 20):
            pass
    except OSError:
        pass


def get(c, length):
    try:
        return c.getsockopt(socket.SOL_SOCKET, RATE, length).hex() if length else c.getsockopt(socket.SOL_SOCKET, RATE)
    except OSError as e:
        return os.strerror(e.errno)


def put(c, value):
    try:
        c.setsockopt(socket.SOL_SOCKET, RATE, value)
        return "set"
    except OSError as e:
        return os.strerror(e.errno)


def tell(c, put_line):
    """All that can be asked and set; the last value is 1,000,000."""
    values = [b"", struct.pack("Q", 10 ** 6), b"abc", struct.pack("Q", 1 << 40), struct.pack("I", 1234567),
              struct.pack("Q", (1 << 64) - 1), struct.pack("I", (1 << 32) - 1), struct.pack("Q", (1 << 32) - 1),
              b"\0" * 4, struct.pack("Q", 1 << 33) + b"more", struct.pack("Q", 10 ** 6)]
    for value in values:
        put_line(f"{value.hex()}: {put(c, value)}; " + " ".join(str(get(c, length)) for length in range(13)))


def serve(c):
    with c, c.makefile("rb") as lines:
        what = lines.readline()
        if what == b"send\n":
            send(c)
        elif what == b"take\n":
            take(c)
        elif what == b"option\n":
            tell(c, lambda line: c.sendall(f"accepted: {line}\n".encode()))
            c.sendall(b"end\n")
            lines.readline()
            lines.readline()
            tell(c, lambda line: c.sendall(f"accepted: {line}\n".encode()))
            c.shutdown(socket.SHUT_WR)
            take(c)


def server(forks):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    print("port", listener.getsockname()[1], flush=True)
    while True:
        c = listener.accept()[0]
        if not forks:
            threading.Thread(target=serve, args=(c,), daemon=True).start()
        elif not os.fork():
            listener.close()
            serve(c)
            os._exit(0)
        else:
            c.close()


def client(what, port):
    c = socket.create_connection(("127.0.0.1", port))
    c.sendall(what.encode() + b"\n")
    if what == "option":
        lines = c.makefile()
        for line in iter(lines.readline, "end\n"):
            print(line, end="")
        tell(c, lambda line: print("connected:", line))
        c.sendall(b"more\n")  # the kernel shows a rate that it uses
        print("ready", flush=True)
        sys.stdin.readline()
        tell(c, lambda line: print("connected:", line))
        c.sendall(b"go on\n")
        sys.stdout.write(lines.read())
        return
    threading.Thread(target=take if what == "send" else send, args=(c,), daemon=True).start()
    print("begun", flush=True)
    sys.stdin.readline()


if sys.argv[1] in ("server", "forking"):
    server(sys.argv[1] == "forking")
else:
    client(sys.argv[1], int(sys.argv[2]))
