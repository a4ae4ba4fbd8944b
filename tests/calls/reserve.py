# SPDX-License-Identifier: MIT
"""What tests/calls/reserve.sh starts: a server that swallows, clients that send, and a judge of a node's periods."""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

BLOCK = 100000


def swallow(connection):
    got = 0
    while True:
        part = connection.recv(1 << 20)
        if not part:
            break
        got += len(part)
    connection.sendall(b"%d\n" % got)
    connection.close()


def listen():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    print("port", listener.getsockname()[1], flush=True)
    print("pid", os.getpid(), flush=True)
    while True:
        connection = listener.accept()[0]
        threading.Thread(target=swallow, args=(connection,), daemon=True).start()


def sink():
    """Swallows, and tells a client at its end how much came. At SIGUSR1 a child does the same, with another port."""
    def fork(*_):
        if not os.fork():
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            listen()
    signal.signal(signal.SIGUSR1, fork)
    listen()


def source(port):
    """Sends what it can. Lines say what to do: rest, go, end. Tells whether all has arrived; or how the server ended."""
    connection = socket.create_connection(("127.0.0.1", port))
    going = threading.Event()
    going.set()
    over = []

    def obey():
        for line in sys.stdin:
            if line == "rest\n":
                going.clear()
            else:
                over.extend(["over"] if line == "end\n" else [])
                going.set()
    threading.Thread(target=obey, daemon=True).start()
    sent, block = 0, b"x" * BLOCK
    try:
        while not over:
            going.wait()
            connection.sendall(block)
            sent += BLOCK
            if sent == 30 * BLOCK:
                print("begun", flush=True)
        connection.shutdown(socket.SHUT_WR)
        print("all", int(connection.makefile().readline()) == sent, flush=True)
    except OSError as error:
        print("end", type(error).__name__, flush=True)


def statistics(shunt, pid):
    """A process that is busy may give no answer in time."""
    for _ in range(10):
        answer = subprocess.run([shunt, "stat", "--json", pid], stdout=subprocess.PIPE, check=False)
        if not answer.returncode:
            return json.loads(answer.stdout)[0]["qos"]
    sys.exit("no answer")


class Judge:
    """Rows of whole periods from now on."""

    def __init__(self, shunt, pid):
        self.shunt, self.pid, self.rows, self.first, self.before = shunt, pid, {}, None, {}

    def look(self):
        now = statistics(self.shunt, self.pid)
        classes = now["classes"]
        if self.first is None:
            self.first = now["period"] + 2
            self.before = {c["name"]: c["returned"] for c in classes}
        self.names = [c["name"] for c in classes]
        self.limits = {c["name"]: c["limit"] * now["period_ms"] / 1e6 for c in classes if c["limit"]}
        self.returned = {c["name"]: c["returned"] - self.before[c["name"]] for c in classes}
        for row in now["periods"]:
            if row["number"] >= self.first:
                self.rows[row["number"]] = row
        return len(self.rows)

    def show(self):
        for number, row in sorted(self.rows.items())[-20:]:
            print("#  ", number, row["capacity"], row["classes"], self.returned)


def verdicts(judged, hungry, idle):
    """Numbers of good and of late rows, and what is wrong."""
    good, late, wrong, whole = 0, 0, [], 0
    lacking, limited = dict.fromkeys(hungry, 0), dict.fromkeys(judged.limits, 0)
    for number, row in sorted(judged.rows.items()):
        had = {name: taken for name, (_, taken) in zip(judged.names, row["classes"])}
        reserved = {name: tokens for name, (tokens, _) in zip(judged.names, row["classes"])}
        whole += sum(had.values())
        for name in judged.limits:
            limited[name] += had[name]
        wrong += ["%s had %u in period %u" % (name, had[name], number) for name in idle if had[name]]
        wrong += ["%s has reserved nothing in period %u" % (name, number) for name in hungry if not reserved[name]]
        # Where all was used, but not by who had reserved it; a node that is slow itself is nobody's fault.
        for name in hungry if sum(had.values()) >= 0.98 * row["capacity"] else []:
            lacking[name] += max(reserved[name] * 99 // 100 - had[name], 0)
        # Where a thread was late, what it would have sent, or have counted, is in the next row.
        if all(had[name] >= 0.99 * reserved[name] for name in hungry) and \
                (0.95 if idle else 0.98) * row["capacity"] <= sum(had.values()) <= 1.02 * row["capacity"]:
            good += 1
        else:
            late += 1
    # Who had less has said that it wanted no more, or has it in the row behind.
    for name in hungry:
        if lacking[name] > judged.returned[name] + max(row["capacity"] for row in judged.rows.values()):
            wrong.append("%s lacked %u tokens, and has given back %u" % (name, lacking[name], judged.returned[name]))
    # A late row has more than its own, once.
    for name, limit in judged.limits.items():
        if limited[name] > limit * (len(judged.rows) + 1):
            wrong.append("%s had %u in %u periods, beyond its limit" % (name, limited[name], len(judged.rows)))
    if whole > sum(row["capacity"] for row in judged.rows.values()) + row["capacity"]:
        wrong.append("%u tokens in %u periods" % (whole, len(judged.rows)))
    return good, late, wrong


def judge(shunt, pid, count, hungry, idle=""):
    """`count` rows in which all was used that could be: `hungry` classes had their reservations in each of them."""
    judged = Judge(shunt, pid)
    end = time.monotonic() + 60
    good, late, wrong = 0, 0, []
    while good < count and time.monotonic() < end and not wrong:
        time.sleep(0.1)
        if judged.look():
            good, late, wrong = verdicts(judged, hungry.split(","), [name for name in idle.split(",") if name])
    print("#", good, "good periods,", late, "in which a thread was late")
    for line in wrong:
        print("#", line)
    if wrong or good < count:
        judged.show()
    return not wrong and good >= count


def wasted(shunt, pid, count, idle):
    """In `count` rows `idle` had nothing, and nobody had what it had reserved."""
    judged = Judge(shunt, pid)
    end = time.monotonic() + 60
    rows = []
    while len(rows) < count and time.monotonic() < end:
        time.sleep(0.1)
        judged.look()
        which = judged.names.index(idle)
        rows = [row for row in judged.rows.values() if not row["classes"][which][1]]
    # In all of them: where a thread was late, what it would have counted is in the next row, once.
    had = sum(sum(t for _, t in row["classes"]) for row in rows)
    most = [row["capacity"] - row["classes"][which][0] for row in rows]
    if len(rows) < count or had > 1.02 * (sum(most) + max(most)):
        for row in rows:
            print("#", row["number"], row["capacity"], row["classes"])
        return False
    return True


def main():
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == "sink":
        sink()
    elif what == "source":
        source(int(arguments[0]))
    elif what == "judge":
        sys.exit(not judge(arguments[0], arguments[1], int(arguments[2]), *arguments[3:]))
    elif what == "wasted":
        sys.exit(not wasted(arguments[0], arguments[1], int(arguments[2]), arguments[3]))


main()
