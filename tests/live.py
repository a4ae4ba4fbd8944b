# SPDX-License-Identifier: MIT
"""live.py SHUNT LIBRARY: variables that change at run time, each by an effect that it has on a running link.

Counts are compared, never times: an effect is awaited, or shows in the work behind the change."""
import atexit
import json
import os
import signal
import subprocess
import sys
import time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
SHUNT, LIBRARY = sys.argv[1:3]
PATIENCE = 60

SERVER = """
import socket, sys, threading
def echo(s):
    with s:
        while True:
            try:
                b = s.recv(65536)
            except OSError:
                return
            if not b:
                return
            s.sendall(b)
a = socket.socket()
a.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
a.bind(("127.0.0.1", int(sys.argv[1])))
a.listen()
print(a.getsockname()[1], flush=True)
deaf = []
while True:
    s, peer = a.accept()
    if len(sys.argv) > 2:
        deaf.append(s)
    else:
        threading.Thread(target=echo, args=(s,), daemon=True).start()
"""

CLIENT = """
import os, socket, sys
sockets = []
def turn(s, size):
    data = os.urandom(size)
    s.sendall(data)
    got = b""
    while len(got) < size:
        got += s.recv(65536)
    assert got == data
for line in sys.stdin:
    word, *numbers = line.split()
    numbers = [int(n) for n in numbers]
    if word == "connect":
        sockets.append(socket.create_connection(("127.0.0.1", numbers[0])))
    elif word == "close":
        sockets.pop().close()
    elif word == "send":
        sockets[-1].sendall(b"x" * numbers[0])
    elif word == "turns":
        for i in range(numbers[0]):
            turn(sockets[-1], numbers[1])
    elif word == "burst":           # all at once, then all answers
        for i in range(numbers[0]):
            for s in sockets:
                s.sendall(b"x" * numbers[1])
            for s in sockets:
                got = 0
                while got < numbers[1]:
                    got += len(s.recv(65536))
    print("done", flush=True)
"""


def start(text, *args, preload=True, **variables):
    environment = dict(os.environ, **variables)
    if preload:
        environment["LD_PRELOAD"] = LIBRARY
    process = subprocess.Popen([sys.executable, "-c", text, *map(str, args)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env=environment)
    atexit.register(process.kill)
    return process


def server(*args, port=0, **how):
    process = start(SERVER, port, *args, **how)
    return process, int(process.stdout.readline())


def end(*processes):
    for process in processes:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


class Client:
    def __init__(self, **variables):
        self.process = start(CLIENT, **variables)

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", words

    def stat(self):
        return stat(self.process)

    def counters(self):
        said = self.stat()
        return dict(said["counters"], **{"stall_" + name: n for name, n in said["stalls"].items()})

    def growth(self, *words):
        before = self.counters()
        self.do(*words)
        after = self.counters()
        return {name: after[name] - before[name] for name in after}

    def set(self, name, value):
        tell(self.process, name, value)

    def states(self, port):
        return [stream["state"] for stream in self.stat()["streams"] if stream["peer"].endswith(f":{port}")]

    def stays(self, reason):
        wait_for(reason, lambda: reason in self.stat()["reasons"])


def stat(process):
    said = subprocess.run([SHUNT, "stat", "--json", str(process.pid)], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)[0]


def tell(process, name, value):
    subprocess.run([SHUNT, "adm", str(process.pid), "set", name, str(value)], check=True,
                   stdout=subprocess.DEVNULL)


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, what + " has no effect"
        time.sleep(0.01)


def linked(client, port, count=1):
    wait_for("the link", lambda: client.states(port).count("linked") == count)


def lanes():
    """What lanes copy: signals, windows, chains."""
    process, port = server()
    client = Client()
    client.do("connect", port)
    client.do("turns", 100, 100)
    linked(client, port)
    client.do("turns", 100, 100)

    def signals(why, all_of_them):
        grown = client.growth("turns", 300, 100)
        assert grown["wr"] >= 300, grown
        few = grown["wr_signaled"] <= grown["wr"] // 8
        assert grown["wr_signaled"] >= grown["wr"] - 8 if all_of_them else few, (why, grown)

    signals("default", False)
    for name, value, back in (("signal_every", 1, 64), ("window_device", "1M", 0)):
        client.set(name, value)
        signals(name, True)
        client.set(name, back)
        signals(name + " back", False)
    client.set("window_wr", 4)
    grown = client.growth("turns", 300, 100)
    assert grown["wr_signaled"] >= grown["wr"] // 2 - 8, ("WINDOW_WR", grown)
    client.set("window_wr", 512)
    signals("WINDOW_WR back", False)

    # Behind each WR of a window that is less than a fragment the next might find it closed.
    client.set("window", "4K")
    signals("WINDOW", True)
    client.set("window", 0)
    signals("WINDOW back", False)
    # Every limit that is set while data is under way leaves the way open.
    for value in ("4K", 0, "64K", "1M") * 3:
        client.set("window", value)
        client.set("window_wr", 2 if value else 512)
        client.set("window_device", value)
        client.do("turns", 5, 300000)
    end(client.process, process)


def chains():
    """Streams of one lane meet in its queue, because the modelled device takes its time."""
    process, port = server(SHUNT_SOFT_MODEL="connectx3,delay=1000000")
    client = Client(SHUNT_SOFT_MODEL="connectx3,delay=1000000", SHUNT_TUNE="window_wr=8,brief=0")
    for count in range(1, 33):
        client.do("connect", port)
        client.do("turns", 5, 100)
        linked(client, port, count)
    grown = client.growth("burst", 10, 100)
    assert grown["doorbells"] < grown["wr"], ("chains", grown)
    client.set("chain", 1)
    grown = client.growth("burst", 10, 100)
    assert grown["doorbells"] >= grown["wr"], ("CHAIN", grown)
    client.set("chain", 16)
    grown = client.growth("burst", 10, 100)
    assert grown["doorbells"] < grown["wr"], ("CHAIN back", grown)
    client.set("batch", "single")
    grown = client.growth("burst", 10, 100)
    assert grown["doorbells"] >= grown["wr"], ("BATCH", grown)
    end(client.process, process)


def waits():
    """How a wait looks for completions."""
    process, port = server()
    client = Client()
    client.do("connect", port)
    client.do("turns", 100, 100)
    linked(client, port)
    client.set("poll", "event")
    client.do("turns", 10, 100)     # a wait that is under way ends as it began
    grown = client.growth("turns", 300, 100)
    assert grown["spin_hits"] + grown["spin_misses"] == 0 and grown["sleeps"] > 0, ("POLL=event", grown)
    if os.cpu_count() > 1:
        client.set("poll", "busy")
        client.do("turns", 10, 100)
        grown = client.growth("turns", 300, 100)
        # It sleeps where others have wanted its core.
        assert not grown["sleeps"] or client.counters()["spin_backoffs"], ("POLL=busy", grown)
    # One completion a poll: as many polls that find one as there are completions.
    client.set("poll", "event")
    client.set("poll_batch", 1)
    client.do("turns", 10, 100)
    grown = client.growth("turns", 50, 1000000)
    assert grown["polls"] >= grown["completions"] // 8, ("POLL_BATCH", grown)   # rounds of a poll
    end(client.process, process)


def copies():
    """How a lane copies what it carries, and what the poll fetches ahead; the program checks each byte."""
    process, port = server()
    client = Client()
    client.do("connect", port)
    client.do("turns", 100, 100)
    linked(client, port)
    client.set("copy", "memcpy")
    grown = client.growth("turns", 20, 500000)
    assert grown["copied_past"] == 0, ("COPY=memcpy", grown)
    client.set("copy", "nt")
    tell(process, "copy", "nt")
    grown = client.growth("turns", 20, 500000)
    assert grown["copied_past"] >= 20 * 500000 // 2, ("COPY=nt", grown)    # short pieces are not
    grown = client.growth("turns", 100, 4000)
    assert grown["copied_past"] == 0, ("COPY=nt, short", grown)
    client.set("copy", "auto")
    for name, value in (("prefetch", 4096), ("prefetch", 0), ("copy", "memcpy")):
        client.set(name, value)
        client.do("turns", 20, 500000)
    end(client.process, process)


def timers():
    """What the service thread waits for."""
    process, port = server(SHUNT_TUNE="retain=always")
    client = Client(SHUNT_TUNE="retain=always,keepalive_ms=0,return_ms=600000,return_max_ms=600000")
    client.do("connect", port)
    client.do("turns", 100, 100)
    linked(client, port)
    assert client.counters()["keepalive_probes"] == 0
    client.set("keepalive_ms", 20)
    wait_for("KEEPALIVE_MS", lambda: client.counters()["keepalive_probes"] > 2)
    client.set("keepalive_ms", 600000)
    client.set("keepalive_ms", 20)
    probes = client.counters()["keepalive_probes"]
    wait_for("KEEPALIVE_MS again", lambda: client.counters()["keepalive_probes"] > probes + 2)
    client.set("keepalive_ms", 0)
    probes = client.counters()["keepalive_probes"]
    time.sleep(0.2)
    assert client.counters()["keepalive_probes"] == probes, "KEEPALIVE_MS=0"
    client.set("return_max_ms", 10)
    client.set("return_ms", 10)
    tell(process, "return_ms", 10)
    subprocess.run([SHUNT, "adm", str(client.process.pid), "failover"], check=True, stdout=subprocess.DEVNULL)
    wait_for("RETURN_MS", lambda: client.counters()["streams_returned"] > 0)
    end(client.process, process)


def claims():
    """Which connections are claimed."""
    process, port = server()
    client = Client(SHUNT_TUNE="born=off,brief=1,claim_ms=60000,refused_ms=600000")
    for _ in range(4):
        client.do("connect", port)
        client.do("close")
        client.do("connect", port)
        client.do("send", 1)
        client.do("close")
    client.do("connect", port)
    client.do("turns", 3, 10)
    assert "linked" not in client.states(port), client.states(port)
    client.set("brief", 0)
    client.do("turns", 1, 10)
    linked(client, port)
    end(process)

    # A peer without Shunt is remembered for so long as the variable says when it is met.
    client.set("refused_ms", 0)
    process, port = server(preload=False)
    client.do("connect", port)
    client.do("turns", 3, 10)
    client.stays("the peer runs without Shunt")
    end(process)
    process, port = server(port=port)
    client.do("connect", port)
    client.do("turns", 3, 10)
    linked(client, port)
    end(process)

    # A program that does not use what it has accepted: its claim is refused after so long.
    process, port = server("deaf", SHUNT_TUNE="claim_ms=60000")
    client.do("connect", port)
    client.do("send", 10)
    wait_for("the claim", lambda: client.counters()["claims"] > 2)
    tell(process, "claim_ms", 10)
    client.do("connect", port)
    client.do("send", 10)
    client.stays("not used in time")
    end(client.process, process)


for test in (lanes, chains, waits, copies, timers, claims):
    print(test.__name__, flush=True)
    test()
