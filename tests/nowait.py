#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No call on an object that a stranger holds can wait. TAP.

A stranger holds the other end of sockets, and the memory file of its link. Sends and receives say MSG_DONTWAIT in the call,
because a description's O_NONBLOCK may be another's to change. Calls that have no such word are in the table, each with the
reason why it cannot wait for a stranger, or why the object is nobody else's. The source is read, so a new call needs either.
"""
import collections
import pathlib
import re
import sys

CORE = pathlib.Path(__file__).resolve().parents[1] / "core"
SAYS_SO = {"sendmsg": "MSG_DONTWAIT", "recvmsg": "MSG_DONTWAIT", "recvmmsg": "MSG_DONTWAIT", "send": "MSG_DONTWAIT",
           "recv": "MSG_DONTWAIT", "sendto": "MSG_DONTWAIT", "recvfrom": "MSG_DONTWAIT", "flock": "LOCK_NB|LOCK_UN",
           "preadv2": "RWF_NOWAIT"}
ASKED = [*SAYS_SO, "read", "write", "readv", "writev", "pread", "pwrite", "accept4", "connect", "fallocate"]

OWN = "an eventfd that nobody else has"
FILE = "a file of the system, or the program's own settings"
PROGRAM = "the program's own socket, in the program's own mode"
UNIX = "a socket of ours that does not block, made just before"
LISTENS = "a listening socket of ours that does not block: only accepted copies leave us"
TABLE = {
    ("admin/hw_counters.c", "read"): FILE, ("base/attach.c", "read"): FILE, ("base/conf_file.c", "read"): FILE, ("base/keyfile.c", "read"): FILE,
    ("base/space.c", "read"): FILE, ("device/iwarp.c", "read"): FILE, ("fork/sole.c", "read"): FILE, ("link/screen.c", "read"): FILE, ("qos/facts.c", "read"): FILE,
    ("stream/overflow.c", "read"): FILE, ("stream/uring.c", "read"): FILE,
    ("fd/thread.c", "read"): OWN, ("fd/thread.c", "write"): OWN, ("loop/loop.c", "read"): OWN, ("loop/loop.c", "write"): OWN,
    ("poll/sleeper.c", "write"): OWN, ("wait/companion.c", "write"): OWN, ("device/soft/context.c", "read"): OWN,
    ("device/soft/channel.c", "read"): "where preadv2 cannot: the eventfd of trusted peers",
    ("device/soft/channel.c", "write"): "the eventfd of trusted peers: a stranger's is refused (peer.c), and has a bell (bell.c)",
    ("device/soft/pd.c", "fallocate"): "not called on the memory of a domain that is set apart",
    ("peer/deaf.c", "accept4"): LISTENS, ("loop/porter.c", "accept4"): LISTENS, ("peer/directory.c", "accept4"): LISTENS,
    ("peer/remote_listener.c", "accept4"): LISTENS,
    ("link/channel.c", "connect"): UNIX, ("loop/endpoint.c", "connect"): UNIX, ("peer/directory_ask.c", "connect"): UNIX,
    ("stream/handover.c", "connect"): UNIX, ("stream/takeover.c", "connect"): UNIX,
    ("stream/kernel_tcp.c", "connect"): "AF_UNSPEC: it ends a connection",
    ("stream/spare.c", "connect"): "of a connected socket: the kernel says so at once",
    ("device/cm/ask.c", "connect"): "the connection manager's: its answer is an event",
    ("device/cm/pair.c", "connect"): "the connection manager's: its answer is an event",
    ("device/soft/context.c", "recvmmsg"): "libc's, for bell.c, which says so",
    ("stream/rx.c", "recvmsg"): PROGRAM, ("stream/tx.c", "sendmsg"): PROGRAM,
    ("admin/stats.c", "sendmsg"): "to root or an equal, after SO_PEERCRED",
}


def calls_of(text):
    """Name and arguments of each call, comments left out."""
    text = re.sub(r'/\*.*?\*/|"(\\.|[^"\\])*"', lambda found: " " * len(found.group()), text, flags=re.S)
    names = "|".join(ASKED)
    for found in re.finditer(rf"\bsyscall\s*\(\s*SYS_({names})\s*,|\b({names})\s*\(", text):
        begins = text[text.rfind("\n", 0, found.start()) + 1:found.start()]
        if re.match(r"^\S", begins) or re.search(r"[\w*]\s$", begins) and not begins.strip().endswith(("return", "=", "else")):
            continue	# it is defined or declared here
        at, depth = text.index("(", found.start()) + 1, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield found.group(1) or found.group(2), text[found.start():at]


def main():
    wrong, used, count = [], collections.Counter(), 0
    for path in sorted(CORE.rglob("*.c")):
        where = str(path.relative_to(CORE))
        for name, call in calls_of(path.read_text(encoding="utf-8")):
            count += 1
            if (where, name) in TABLE and not (name in SAYS_SO and re.search(SAYS_SO[name], call)):
                used[where, name] += 1
            elif name not in SAYS_SO or not re.search(SAYS_SO[name], call):
                wrong.append(f"core/{where}: {' '.join(call.split())[:100]}")
    stale = [f"core/{where} has no {name} any more" for where, name in TABLE if not used[where, name]]
    print("1..2")
    for text, problems in ((f"each of {count} calls says that it does not wait, or has a reason", wrong),
                           ("each reason is for a call that there is", stale)):
        for problem in problems:
            print("#", problem)
        print("not ok" if problems else "ok", "-", text)
    sys.exit(bool(wrong or stale))


main()
