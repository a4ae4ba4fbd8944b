# SPDX-License-Identifier: MIT
"""Reads what "python -m test --junit-xml" has written: the names of tests that failed, sorted; or how many there are.

failed.py FILE STATUS	STATUS is that of the run: one that hung or died without a result has failed as a whole
failed.py --count FILE
"""
import sys
import xml.etree.ElementTree as tree


def cases(path):
    try:
        return list(tree.parse(path).getroot().iter("testcase"))
    except (OSError, tree.ParseError):
        return []


def bad(case):
    return any(case.find(tag) is not None for tag in ("error", "failure"))


if sys.argv[1] == "--count":
    print(len(cases(sys.argv[2])))
else:
    found = cases(sys.argv[1])
    names = {case.get("name") for case in found if bad(case)}
    if sys.argv[2] not in ("0", "2") or (not found and sys.argv[2] != "0"):
        names.add("the module as a whole: status " + sys.argv[2])
    print("\n".join(sorted(names)))
