# SPDX-License-Identifier: MIT
"""The metrics' bytes are those that the programs have counted, by streams that are open and that have ended.

metrics_count.py SHUNT          two shunted programs, of which one has a plain stream, too
metrics_count.py end ROLE...    one of them: what it has sent and received, a line for each step
"""
import json
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metrics_check  # noqa: E402

SIZES = [1, 100, 5000, 70000, 300001]


def take(stream, count):
    while count:
        got = len(stream.recv(min(count, 65536)))
        if not got:
            raise EOFError
        count -= got


def serve(stream, linked):
    try:
        while True:
            for size in SIZES:
                take(stream, size)
                stream.sendall(b"a" * (2 * size))
                if linked:
                    moved["rx"] += size
                    moved["tx"] += 2 * size
    except (EOFError, OSError):
        stream.close()


moved = {"tx": 0, "rx": 0}


def ask(stream, rounds):
    for _ in range(rounds):
        for size in SIZES:
            stream.sendall(b"q" * size)
            take(stream, 2 * size)
            moved["tx"] += size
            moved["rx"] += 2 * size


def end(role, port=0):
    if role != "client":
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        stream, _ = listener.accept()
        threading.Thread(target=serve, args=(stream, True)).start()
        sys.stdin.readline()
        print(moved["tx"], moved["rx"], flush=True)
        sys.stdin.readline()
        listener.close()
        return
    stream = socket.create_connection(("127.0.0.1", port))
    ask(stream, 60)	# the first of them by TCP, until there is a link
    print(moved["tx"], moved["rx"], flush=True)
    sys.stdin.readline()
    ask(stream, 3)
    stream.close()
    print(moved["tx"], moved["rx"], flush=True)
    sys.stdin.readline()


def start(wrap, *arguments):
    return subprocess.Popen([*wrap, sys.executable, __file__, "end", *arguments], text=True, bufsize=1,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


counters = {}


def bytes_of(shunt, process):
    text = subprocess.check_output([shunt, "stat", "--openmetrics", str(process.pid)], text=True)
    samples, families = metrics_check.read(text, False)
    for series, value in samples.items():
        if families.get(series[0]) == "counter":
            if value < counters.get(series, 0):
                sys.exit("%s is less: %d, %d before" % (series, value, counters[series]))
            counters[series] = value
    sums = {"tx": 0, "rx": 0, "link": 0}
    for (name, labels), value in samples.items():
        labels = dict(labels)
        if name in ("shunt_bytes_total", "shunt_plain_bytes"):
            sums[labels["direction"]] += value
        if name == "shunt_bytes_total" and labels["track"] == "link":
            sums["link"] += value
    return sums


def check(what, sums, line, linked):
    tx, rx = map(int, line.split())
    if (sums["tx"], sums["rx"]) != (tx, rx):
        sys.exit("%s: metrics %r, program %d %d" % (what, sums, tx, rx))
    if (sums["link"] > 0) != linked:
        sys.exit("%s: by the link %d" % (what, sums["link"]))
    print("ok %s: %d sent, %d received, %d of them by the link" % (what, tx, rx, sums["link"]))


def nothing_is_left_out(shunt, process):
    """Each number of these objects is a metric."""
    said = json.loads(subprocess.check_output([shunt, "stat", "--json", str(process.pid)]))[0]
    rows = subprocess.check_output([shunt, "stat", "--openmetrics=list"], text=True).splitlines()
    paths = {row.split("\t")[3] for row in rows}
    for name in said["counters"]:
        if "counters." + name not in paths:
            sys.exit("no metric is of counters.%s" % name)
    for name in "reasons", "left", "stalls", "lanes", "links", "devices", "streams":
        if name not in paths:
            sys.exit("no metric is of " + name)
    for name in said["histograms"]:
        if "histograms." + name not in paths:
            sys.exit("no metric is of histograms." + name)


def pair(shunt, plain):
    run = [shunt, "run"]
    server = start([] if plain else run, "server")
    client = start(run, "client", server.stdout.readline().strip())
    line = client.stdout.readline()
    check("open", bytes_of(shunt, client), line, not plain)
    if not plain:
        nothing_is_left_out(shunt, client)
        server.stdin.write("\n")
        line = server.stdout.readline()
        check("at the server", bytes_of(shunt, server), line, True)
    client.stdin.write("\n")
    line = client.stdout.readline()
    # What the kernel has carried of a plain stream goes with it, and no counter has had it.
    sums = bytes_of(shunt, client)
    if not plain:
        check("ended", sums, line, True)
    client.stdin.write("\n")
    server.stdin.write("\n\n")
    server.stdin.close()
    if client.wait() or server.wait():
        sys.exit("exit statuses: %d %d" % (client.returncode, server.returncode))


def main(shunt):
    pair(shunt, False)
    pair(shunt, True)


if __name__ == "__main__":
    if sys.argv[1] == "end":
        end(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main(sys.argv[1])
