# SPDX-License-Identifier: MIT
"""Figures of reach.sh: rows, verdicts, docs/dev/REACH.md.

figures.py row FOLDER KEY=VALUE...   one row, as JSON: from FOLDER/speed.tcp and speed.shunt, a figure a line; FOLDER/server
                                     and client.*, statistics; FOLDER/absent, what shunt stat says of the server; and the pairs:
                                     layout, program, expected, state, right, kernel (bytes that TCP carried), skipped
figures.py verdicts ROWS             a line for each row of the file: ok, not_ok, todo, now or skip, a tab, and the text
figures.py json ROWS                 all rows, as a JSON array
figures.py document ROWS TABLE       docs/dev/REACH.md; TABLE has the layouts: name, expected, state, what it is
"""
import collections
import glob
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../apps"))
import share  # noqa: E402  (tests/apps/share.py)

ENOUGH = 95  # percent of the bytes after the first 256 KiB of a direction
UNTRUE = "the peer runs without Shunt"  # both ends are shunted: this explains nothing


def late(processes):
    """Bytes beyond the first 256 KiB of a direction on links, and bytes below that on TCP."""
    link = tcp = 0
    for process in processes:
        for way in "tx", "rx":
            total = process["totals"][way]
            link += total["late"] - total["late_tcp"]
            tcp += total["tcp"] - total["late_tcp"]
    return link, tcp


def share_of(client, server, kernel):
    """Percent on the link, of the bytes after the first 256 KiB. TCP's are the kernel's count: a process does not know what
    a stream carries that is TCP's for good. Each side counts all bytes; a proxy's other side is counted by servers only,
    twice; who was killed has said nothing."""
    sides = late(client), late(server), late(client + server)
    link = max(sides[0][0], sides[1][0], sides[2][0] // 2)
    early = max(sides[0][1], sides[1][1], sides[2][1] // 2)
    tcp = max(0, kernel - early)
    return 100 * link / (link + tcp) if link + tcp else 0, link


def speeds(name):
    try:
        with open(name, encoding="ascii") as file:
            figures = [float(line) for line in file]
    except (OSError, ValueError):
        return 0
    return statistics.median(figures) if figures else 0


def reasons(folder, client, server):
    """Why connections never got to a link, or left one, on either side."""
    said = {}
    for side, processes in ("client", client), ("server", server):
        counted = share.reasons_of(processes)
        for process in processes:
            counted.update([process["reason"]] if process["reason"] else [])
            counted.update({"left the link: " + cause: count for cause, count in process["left"].items() if count})
        said[side] = dict(counted.most_common(3))
    if not said["server"] and os.path.exists(folder + "/absent"):
        with open(folder + "/absent", encoding="utf-8") as file:
            told = file.read().strip()
        if told and "(pid " not in told:  # that is the first line of statistics
            said["server"] = {told: 1}
    return said


def make_row(folder, *pairs):
    row = dict(pair.split("=", 1) for pair in pairs)
    if "skipped" not in row:
        client = [process for one in glob.glob(folder + "/client.*") for process in share.read(one)]
        server = share.read(folder + "/server")
        kernel = int(row.pop("kernel"))
        row["right"] = row["right"] == "yes"
        row["share"], row["link"] = share_of(client, server, kernel)
        row["tcp"] = kernel
        row["speed"] = {how: speeds(f"{folder}/speed.{how}") for how in ("tcp", "shunt")}
        row["reasons"] = reasons(folder, client, server)
    return row


def percent(number):
    """Never rounded up to a hundred."""
    return "%.1f %%" % (int(number * 10) / 10)


def ratio(row):
    speed = row["speed"]
    return "%.2f" % (speed["shunt"] / speed["tcp"]) if speed["tcp"] and speed["shunt"] else "–"


def why(row):
    if row["share"] >= ENOUGH:
        return ""
    told = []
    for side, counted in row["reasons"].items():
        if counted:
            told.append(side + ": " + share.told(collections.Counter(counted)))
    return "; ".join(told) or "no reason is given"


def holds(row):
    """Is it as the layout's line in reach.sh expects?"""
    linked = row["share"] >= ENOUGH
    first = [next(iter(counted)) for counted in row["reasons"].values() if counted]  # of most connections
    explained = any(reason != UNTRUE for reason in first)
    return {"link": linked, "tcp": row["link"] == 0 and explained, "either": linked or explained}[row["expected"]]


def verdict(row):
    what = f"{row['layout']}, {row['program']}"
    if "skipped" in row:
        return "skip", what + "\t" + row["skipped"]
    what += f": {percent(row['share'])} on the link"
    if ratio(row) != "–":
        what += f", {ratio(row)} of TCP's speed"
    if why(row):
        what += "; " + why(row)
    if not row["right"]:
        return "not_ok", what + "; the bytes are not right"
    if row["state"] == "todo":
        return ("now" if holds(row) else "todo"), what
    return ("ok" if holds(row) else "not_ok"), what


def read_rows(name):
    with open(name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def verdicts(name):
    return "".join("\t".join(verdict(row)) + "\n" for row in read_rows(name))


HEAD = """# Reach

`tests/reach/reach.sh --write docs/dev/REACH.md` writes this page whole, from runs of {seconds} s each on Linux {kernel} with \
{cores} cores.
It runs programs in the layouts in which services run on real machines, over plain TCP and with both ends shunted, in turns.

- **On the link:** the share of the bytes after the first 256 KiB of each direction. The kernel counts those of TCP.
- **To TCP:** the speed of the shunted run divided by that of plain TCP, medians of {turns} turns each.
- **Why TCP:** the reasons of both sides where less than {enough} % are on the link, with the number of connections.

Each program but iperf3, which only counts, has also transferred data that was compared byte by byte.

## Layouts

`link`: at least {enough} % must be on the link. `tcp`: all bytes must stay on TCP, with a true reason. `either`: one of the two. \
`not yet`: the goal is not reached. Both ends are shunted, so `{untrue}` is no true reason.

| layout | both ends | expected |
| --- | --- | --- |
"""

ROWS = """
## Figures

| layout | program | on the link | to TCP | why TCP |
| --- | --- | --- | --- | --- |
"""


def document(name, table):
    rows = read_rows(name)
    text = HEAD.format(seconds=os.environ["REACH_SECONDS"], turns=os.environ["REACH_TURNS"], enough=ENOUGH, untrue=UNTRUE,
                       kernel=os.uname().release.split("-")[0], cores=os.cpu_count())
    for line in table.strip().splitlines():
        layout, expected, state, what = line.split(None, 3)
        text += f"| `{layout}` | {what} | {expected}{', not yet' if state == 'todo' else ''} |\n"
    text += ROWS
    for row in rows:
        text += f"| `{row['layout']}` | {row['program']} | "
        if "skipped" in row:
            text += f"– | – | skipped: {row['skipped']} |\n"
            continue
        text += f"{percent(row['share'])} | {ratio(row)} | {why(row)}{'' if row['right'] else '**the bytes are not right**'} |\n"
    return text


def main():
    command, *arguments = sys.argv[1:]
    if command == "row":
        print(json.dumps(make_row(*arguments)))
    elif command == "verdicts":
        print(verdicts(*arguments), end="")
    elif command == "json":
        print(json.dumps(read_rows(*arguments), indent=2))
    else:
        print(document(*arguments), end="")


main()
