#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""stat_fake.py KIND: listens as a process that offers statistics, says its process id on a line, and answers.

hostile  a whole answer, full of what moves cursors, and as long as it may be
growing  more bytes on the link each time
metrics  names and numbers that would break a text of metrics
large    a whole answer with a million streams that are empty objects; larger: 20 MB of it
trickle  a byte now and then, for ever
full     accepts nobody, and so many have come that no more can
strangers what other users have of it, and that some were refused
silent   on the control socket: accepts, and says nothing
liar     on the control socket: an answer with escapes
"""
import itertools
import json
import os
import socket
import sys
import time

ESCAPES = "\x1b]0;title\x07\x1b[2J\r\x9b31m\u202e\x7f\nshunt: all is well\\"
LONG = "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"


def direction(track, link):
    return {"track": track, "tcp": 1048575, "link": link, "late": link, "late_tcp": 0}


def stream(fd, local, peer, link, **more):
    return {"fd": fd, "local": local, "peer": peer, "state": "linked", "reason": "", "held": "",
            "tx": direction("link", link), "rx": direction("tcp", 0), **more}


def process(link, text=""):
    bytes_ = {"tcp": 0, "link": link, "late": link, "late_tcp": 0}
    return {"schema": 1, "pid": os.getpid(), "program": "fake" + text, "device": "soft" + text, "reason": text and 40 * (text + " "),
            "uptime_ms": link // 1000, "counters": {"wr" + text: link, "idle": 7},
            "registering": {"measured": not text, "from_bytes": 1 << 18}, "reasons": {"why" + text: 3},
            "totals": {"streams": 3, "linked": 2, "tx": bytes_, "rx": bytes_},
            "lanes": 2 * [{"peer": 1, "lane": 0, "streams": 1, "wr": link, "doorbells": 1, "wr_bytes": link,
                           "bound_by": "ring" + text}],
            "links": [{"peer": 1, "device": "soft" + text, "lanes": 2, "streams": 3, "memory_registered": 1 << 50,
                       "memory_mapped": 1 << 50, "idle_ms": 1500}],
            "devices": [{"name": "rxe0" + text, "port": 1, "hw_counters": {"rcvd_rnr_err" + text: link, "idle": 0}}],
            "histograms": {"send_bytes": [0, 1, 0, 1, 98], "link_ns": 12 * [0] + [5, text]},
            "streams": [stream(7, "127.0.0.1:40000", "255.255.255.255:65535", link, recvq=1 << 50, sendq=1 << 50, staged=1 << 50,
                               ring_bytes=4, ring_fill=1, idle_ms=12345678),
                        stream(12345, LONG, LONG, link, state="candidate", held="operator" + text),
                        stream(8, "l" + text, "p" + text, link, state="s" + text, reason=text + 60 * "why ")]}


def metrics():
    stream = {"fd": 1, "local": "a\\\"b", "peer": "c\n", "state": "linked", "sendq": 7, "recvq": -1, "ring_fill": 2**63 - 1}
    return {"pid": 1, "program": '"}\\\n', "device": "d" * 500, "uptime_ms": 1005, "totals": {"tx": {"tcp": 5, "late": "x"}, "rx": 3},
            "counters": {"upgrades": 5, "failovers": -1, "wr": 1.5, "polls": None, "lanes": [1]},
            "reasons": {"why %d\u202e\n" % i: i for i in range(1000)} | {"long" * 100: 1}, "left": [1, 2], "stalls": {"": 1},
            "streams": 3 * [stream] + [5, None, "x"], "lanes": 2 * [{"peer": 1, "lane": 0, "device": "x", "streams": 1}],
            "histograms": {"send_bytes": [1, 2, -5, "x", 3], "link_ns": 64 * [1]}, "qos": {"classes": 2 * [{"name": "gold", "clients": 1}]},
            "links": [{"peer": "p", "memory_mapped": 2**63 - 1}] * 9, "devices": [{"name": "x", "hw_counters": {"rnr\n": 1}}]}


def answers(kind):
    link = 1 << 30
    while True:
        said = metrics() if kind == "metrics" else process(link, ESCAPES if kind == "hostile" else "")
        if kind == "strangers":
            said["strangers"] = {"links": 3, "links_most": 64, "unproven": 1, "unproven_most": 256, "co_listeners": 0,
                                 "co_listeners_most": 64, "address_space": 6 << 30, "address_space_most": 8 << 40, "refused": 17,
                                 "more_most": 5}
        text = json.dumps(said, ensure_ascii=False)
        yield text.encode("utf-8", "surrogateescape")
        link += 1 << 30


def large(bytes_):
    streams = b"{}," * (bytes_ // 3)
    return b'{"schema":1,"pid":1,"program":"large","uptime_ms":1,"streams":[' + streams + b"{}]}"


def trickle(listener):
    clients = []
    listener.settimeout(0.1)
    while True:
        try:
            clients.append(listener.accept()[0])
        except TimeoutError:
            pass
        for client in clients:
            try:
                client.send(b" ")
            except OSError:
                pass


def main():
    kind = sys.argv[1]
    control = kind in ("silent", "liar")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET if control else socket.SOCK_STREAM)
    listener.bind("\0shunt/%s/%s" % ("adm" if control else "stat", os.urandom(16).hex()))
    listener.listen(0 if kind == "full" else 100)
    early = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if kind == "full":
        early.connect(listener.getsockname())
    print(os.getpid(), flush=True)
    if kind == "trickle":
        trickle(listener)
    if kind == "full":
        time.sleep(1000)
    kept = []
    sizes = {"large": 3 << 20, "larger": 20 << 20}
    for answer in itertools.repeat(large(sizes[kind])) if kind in sizes else answers(kind):
        client = listener.accept()[0]
        try:
            if kind == "liar":
                client.recv(1000)
                client.send(b"+" + ESCAPES.encode())
            elif kind == "silent":
                kept.append(client)
            else:
                client.sendall(answer)
        except OSError:
            pass        # it was looking for another process
        client = None


if __name__ == "__main__":
    main()
