#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain ends of a connection between two network namespaces, and those who mean no good, for meeting.sh.

meet.py server ADDRESS PORT [WORKERS]	answers each byte with itself, in so many processes; ends with its standard input
meet.py client ADDRESS PORT LOG		says what LOG, which Shunt writes, decides about its connection, and whether bytes are right
meet.py squat DIRECTORY ADDRESS PORT HOW	takes the name: silent, hang-up, noise; refuse, elsewhere, circle, accept (what cannot be):
		answers to claims; dead, link, file: nobody is there
meet.py claim NAME ADDRESS PORT FROM FROM_PORT	claims a connection that it does not hold; says what it hears; asks for a proof if
		it is told to, by a line
"""
import os
import pathlib
import select
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reach"))
import enemy  # noqa: E402

LARGE = 3000000
OWN = bytes(range(16))	# an identity


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def name_of(address, port):
    return f"tcp-{'' if ':' in address else '::ffff:'}{address}:{port}"


# --- plain programs ---

def echo(sock):
    while True:
        some = sock.recv(65536)
        if not some:
            sock.close()
            return
        sock.sendall(some)


def accept_all(listener):
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()


def server(address, port, workers="0"):
    with socket.socket(family(address)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen(64)
        children = []
        for _ in range(int(workers)):
            children.append(os.fork())
            if not children[-1]:
                accept_all(listener)
        if not children:
            threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
        print("listens", flush=True)
        sys.stdin.read()
        for child in children:
            os.kill(child, 15)
            os.waitpid(child, 0)


def says(log):
    for line in log.read_text(encoding="ascii").splitlines() if log.exists() else []:
        for sign in (": on a link to process", ": stays on TCP: "):
            if sign in line:
                return "on a link" if "link" in sign else line.split(sign)[1]
    return None


def trade(sock, data):
    sender = threading.Thread(target=sock.sendall, args=(data,))
    sender.start()
    heard = b""
    while len(heard) < len(data):
        some = sock.recv(1 << 20)
        if not some:
            break
        heard += some
    sender.join()
    assert heard == data, "other bytes than those that were sent"


def client(address, port, log):
    with socket.create_connection((address, int(port)), timeout=300) as sock:
        while not says(pathlib.Path(log)):
            trade(sock, b"small")
        trade(sock, b"small")	# both directions are where they belong
        trade(sock, os.urandom(LARGE))
        print(f"{says(pathlib.Path(log))}; right", flush=True)
        sys.stdin.read()


# --- no good ---

def answer(sock, how):
    """A link whose acceptor lies about what it has."""
    channel = enemy.Channel(sock, False)
    channel.meet()
    if not channel.await_(enemy.HELLO):
        return
    enemy.hello(channel, nonces=1)
    heard = channel.await_(enemy.CLAIM)
    while heard:
        stream = struct.unpack_from("=I", heard.data, 60)[0]
        if how == "refuse":
            channel.refuse(stream)
        elif how == "accept":
            channel.send(enemy.ACCEPT, stream, struct.pack("=QIIII", 2**62, 3, 0, 0, 99))
        else:
            channel.send(enemy.REDIRECT, stream, os.urandom(16) if how == "elsewhere" else OWN)
        heard = channel.await_(enemy.CLAIM)


def squat(directory, address, port, how):
    path = f"{directory}/{name_of(address, port)}"
    if how == "link":
        os.symlink(f"{directory}/elsewhere", path)
        path = f"{directory}/elsewhere"
    elif how == "file":
        pathlib.Path(path).touch()
    if how != "file":
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door.bind(path)
        os.chmod(path, 0o666)
        if how == "circle":
            os.link(path, f"{directory}/link-{OWN.hex()}")
    if how == "dead":
        door.close()
    elif how != "file":
        door.listen(64)
    print("squats", flush=True)
    came = 0
    while how not in ("file", "dead") and 0 not in (ready := select.select([0, door], [], [])[0]):
        assert ready
        sock, _ = door.accept()
        came += 1
        if how == "hang-up":
            sock.close()
        elif how == "noise":
            sock.send(os.urandom(enemy.MESSAGE))
        elif how in ("refuse", "elsewhere", "circle", "accept"):
            threading.Thread(target=answer, args=(sock, how), daemon=True).start()
    sys.stdin.read()
    print(f"came {came}", flush=True)


def claim(name, address, port, where, where_port):
    channel = enemy.Channel.to(name)
    end = enemy.End(socket.inet_aton(where), int(where_port), socket.inet_aton(address), int(port))
    channel.meet()
    enemy.hello(channel, nonces=1)
    heard = channel.await_(enemy.HELLO)
    if not heard:
        print("no HELLO")
        return
    enemy.claim(channel, end)
    heard = channel.await_(enemy.ACCEPT)
    print("accepted" if heard else f"refused {enemy.Channel.refused}", flush=True)
    order = sys.stdin.readline()
    if order == "ask\n":	# as nobody may on such a link
        enemy.Proof(channel, end).ask()
        while channel.receive():
            pass
        print("hung up", flush=True)
    elif order == "expect\n":
        number = struct.unpack_from("=I", heard.data, 20)[0]
        channel.send(enemy.CONFIRM, number)
        print("told its place" if channel.await_(enemy.NONCE) else "not told", flush=True)
        channel.send(enemy.EXPECT, number)
    sys.stdin.read()


if __name__ == "__main__":
    {"server": server, "client": client, "squat": squat, "claim": claim}[sys.argv[1]](*sys.argv[2:7])
