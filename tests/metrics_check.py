#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A text of metrics is well formed: what the formats ask for, and what makes a server drop a whole scrape.

metrics_check.py text|strict FILE [LIST]   LIST: `shunt stat --openmetrics=list`, which knows every family
metrics_check.py dashboard FILE LIST       each metric in a dashboard's expressions is one of LIST
"""
import json
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
SAMPLE = re.compile(r"(%s)(?:\{(.*)\})? ([0-9]+(?:\.[0-9]+)?)" % NAME)
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count"]}


class Bad(Exception):
    pass


def need(truth, what, line):
    if not truth:
        raise Bad("%s: %r" % (what, line))


def labels_of(text, line):
    labels, at = {}, 0
    while at < len(text):
        match = LABEL.match(text, at)
        need(match, "labels", line)
        need(match[1] not in labels, "a label twice", line)
        labels[match[1]] = match[2]
        at = match.end()
        need(at == len(text) or text[at] == ",", "labels", line)
        at += 1
    return labels


def read(text, strict):
    """{(name, labels): value}, {family: type}"""
    samples, families, family, wanted = {}, {}, None, None
    need(text.endswith("# EOF\n"), "no end", text[-50:])
    need(all(" " <= c <= "~" or c == "\n" for c in text), "unprintable", "")
    for line in text[:-len("# EOF\n")].splitlines():
        if line.startswith("# HELP "):
            family, help_ = line[7:].split(" ", 1)
            need(family not in families and help_ and "\\" not in help_, "a head", line)
            families[family], wanted = None, "TYPE"
            continue
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            need(wanted == "TYPE" and name == family and kind in SUFFIXES, "a type", line)
            families[family], wanted = kind, None
            need((kind == "counter" and not strict) == family.endswith("_total"), "a name", line)
            continue
        match = SAMPLE.fullmatch(line)
        need(match and family and wanted is None, "a line", line)
        suffixes = SUFFIXES[families[family]] if strict or families[family] == "histogram" else [""]
        need(match[1] in [family + suffix for suffix in suffixes], "another family", line)
        key = match[1], tuple(sorted(labels_of(match[2] or "", line).items()))
        need(key not in samples, "a series twice", line)
        samples[key] = float(match[3]) if "." in match[3] else int(match[3])
    return samples, families


def histograms(samples, families):
    for family in [name for name, kind in families.items() if kind == "histogram"]:
        buckets = {}
        for (name, labels), value in samples.items():
            if name == family + "_bucket":
                rest = tuple(label for label in labels if label[0] != "le")
                buckets.setdefault(rest, []).append((float(dict(labels)["le"]), value))
        for rest, found in buckets.items():
            found.sort()
            need([v for _, v in found] == sorted(v for _, v in found), "buckets sink", family)
            need(found[-1] == (float("inf"), samples[family + "_count", rest]), "no last bucket", family)


def known(path):
    with open(path, encoding="ascii") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    need(len({row[0] for row in rows}) == len(rows), "a family twice", path)
    need(all(len(row) == 4 for row in rows), "a list", path)
    return {name: kind for name, kind, *_ in rows}


def check(kind, path, table):
    with open(path, encoding="utf-8", newline="\n") as file:
        samples, families = read(file.read(), kind == "strict")
    histograms(samples, families)
    if table:
        for name, type_ in families.items():
            name += "_total" if kind == "strict" and type_ == "counter" else ""
            need(known(table).get(name) == type_, "not in the list", name)
    print("%d series of %d families" % (len(samples), len(families)))


def dashboard(path, table):
    with open(path, encoding="utf-8") as file:
        board = json.load(file)
    names = known(table)
    words = set()
    for panel in board["panels"]:
        need(panel.get("title") and panel.get("type"), "a panel", str(panel.get("id")))
        for target in panel.get("targets", []):
            need(target["expr"].count("(") == target["expr"].count(")"), "brackets", target["expr"])
            words |= set(re.findall(r"\bshunt_\w+", target["expr"]))
    need(len({panel["id"] for panel in board["panels"]}) == len(board["panels"]), "an id twice", path)
    need(words, "no metric", path)
    for word in words:
        base = re.sub(r"_(bucket|count)$", "", word)
        need(word in names or names.get(base) == "histogram", "no such metric", word)
    print("%d metrics" % len(words))


def main():
    if sys.argv[1] == "dashboard":
        dashboard(*sys.argv[2:])
    else:
        check(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None)


if __name__ == "__main__":
    try:
        main()
    except Bad as bad:
        sys.exit("metrics: %s" % bad)
