#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A peer that speaks an older version of the wire format, and carries its connection over TCP as it must then.

older.py serve         listens, and has the rendezvous of its address; echoes what one client says. Says "port N" first,
                       at last "knocked N", how often somebody came to the rendezvous
older.py stay          the same for any number of clients, until it is ended, and echoes nothing
older.py knock PORT    knocks at the rendezvous of a shunted server and says what came of it; then uses a connection
"""
import os
import socket
import struct
import sys
import threading

sys.dont_write_bytecode = True
import wire  # noqa: E402

MESSAGE = 320		# include/shunt/wire.h
KNOCK = 15
NAME = "\0shunt/tcp/::ffff:127.0.0.1:"
knocked = 0


def send_knock(channel):
    who = struct.pack("iII", os.getpid(), os.geteuid(), os.getegid())
    message = struct.pack("<IIII", KNOCK, 0, wire.MAGIC, wire.VERSION - 1).ljust(MESSAGE, b"\0")
    channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, who)])


def heard(channel):
    """What the other end says until it hangs up."""
    messages = []
    try:
        while said := channel.recv(MESSAGE):
            messages.append(said)
    except ConnectionResetError:
        pass
    return messages


def doorkeeper(door):
    global knocked
    while True:
        channel, _ = door.accept()
        knocked += 1
        with channel:
            try:
                send_knock(channel)
            except OSError:
                pass
            heard(channel)


def offer(listener):
    """The rendezvous of its address; returns its port."""
    port = listener.getsockname()[1]
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.bind(NAME + str(port))
    door.listen()
    threading.Thread(target=doorkeeper, args=(door,), daemon=True).start()
    return port


def serve():
    listener = socket.create_server(("127.0.0.1", 0))
    print("port", offer(listener), flush=True)
    stream, _ = listener.accept()
    while said := stream.recv(4096):
        stream.sendall(said)
    print("knocked", knocked, flush=True)


def stay():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = offer(listener)
        print("port", port, flush=True)
        kept = []
        while True:
            kept.append(listener.accept())


def knock(port):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
        channel.settimeout(120)
        channel.connect(NAME + port)
        try:
            send_knock(channel)
        except OSError:
            pass
        said = heard(channel)
    kinds = [struct.unpack_from("<I", message)[0] for message in said]
    print("hung up after", *kinds, flush=True)
    with socket.create_connection(("127.0.0.1", int(port))) as stream:
        for _ in sys.stdin:
            stream.sendall(b"said")
            left = 4
            while left:
                left -= len(stream.recv(left))
            print("used", flush=True)


{"serve": serve, "stay": stay, "knock": knock}[sys.argv[1]](*sys.argv[2:])
