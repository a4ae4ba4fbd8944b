#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""share.py FOLDER [TCP]: the share of bytes that links carried, and why connections stayed on TCP.

FOLDER has what the processes of a test said: a file each, written at exit, and snapshots of those that still ran.
TCP is what the kernel's TCP has carried; without it, what the processes counted is taken.
"""
import collections
import glob
import json
import sys


def read(folder):
    """The statistics of all processes. What a process said last counts: its numbers only grow."""
    processes = {}
    for name in glob.glob(folder + "/*"):
        try:
            with open(name) as file:
                content = json.load(file)
        except ValueError:
            continue  # killed while it wrote
        for process in content if isinstance(content, list) else [content]:
            key = process["pid"], process["program"]
            old = processes.get(key)
            if not old or process["uptime_ms"] >= old["uptime_ms"]:
                processes[key] = process
    return list(processes.values())


def reasons_of(processes):
    reasons = collections.Counter()
    for process in processes:
        reasons.update(process["reasons"])
    return reasons


def told(reasons):
    return "; ".join("%s (%d)" % item for item in reasons.most_common(3))


def main():
    total = collections.Counter()
    processes = read(sys.argv[1])
    for process in processes:
        for way in "tx", "rx":
            for track in "link", "tcp":
                total[way, track] += process["totals"][way][track]

    # Each byte has a sender and a receiver; who was killed has said nothing.
    link = max(total["tx", "link"], total["rx", "link"])
    tcp = int(sys.argv[2]) if len(sys.argv) > 2 else max(total["tx", "tcp"], total["rx", "tcp"])
    share = 100 * link / (link + tcp) if link + tcp > 0 else 0
    print("%.1f%%" % share, told(reasons_of(processes)))


if __name__ == "__main__":
    main()
