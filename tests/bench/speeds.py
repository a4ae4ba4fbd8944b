#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""speeds.py DOCUMENT ROWS: puts the rows of programs.sh between the document's markers."""
import os
import sys

BEGIN, END = "<!-- speeds: written by tests/bench/programs.sh -->\n", "<!-- end of speeds -->\n"
HEAD = ("| program | benchmark | shunted / TCP | in single rounds |\n"
        "| --- | --- | --- | --- |\n")

document, rows = sys.argv[1:]
with open(document, encoding="utf-8") as file:
    before, rest = file.read().split(BEGIN)
with open(rows, encoding="utf-8") as file:
    rows = file.read()
with open(document + ".new", "w", encoding="utf-8") as file:
    file.write(before + BEGIN + HEAD + rows + END + rest.split(END)[1])
os.rename(document + ".new", document)
