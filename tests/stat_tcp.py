# SPDX-License-Identifier: MIT
"""`shunt stat --tcp` beside ss(8): the same line for each connection of a shunted process.

stat_tcp.py SHUNT            families, states and queues of connections on TCP, and one that is on the link
stat_tcp.py end ADDRESS N    a client with N connections, or a server for as many (its port is 0); a step for each line
"""
import json
import re
import socket
import subprocess
import sys
import time


def end(address, count, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    streams = []
    if port:
        streams = [socket.create_connection((address, port)) for _ in range(count)]
    else:
        listener = socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::")
        print(listener.getsockname()[1], flush=True)
        streams = [listener.accept()[0] for _ in range(count)]
    for line in sys.stdin:
        deed, *numbers = line.split()
        for stream in streams if not numbers else [streams[int(numbers[0])]]:
            amount = int(numbers[1]) if numbers else 5
            if deed == "write":
                stream.sendall(amount * b"x")
            elif deed == "read":
                while amount:
                    amount -= len(stream.recv(amount))
            elif deed == "end":
                stream.shutdown(socket.SHUT_WR)
            elif deed == "await":
                stream.recv(1)
            elif deed == "fill":
                stream.setblocking(False)
                try:
                    while True:
                        stream.send(65536 * b"x")
                except BlockingIOError:
                    pass
        print("done", flush=True)


class End:
    def __init__(self, wrap, *arguments):
        self.process = subprocess.Popen([*wrap, sys.executable, __file__, "end", *map(str, arguments)], text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def do(self, line):
        self.process.stdin.write(line + "\n")
        check("an end", self.process.stdout.readline(), "done\n")


def check(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, not %r" % (what, got, wanted))


def lines(command, pid):
    """The words of each line of that process."""
    said = subprocess.check_output(command, text=True).splitlines()
    return sorted(line.split() for line in said if re.search(r"\bpid=%d\b" % pid, line))


def by_shunt(shunt, pid):
    return lines([shunt, "stat", "--tcp", str(pid)], pid)


def compare(what, shunt, pid, count):
    """All of them on TCP. The kernel may be acknowledging meanwhile: both see the same when it has."""
    for _ in range(1000):
        ours, theirs = by_shunt(shunt, pid), lines(["ss", "-tnpH"], pid)
        if [line[:-1] for line in ours] == theirs:
            break
        time.sleep(0.01)
    check("lines " + what, len(theirs), count)
    check(what, [line[:-1] for line in ours], theirs)
    check("tracks " + what, [line[-1] for line in ours], count * ["tcp"])


def on_tcp(shunt, address, connect_to, shunted):
    run = ["env", "SHUNT_TUNE=claim_ms=10", shunt, "run"]
    server = End(run if shunted == "server" else [], address, 3, 0)
    client = End(run if shunted == "client" else [], connect_to, 3, server.process.stdout.readline().strip())
    pid = (server if shunted == "server" else client).process.pid
    client.do("write")
    server.do("read")
    compare("idle", shunt, pid, 3)
    client.do("write 1 12345")
    compare("unread at the server", shunt, pid, 3)
    server.do("write 2 77")
    compare("unread at the client", shunt, pid, 3)
    client.do("fill 0 0")
    compare("full", shunt, pid, 3)
    server.do("read 1 12345")
    client.do("end 1 0")
    server.do("await 1 0")
    compare("ended by the client", shunt, pid, 3)
    for each in server, client:
        each.process.stdin.close()
    for each in server, client:
        each.process.wait()


def on_link(shunt):
    run = ["env", "SHUNT_TUNE=claim_ms=10000", shunt, "run"]
    server = End(run, "127.0.0.1", 1, 0)
    client = End(run, "127.0.0.1", 1, server.process.stdout.readline().strip())
    while True:
        for each, other in (client, server), (server, client):
            each.do("write")
            other.do("read")
        for each in server, client:
            (stream,) = json.loads(subprocess.check_output([shunt, "stat", "--json", str(each.process.pid)]))[0]["streams"]
            check("why it is on TCP", stream["reason"], "")
        rows = [by_shunt(shunt, each.process.pid)[0] for each in (server, client)]
        if [row[-1] for row in rows] == ["link", "link"]:
            break
        time.sleep(0.01)
    client.do("write 0 1000")
    ours, theirs = by_shunt(shunt, server.process.pid)[0], lines(["ss", "-tnpH"], server.process.pid)[0]
    check("what is unread on the link", ours[:3], ["ESTAB", "1000", "0"])
    check("what the kernel knows of it", theirs[:3], ["ESTAB", "0", "0"])
    check("the rest", ours[3:], [*theirs[3:], "link"])
    for each in server, client:
        each.process.stdin.close()
        each.process.wait()


def main(shunt):
    head = subprocess.check_output([shunt, "stat", "--tcp"], text=True).splitlines()[0]
    theirs = subprocess.check_output(["ss", "-tnp"], text=True).splitlines()[0].replace("PortProcess", "Port Process")
    check("the head", head.split(), [*theirs.split(), "Track"])
    for address, connect_to in ("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1"):
        for shunted in "server", "client":
            on_tcp(shunt, address, connect_to, shunted)
    on_link(shunt)


if sys.argv[1] == "end":
    end(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    main(sys.argv[1])
