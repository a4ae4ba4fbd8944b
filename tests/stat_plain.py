# SPDX-License-Identifier: MIT
"""What `shunt stat` says of a plain stream: the bytes that the kernel has carried, to the byte.

stat_plain.py SHUNT server|client   with that end shunted and the other one plain
stat_plain.py end server|client N [PORT]   one end: it moves N bytes each way, again, and ends; a step for each line
"""
import json
import socket
import subprocess
import sys
import threading
import time

BYTES = 3000000


def move(stream, count):
    sender = threading.Thread(target=stream.sendall, args=(b"x" * count,))
    sender.start()
    while count:
        count -= len(stream.recv(min(count, 65536)))
    sender.join()


def end(role, count, port=0):
    if role == "server":
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        stream, _ = listener.accept()
    else:
        stream = socket.create_connection(("127.0.0.1", port))
    steps = [lambda: move(stream, count)] * 2 + [stream.close]
    if role == "client":
        steps.insert(2, lambda: stream.shutdown(socket.SHUT_WR))
    else:
        steps.insert(2, lambda: stream.recv(1))
    for step in steps:
        step()
        print("done", flush=True)
        sys.stdin.readline()


def start(wrap, *arguments):
    return subprocess.Popen([*wrap, sys.executable, __file__, "end", *arguments], text=True, bufsize=1,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def idle_of_none(shunt):
    """A socket that has never had a byte is idle for no longer than it is there, or not at all."""
    alone = subprocess.Popen([shunt, "run", sys.executable, "-c", "import socket, sys\n"
                              "fresh = socket.socket()\n"
                              "listener = socket.create_server(('127.0.0.1', 0))\n"
                              "client = socket.create_connection(listener.getsockname())\n"
                              "server = listener.accept()\n"
                              "print(flush=True)\nsys.stdin.readline()"],
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    begun = time.monotonic()
    alone.stdout.readline()
    streams = []
    while not streams:  # its door may be still to come
        said = subprocess.run([shunt, "stat", "--json", str(alone.pid)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        streams = json.loads(said.stdout)[0]["streams"] if said.returncode == 0 else []
    age = (time.monotonic() - begun) * 1000 + 10000
    for stream in streams:
        if stream["idle_ms"] is not None and stream["idle_ms"] > age:
            sys.exit("idle for %r ms: %r" % (stream["idle_ms"], stream))
    alone.communicate("")


def check(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, not %r" % (what, got, wanted))


def main(shunt, shunted):
    idle_of_none(shunt)
    run = [shunt, "run"]
    server = start(run if shunted == "server" else [], "server", str(BYTES))
    port = server.stdout.readline().strip()
    client = start(run if shunted == "client" else [], "client", str(BYTES), port)
    process = server if shunted == "server" else client

    def statistics():
        said = json.loads(subprocess.check_output([shunt, "stat", "--json", str(process.pid)]))[0]
        check("the schema", said["schema"], 1)
        return said

    def next_step():
        for each in server, client:
            each.stdin.write("\n")
        for each in server, client:
            check("an end", each.stdout.readline(), "done\n")

    for each in server, client:
        check("an end", each.stdout.readline(), "done\n")
    while statistics()["streams"][0]["state"] == "candidate":
        time.sleep(0.01)
    for count in 1, 2, 2:  # the last is half closed
        if count > 1:
            next_step()
        said = statistics()
        (stream,) = said["streams"]
        check("the state", stream["state"], "plain")
        for way in "tx", "rx":
            sums, moved = said["totals"][way], count * BYTES
            check(way, (stream[way]["tcp"], stream[way]["link"]), (moved, 0))
            check("the sum of " + way, sums["tcp"], moved)
            check("the rest of " + way, (sums["late"], sums["late_tcp"]), (moved - 262144,) * 2)
    next_step()
    said = statistics()
    check("streams", said["streams"], [])
    check("uncounted", said["totals"]["uncounted"], int(shunted == "server"))  # a client counts on: its peer may get Shunt
    for each in server, client:
        each.stdin.write("\n")
    check("exit statuses", (server.wait(), client.wait()), (0, 0))


if sys.argv[1] == "end":
    end(sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:]))
else:
    main(*sys.argv[1:])
