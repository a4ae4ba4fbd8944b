# SPDX-License-Identifier: MIT
"""rules.py SHUNT LIBRARY FOLDER: rules decide which connections of real programs a link carries, at both ends."""
import atexit
import json
import os
import random
import subprocess
import sys
import time

SHUNT, LIBRARY, FOLDER = sys.argv[1:]
LIMIT = 60      # s that anything may take

# Echoes at 127.0.0.1 and 127.0.0.2, and on a second port of the first.
SERVER = """
import socket, threading
def serve(listener):
    while True:
        s = listener.accept()[0]
        threading.Thread(target=echo, args=(s,), daemon=True).start()
def echo(s):
    while True:
        data = s.recv(65536)
        if not data:
            return
        s.sendall(data)
listeners = [socket.create_server((host, 0)) for host in ("127.0.0.1", "127.0.0.1", "127.0.0.2")]
for l in listeners:
    threading.Thread(target=serve, args=(l,), daemon=True).start()
print(*[l.getsockname()[1] for l in listeners], flush=True)
input()
"""

# Lines: "open HOST PORT", or "turn INDEX SEED": bytes there and back.
CLIENT = """
import random, socket, sys
sockets = []
for line in sys.stdin:
    word, *args = line.split()
    if word == "open":
        sockets.append(socket.create_connection((args[0], int(args[1]))))
    else:
        s = sockets[int(args[0])]
        data = random.Random(args[1]).randbytes(50000)
        s.sendall(data)
        got = b""
        while len(got) < len(data):
            part = s.recv(65536)
            assert part, "an early end"
            got += part
        assert got == data, "other bytes"
    print("done", flush=True)
"""


def start(text, **variables):
    tune = "brief=0,refused_ms=0," + variables.pop("SHUNT_TUNE", "")
    environment = dict(os.environ, SHUNT_TUNE=tune, LD_PRELOAD=LIBRARY, **variables)
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=environment)
    atexit.register(process.kill)
    return process


def stat(process):
    said = subprocess.run([SHUNT, "stat", "--json", str(process.pid)], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)[0]


def rules(process, *words, status=0):
    said = subprocess.run([SHUNT, "adm", str(process.pid), "rules", *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert said.returncode == status, (words, said)
    return said.stdout + said.stderr


def counts(process):
    said = subprocess.run([SHUNT, "adm", str(process.pid), "trace"], stdout=subprocess.PIPE, check=True)
    return json.loads(said.stdout)["counts"]


class Client:
    def __init__(self, **variables):
        self.process = start(CLIENT, **variables)
        self.count = 0

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n", words

    def stream(self, local):
        return [s for s in stat(self.process)["streams"] if s["local"] == local][0]

    def open(self, host, port):
        """A new connection: its index, and its address here."""
        before = {s["local"] for s in stat(self.process)["streams"]} if self.count else set()
        self.do("open", host, port)
        self.count += 1
        local, = {s["local"] for s in stat(self.process)["streams"]} - before if self.count > 1 else \
            (self.turn(0), {s["local"] for s in stat(self.process)["streams"]})[1]
        return self.count - 1, local

    def turn(self, index):
        self.do("turn", index, random.random())

    def becomes(self, where, state, reason=None):
        """Bytes go there and back, and the stream comes to this state."""
        index, local = where
        end = time.monotonic() + LIMIT
        while True:
            self.turn(index)
            stream = self.stream(local)
            if stream["state"] == state:
                break
            assert time.monotonic() < end, stream
        assert reason is None or ": ".join(filter(None, (stream["reason"], stream["detail"]))) == reason, stream
        self.turn(index)
        return stream


def conf(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path


OURS, PEERS = "a rule (SHUNT_RULES)", "a rule (SHUNT_RULES): of the peer"

# The server's file leaves one of its addresses on TCP: it refuses what is claimed there.
server = start(SERVER, SHUNT_CONF=conf("server", f"rule program=python* user={os.getuid()} local=127.0.0.2 tcp\n"))
first, second, other = map(int, server.stdout.readline().split())
client = Client()
client.becomes(client.open("127.0.0.1", first), "linked")
client.becomes(client.open("127.0.0.2", other), "plain", PEERS)
assert "left on TCP: 1 connections" in rules(server), rules(server)
assert stat(server)["reasons"][OURS] == 1, stat(server)["reasons"]

# The client's file leaves one port on TCP: it does not claim.
named = Client(SHUNT_CONF=conf("client", f"# one\nrule pport={second} tcp\nrule nonsense\n"))
claims = stat(server)["counters"]["claims_refused"]
named.becomes(named.open("127.0.0.1", first), "linked")
named.becomes(named.open("127.0.0.1", second), "plain", OURS)
assert stat(server)["counters"]["claims_refused"] == claims

# The environment's rules come in their place, and the first one decides.
environment = Client(SHUNT_CONF=conf("none", f"rule port={first} tcp\n"), SHUNT_RULES=f"port={first} link; tcp")
environment.becomes(environment.open("127.0.0.1", first), "linked")
environment.becomes(environment.open("127.0.0.1", second), "plain", OURS)
off = Client(SHUNT_CONF=conf("off", "rule tcp\n"), SHUNT_RULES="off")
off.becomes(off.open("127.0.0.1", first), "linked")
from_file = Client(SHUNT_RULES=conf("rules", f"rule peer=127.0.0.0/8 port={second} tcp\n"))
from_file.becomes(from_file.open("127.0.0.1", second), "plain", OURS)

# At run time, for new connections only.
old = named.open("127.0.0.1", first)
named.becomes(old, "linked")
said = rules(named.process, f"port={first}", "tcp;", f"port={second}", "link")
assert "for connections from now on" in said and f"rule port={first} tcp\n" in said, said
named.becomes(old, "linked")
named.becomes(named.open("127.0.0.1", first), "plain", OURS)
named.becomes(named.open("127.0.0.1", second), "linked")
before = rules(named.process, "show")
for wrong, why in (("port=70000 tcp", "rules:1:6: '70000': port is"), ("port=1 drop", "'drop' is no action"),
                   ("user=no-such-user tcp", "no-such-user is not in /etc/passwd"),
                   ("/no/such/file", "No such file")):
    said = rules(named.process, *wrong.split(), status=1)
    assert why in said, said
    assert rules(named.process) == before, before
with open(os.path.join(FOLDER, "long"), "w", encoding="utf-8") as file:
    file.write("#" * 20000)
assert "longer than" in rules(named.process, os.path.join(FOLDER, "long"), status=1)
named.becomes(named.open("127.0.0.1", first), "plain", OURS)
assert rules(named.process, "off").endswith("no rules\n")
named.becomes(named.open("127.0.0.1", first), "linked")

# Held on TCP until the operator's word, by a rule of either end.
for process in (named.process, server):
    rules(process, f"port={second}", "mock")
    held = named.open("127.0.0.1", second)
    assert named.becomes(held, "linked")["tx"]["link"] == 0
    named.turn(held[0])
    assert named.stream(held[1])["tx"]["link"] == 0
    subprocess.run([SHUNT, "adm", str(process.pid), "mock", "auto"], check=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + LIMIT
    while not named.stream(held[1])["tx"]["link"]:
        assert time.monotonic() < deadline, named.stream(held[1])
        named.turn(held[0])
    rules(process, "off")

# Sends of one connection are followed: all of that one, and none of the other.
rules(named.process, f"port={second}", "trace=0", "link")
followed, plain = named.open("127.0.0.1", second), named.open("127.0.0.1", first)
named.becomes(plain, "linked")
assert counts(named.process)["chosen"] == 0, counts(named.process)
named.becomes(followed, "linked")
before = counts(named.process)
named.turn(followed[0])
named.turn(plain[0])
after = counts(named.process)
assert after["chosen"] == after["sends"] and after["chosen"] > before["chosen"], (before, after)
rules(named.process, "off")

# A stream that returns to a link after its queue pair's death is no new connection.
back = {"SHUNT_TUNE": "retain=always,return_ms=10"}
server = start(SERVER, **back)
first = int(server.stdout.readline().split()[0])
client = Client(**back)
old = client.open("127.0.0.1", first)
client.becomes(old, "linked")
for process in (client.process, server):
    rules(process, "tcp")
subprocess.run([SHUNT, "adm", str(client.process.pid), "failover"], check=True, stdout=subprocess.DEVNULL)
deadline = time.monotonic() + LIMIT
while not stat(client.process)["counters"]["streams_returned"]:
    assert time.monotonic() < deadline, stat(client.process)["counters"]
    client.turn(old[0])
client.becomes(old, "linked")
client.becomes(client.open("127.0.0.1", first), "plain", OURS)
