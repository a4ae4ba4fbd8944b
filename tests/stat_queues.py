# SPDX-License-Identifier: MIT
"""What waits in a connection, by `shunt stat`: the bytes that its ends have counted themselves.

stat_queues.py SHUNT           both ends shunted: what one has sent and the other has not read, on the link; how many
                               bytes were sent, and in how many sends of which size
stat_queues.py SHUNT flips     the same queues while flip moves the directions between the tracks
stat_queues.py end server|client [PORT]   one end, which does what its lines say
"""
import json
import random
import socket
import subprocess
import sys
import time

CHUNK = 8192
BUCKETS = 24


class Counted:
    """A socket that counts its sends by powers of two."""

    def __init__(self, counts):
        self.counts = counts

    def use(self, stream):
        self.stream = stream
        self.recv, self.setblocking, self.close = stream.recv, stream.setblocking, stream.close

    def send(self, data):
        sent = self.stream.send(data)
        self.counts[min(sent.bit_length() - 1, BUCKETS - 1)] += 1
        return sent


def fill(stream):
    """Sends until there is no room; how many bytes."""
    stream.setblocking(False)
    sent = 0
    try:
        while True:
            sent += stream.send(b"x" * CHUNK)
    except BlockingIOError:
        pass
    stream.setblocking(True)
    return sent


def read(stream, count):
    while count:
        count -= len(stream.recv(min(count, 65536)))
    return 0


def end(role, port=0):
    if role == "server":
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
    stream = Counted(BUCKETS * [0])

    def connect():
        stream.use(listener.accept()[0] if role == "server" else socket.create_connection(("127.0.0.1", port)))
        return 0

    deeds = {"fill": lambda: fill(stream), "read": lambda n: read(stream, n), "write": lambda n: stream.send(b"x" * n),
             "counts": lambda: json.dumps(stream.counts), "close": lambda: stream.close() or 0, "connect": connect}
    for line in sys.stdin:
        deed, *count = line.split()
        print(deeds[deed](*map(int, count)), flush=True)


class End:
    def __init__(self, wrap, *arguments):
        self.process = subprocess.Popen([*wrap, sys.executable, __file__, "end", *arguments], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def hear(self):
        return json.loads(self.process.stdout.readline())

    def do(self, line):
        self.tell(line)
        return self.hear()

    def end(self):
        self.process.stdin.close()
        check("an exit status", self.process.wait(), 0)


def check(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, not %r" % (what, got, wanted))


def on_way(stream):
    """It may still come to the link."""
    check("why it is on TCP", stream["reason"], "")
    return stream


def main(shunt):
    server = End([shunt, "run"], "server")
    client = End([shunt, "run"], "client", server.process.stdout.readline().strip())

    def said(which):
        return json.loads(subprocess.check_output([shunt, "stat", "--json", str(which.process.pid)]))[0]

    def stream(which):
        (only,) = said(which)["streams"]
        return only

    exchanged = 0

    def connect():
        client.do("connect")
        server.do("connect")

    def exchange():
        nonlocal exchanged
        exchanged += 10
        client.do("write 10")
        server.do("read 10")
        server.do("write 10")
        client.do("read 10")

    connect()
    exchange()
    while [on_way(stream(which))[way]["track"] for which in (client, server) for way in ("tx", "rx")] != 4 * ["link"]:
        exchange()
        time.sleep(0.01)
    for which in client, server:
        check("idle queues", [stream(which)[queue] for queue in ("sendq", "recvq", "staged")], [0, 0, 0])

    sent = client.do("fill")
    at_client, at_server = stream(client), stream(server)
    check("what waits at both ends", at_client["sendq"] + at_server["recvq"], sent)
    check("what waits the other way", (at_server["sendq"], at_client["recvq"]), (0, 0))
    check("what the queue pair was not given", at_client["staged"], at_client["sendq"])
    check("the ring", at_client["ring_fill"] + at_client["credit"], at_client["ring_bytes"])
    check("room in the ring", at_client["credit"], 0)
    check("the window within a host", at_client["window"], 65536)
    check("the state of TCP", at_client["tcp_state"], "ESTAB")
    server.do("read %d" % (sent - 1))
    check("the last byte", stream(client)["sendq"] + stream(server)["recvq"], 1)
    server.do("read 1")
    for which in client, server:
        check("queues that were read", [stream(which)[queue] for queue in ("sendq", "recvq", "staged")], [0, 0, 0])

    everything = said(client)
    (link,), (lane,) = everything["links"], everything["lanes"]
    check("the peer", [link["peer"], lane["peer"], at_client["peer_pid"]], 3 * [server.process.pid])
    check("the lane", (at_client["lane"], lane["lane"], link["lanes"]), (0, 0, 1))
    check("streams of the link", (link["streams"], lane["streams"]), (1, 1))
    check("its memory", link["memory_registered"], everything["counters"]["memory_registered"])
    check("in flight", (lane["inflight_bytes"], lane["inflight_wr"]), (0, 0))
    check("is there a window", lane["window_bytes"] > 0 and lane["window_wr"] > 0, True)

    for size in (1, 2, 3, 4095, 4096, 65536, 9000000):
        for _ in range(40 if size < 9000000 else 1):
            client.tell("write %d" % size)
            server.do("read %d" % size)
            check("a send", client.hear(), size)
    for closed in False, True, False:  # the last is another connection, perhaps in the memory of the first
        for which in client, server:
            everything = said(which)
            sums, times = everything["totals"]["tx"], everything["histograms"]["link_ns"]
            check("the bytes", sums["tcp"] + sums["link"], sent + 40 * (6 + 2 * 4096 - 1 + 65536) + 9000000 +
                  exchanged if which is client else exchanged)
            check("the sends by size", everything["histograms"]["send_bytes"], which.do("counts"))
            if which is client:
                signaled = everything["counters"]["wr_signaled"]
                check("one of 32 is timed", 0 < sum(times) <= min(signaled, everything["counters"]["wr"] // 32), True)
            check("streams", len(everything["streams"]), 0 if closed else 1)
        if closed:
            connect()
            exchange()
        else:
            for which in client, server:
                which.do("close")
    client.end()
    server.end()


def flips(shunt):
    """Whatever track bytes have taken: those that wait are those that were sent and not read."""
    server = End([shunt, "run"], "server")
    client = End([shunt, "run"], "client", server.process.stdout.readline().strip())
    chance = random.Random(1)
    unread = total = 0

    def stream(which):
        return json.loads(subprocess.check_output([shunt, "stat", "--json", str(which.process.pid)]))[0]["streams"][0]

    def waiting():
        at_client, at_server = stream(client), stream(server)
        return -1 if at_client["sendq"] is None else at_client["sendq"] + at_server["recvq"]

    client.do("connect")
    server.do("connect")
    for count in (10, 10):
        client.do("write %d" % count)
        server.do("read %d" % count)
    while on_way(stream(client))["state"] != "linked":
        client.do("write 1")
        server.do("read 1")
        time.sleep(0.01)
    for _ in range(40):
        if unread < 60000 and (not unread or chance.random() < 0.6):
            count = chance.choice([100, 1000, 5000, 9000])
            check("a send", client.do("write %d" % count), count)
            unread, total = unread + count, total + count
        else:
            count = chance.randint(1, unread)
            server.do("read %d" % count)
            unread -= count
        for _ in range(1000):  # TCP acknowledges later what has arrived, and counts it at both ends until then
            found = waiting()
            if found == unread:
                break
            time.sleep(0.01)
        check("what waits", found, unread)
    moved = stream(client)["tx"]
    check("have both tracks had bytes", moved["link"] > total // 10 and moved["tcp"] > total // 10, True)
    client.end()
    server.end()


if sys.argv[1] == "end":
    end(sys.argv[2], *map(int, sys.argv[3:]))
elif sys.argv[2:] == ["flips"]:
    flips(sys.argv[1])
else:
    main(sys.argv[1])
