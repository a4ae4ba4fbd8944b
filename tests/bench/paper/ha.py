# SPDX-License-Identifier: MIT
"""What ha_e1.sh to ha_e8.sh know of a run: its periods as the node counts them, or else as the clients do."""
import json
import os
import sys

SCALE = int(os.environ.get("SCALE", 400))
NODE = 1570000 // SCALE
short = []


def shares(name, total):
    weights = {"uniform": [1] * 10, "spike": [340] * 3 + [80] * 7,
               "zipf": [(i // 2 + 1) ** -0.6 for i in range(10)]}[name]
    return [round(total * w / sum(weights)) for w in weights]


def find_qos(value):
    """The first object "qos" that has periods, wherever it lies."""
    if isinstance(value, dict):
        qos = value.get("qos")
        if isinstance(qos, dict) and "periods" in qos:
            return qos
        value = list(value.values())
    for inner in value if isinstance(value, list) else []:
        found = find_qos(inner)
        if found:
            return found
    return None


class Run:
    def __init__(self, out, name, reserved=None):
        with open(f"{out}/{name}.json") as file:
            self.json = json.load(file)
        self.clients = self.json["clients"]
        self.periods = len(self.json["completed"])
        self.reserved = reserved or [0] * len(self.clients)
        self.node = None
        try:
            with open(f"{out}/{name}.node.json") as file:
                self.node = find_qos(json.load(file))
        except (OSError, ValueError):
            pass

    def rows(self):
        """By period, what each client was served. Of the node's periods the newest may reach beyond the run."""
        if self.node and len(self.node["periods"]) > self.periods:
            kept = self.node["periods"][self.periods - 1:0:-1]
            return [[taken for _, taken in row["classes"]] for row in kept]
        return [[c["completed"][p] for c in self.clients] for p in range(self.periods)]

    def judged_by(self):
        return "node" if self.node else "clients"

    def total(self):
        return sum(self.json["completed"]) / self.periods

    def mean(self, i):
        return self.clients[i]["total"] / self.periods

    def least(self, i):
        return min(row[i] for row in self.rows())

    def worst(self):
        """The smallest part of its reservation that a client had in a period."""
        return min(self.least(i) / r for i, r in enumerate(self.reserved) if r)

    def cpus(self):
        return self.json["processors_in_use"]


def check(ok, text):
    print(("PASS   " if ok else "SHORT  ") + text)
    if not ok:
        short.append(text)


def k(paper):
    """A rate of the paper, in thousands a second, at this scale."""
    return paper * 1000 / SCALE


def by_client(reserved, runs):
    """A line for each client: its reservation, and the mean and the least of each run."""
    print("%-8s %9s" % ("client", "reserved") + "".join(" | %18s" % name for name in runs))
    print("%-8s %9s" % ("", "") + " | %9s %8s" % ("mean", "least") * len(runs))
    for i, r in enumerate(reserved):
        print("c%-7d %9d" % (i + 1, r) + "".join(" | %9.1f %8d" % (run.mean(i), run.least(i)) for run in runs.values()))
    print("%-8s %9d" % ("sum", sum(reserved)) + "".join(" | %9.1f %8s" % (run.total(), "") for run in runs.values()))
    print()


def bars(path, runs):
    """For common.sh's bars: a line for each client."""
    with open(path, "w") as file:
        print("client", *runs, file=file)
        for i in range(10):
            print("c%d" % (i + 1), *(run.mean(i) if isinstance(run, Run) else run[i] for run in runs.values()), file=file)


def processors(runs):
    print("processors in use: %.2f at most; judged by the counts of the %s" % (
        max(run.cpus() for run in runs), runs[-1].judged_by()))


def end():
    """The script's exit status."""
    sys.exit(1 if short else 0)
