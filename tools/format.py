#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Are changed lines of C formatted as .clang-format says? Part of `tools/check static`.

format.py [BASE]: looks at lines that differ from BASE in the working tree; without it, from HEAD~1, so the answer is the
same in each clone. Old lines stay as they are. Exit status: 0 they are, 1 with a diff, 77 with a reason
where nothing can be said.

Four things that clang-format 14 cannot be told are no matter: the tab before a trailing comment, how many initialisers a
line has, at which comma or operator a statement of no more than 100 columns is broken, and tables of rows."""
import difflib
import re
import shutil
import subprocess
import sys

COLUMNS = 100
TABLES = re.compile(r"_table\.h$|/calls\.h$")
TRAILING = re.compile(r"[ \t]+/\*[^\n]*?\*/[ \t]*$", re.M)
INITIALISER = re.compile(r"\.\w+ = |^\s*\{.*\},?$|^\s*X\(|^#define ")


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def skip(reason):
    print(reason)
    sys.exit(77)


def changed(since):
    """Each file and its changed lines as pairs of first and last."""
    files, path = {}, None
    for line in git("diff", "-U0", "-M", "--diff-filter=d", since, "--", "*.c", "*.h").split("\n"):
        if line.startswith("+++ "):
            path = line[6:]
        hunk = re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)
        if hunk and int(hunk.group(2) or 1):
            first = int(hunk.group(1))
            files.setdefault(path, []).append((first, first + int(hunk.group(2) or 1) - 1))
    return files


def is_broken_elsewhere(was, wanted):
    """One statement with other line breaks, each line short enough and continued with a deeper indent."""
    def squeezed(lines):
        return re.sub(r"\s", "", "".join(lines))

    return (squeezed(was) == squeezed(wanted) and all(len(line.expandtabs(8)) <= COLUMNS for line in was) and
            not any(re.search(r"^\s*[{}]|[;{}]$", line) for line in was[:-1]))


def differences(path, ranges):
    with open(path, encoding="utf-8") as file:
        text = TRAILING.sub("", file.read())
    lines = [f"--lines={first}:{last}" for first, last in ranges]
    done = subprocess.run(["clang-format", f"--assume-filename={path}", *lines],
                          input=text, capture_output=True, text=True, check=True)
    was, wanted = text.split("\n"), done.stdout.split("\n")
    for kind, a, b, c, d in difflib.SequenceMatcher(None, was, wanted, False).get_opcodes():
        if not any(first <= b and a < last for first, last in ranges):  # an initialiser is laid out as a whole
            continue
        if kind == "equal" or is_broken_elsewhere(was[a:b], wanted[c:d]) or all(INITIALISER.search(line) for line in was[a:b] if line.strip()):
            continue
        yield f"@@ {path}:{a + 1}"
        yield from ("-" + line for line in was[a:b])
        yield from ("+" + line for line in wanted[c:d])


def main():
    if not shutil.which("clang-format"):
        skip("clang-format is not installed")
    since = sys.argv[1] if len(sys.argv) > 1 else git("rev-parse", "HEAD~1")
    if not since:
        skip("not a git checkout, or one without history: which lines are new?")
    files = [item for item in sorted(changed(since).items()) if not TABLES.search(item[0])]
    found = [line for path, ranges in files for line in differences(path, ranges)]
    if found:
        print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
