#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lines.py LIBRARY FILE...: what lines.so has noted, by kind of call.

Prints "KIND CALLS LOCKS TAKES BUSY ATOMICS WRITTEN READ" for each kind, means over the calls of all threads of all files:
locks that a call takes, each counted once; how often it takes one, and tries in vain; atomic read-modify-writes; cache
lines it writes that another thread of its process reads or writes; lines it reads that another thread writes.
With -v, each lock and each such line follows, with the code that used it first, and that of another thread.

A line counts as another thread's if that thread has used it once for every 32 uses of this one.
"""
import collections
import subprocess
import sys

KINDS = ("other", "send", "receive", "wait")
SELDOM = 32
LOCKS = ("shunt_lock_grab", "shunt_lock_wait", "soft_trylock")  # functions that take one


class Thread:
    def __init__(self, calls):
        self.calls = calls
        self.lines = {}  # address: (calls that read, calls that wrote, code that read, code that wrote)
        self.sites = []  # (code, word, calls, times, failed)


def load(path):
    threads = collections.defaultdict(lambda: Thread([0] * 4))
    for text in open(path):
        word, *fields = text.split()
        if word == "lost":
            if int(fields[0]):
                sys.exit(f"{path}: {fields[0]} accesses are not in it; ask for fewer messages")
        elif word == "thread":
            threads[fields[0]] = Thread([int(n) for n in fields[1:]])
        elif word == "line":
            reads, writes = [int(n) for n in fields[2:6]], [int(n) for n in fields[6:10]]
            threads[fields[0]].lines[fields[1]] = (reads, writes, int(fields[10], 16), int(fields[11], 16))
        else:
            counts = [int(n) for n in fields[3:]]
            site = (int(fields[1], 16), fields[2], counts[:4], counts[4:8], counts[8:])
            threads[fields[0]].sites.append(site)
    return list(threads.values())


def resolve(library, codes):
    """Code: names of its functions, the innermost first, and its line."""
    codes = sorted(codes)
    asked = "\n".join(hex(code - 1) for code in codes)
    said = subprocess.run(["addr2line", "-aif", "-e", library], input=asked, text=True, check=True,
                          capture_output=True).stdout.splitlines()
    names = {}
    code = 0
    for text in said:
        if text.startswith("0x"):
            code = int(text, 16) + 1
            names[code] = ([], [])
        else:
            functions, places = names[code]
            (functions if len(functions) == len(places) else places).append(text)
    return {code: (functions, [p.rsplit("/", 1)[-1].split(" ")[0] for p in places])
            for code, (functions, places) in names.items()}


def is_lock(names, code):
    functions = names[code][0] if code in names else []
    return any(f in LOCKS for f in functions)


def others(threads, thread, address):
    """Code of another thread that uses the line often enough, and of one that writes it; 0: there is none."""
    mine = thread.lines[address]
    uses = sum(mine[0]) + sum(mine[1])
    user = writer = 0
    for other in threads:
        theirs = other.lines.get(address)
        if other is thread or not theirs:
            continue
        if sum(theirs[1]) * SELDOM >= uses:
            writer = theirs[3]
        if (sum(theirs[0]) + sum(theirs[1])) * SELDOM >= uses:
            user = theirs[3] or theirs[2]
    return user, writer


def place(names, code):
    if code not in names:
        return "-"
    functions, places = names[code]
    skip = sum(f.startswith(("shunt_lock_", "note")) for f in functions[:-1])
    return f"{functions[skip]} {places[skip]}"


def main():
    arguments = sys.argv[1:]
    verbose = arguments[:1] == ["-v"]
    library, *files = arguments[verbose:]
    processes = [load(path) for path in files]
    codes = {site[0] for threads in processes for thread in threads for site in thread.sites}
    codes |= {code for threads in processes for thread in threads for line in thread.lines.values()
              for code in line[2:] if code}
    names = resolve(library, codes)
    for kind in range(1, 4):
        calls = sum(thread.calls[kind] for threads in processes for thread in threads)
        if not calls:
            continue
        total = collections.Counter()
        details = collections.Counter()
        for threads in processes:
            for thread in threads:
                for code, word, in_calls, times, failed in thread.sites:
                    if word == "0":
                        if names[code][0][:1] == ["shunt_lock_wait"]:
                            total["waited"] += times[kind]
                            details["waits", place(names, code)] += times[kind]
                        continue
                    total["atomics"] += times[kind]
                    if times[kind]:
                        details["atomic", place(names, code)] += times[kind]
                    if is_lock(names, code):
                        total["locks"] += in_calls[kind]
                        total["takes"] += times[kind] - failed[kind]
                        total["busy"] += failed[kind]
                        details["lock", place(names, code)] += in_calls[kind]
                for address, (reads, writes, read_by, wrote_by) in thread.lines.items():
                    if not reads[kind] and not writes[kind]:
                        continue
                    user, writer = others(threads, thread, address)
                    if user and writes[kind]:
                        total["written"] += writes[kind]
                        details["writes", f"{place(names, wrote_by)} | {place(names, user)}"] += writes[kind]
                    if writer and reads[kind]:
                        total["read"] += reads[kind]
                        details["reads", f"{place(names, read_by)} | {place(names, writer)}"] += reads[kind]
        means = " ".join(f"{total[n] / calls:.2f}"
                         for n in ("locks", "takes", "busy", "waited", "atomics", "written", "read"))
        print(f"{KINDS[kind]} {calls} {means}")
        if verbose:
            for (what, where), n in sorted(details.items(), key=lambda d: (d[0][0], -d[1])):
                if n / calls >= 0.01:
                    print(f"  {what:8} {n / calls:8.3f}  {where}")


main()
