#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""table.py DOCUMENT ROWS ORDER: puts the rows of the programs that were run between the document's markers."""
import os
import sys

document, folder, order = sys.argv[1], sys.argv[2], sys.argv[3].split()
BEGIN, END = "<!-- applications: written by tests/apps/run.sh -->\n", "<!-- end of applications -->\n"
HEAD = ("| program | version | passed | on the link | why not more |\n"
        "| --- | --- | --- | --- | --- |\n")

with open(document, encoding="utf-8") as file:
    before, rest = file.read().split(BEGIN)
old, after = rest.split(END)
rows = {line.split("|")[1].strip(): line + "\n" for line in old.splitlines()[2:] if line.startswith("| ")}
for name in os.listdir(folder):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        rows[name] = file.read()
known = [name for name in order if name in rows]
with open(document + ".new", "w", encoding="utf-8") as file:
    file.write(before + BEGIN + HEAD + "".join(rows[name] for name in known) + END + after)
os.rename(document + ".new", document)
