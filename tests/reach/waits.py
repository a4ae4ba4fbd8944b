# SPDX-License-Identifier: MIT
"""What strace(1) saw of a shunted server with strangers linked: no call on an object that a stranger holds can wait.

The server has no Unix sockets and memory files of its own, so all that it has are Shunt's. A stranger holds the other end of such a
socket, or a copy of it, and each memory file. tests/nowait.py asks the source the same.
"""
import collections
import re

STRACE = ["strace", "-D", "-f", "-yy", "-q", "-s", "8", "-e", "trace=%network,%desc", "-o"]
TRANSFERS = ("sendmsg", "recvmsg", "sendto", "recvfrom", "sendmmsg", "recvmmsg")
OTHERS = ("read", "write", "readv", "writev", "pread64", "pwrite64", "preadv2", "pwritev2", "splice", "sendfile")
WAIT_FOR_FILE = (*OTHERS, "fallocate", "flock", "fsync", "fdatasync", "copy_file_range")


def calls(path):
    """Thread, name, arguments and result of each call; those that were interrupted by another thread's line are put together."""
    begun = {}
    with open(path, encoding="latin-1") as trace:
        for line in trace:
            tid, text = line.rstrip("\n").split(None, 1)
            if text.endswith("<unfinished ...>"):
                begun[tid] = text[:-len("<unfinished ...>")]
                continue
            resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", text)
            if resumed:
                text = begun.pop(tid, "") + resumed.group(1)
            call = re.match(r"(\w+)\((.*)\)\s+= (.*)", text)
            if call:
                yield (int(tid), *call.groups())


def nonblocking(name, arguments, result, known):
    """Inodes of sockets that do not block since they were made."""
    if name in ("socket", "socketpair", "accept4") and "SOCK_NONBLOCK" in arguments:
        known.update(re.findall(r"UNIX[^\[]*\[(\d+)", result if name != "socketpair" else arguments))


def problem(name, arguments, known):
    """Of a call on an object of Shunt's; None: it cannot wait."""
    first = arguments.split(", ", 1)[0]
    if "memfd:" in first:
        return "waits for the file's lock" if name in WAIT_FOR_FILE else None
    if name in TRANSFERS:
        return None if "MSG_DONTWAIT" in arguments else "does not say that it does not wait"
    if name in OTHERS:
        return "has no word for not waiting"
    if name in ("accept4", "accept", "connect") and re.search(r"\[(\d+)", first).group(1) not in known:
        return "on a socket that may block"
    return None


def look(path, process):
    """What is wrong, in lines, and how many calls were looked at."""
    wrong, looked, known = [], collections.Counter(), set()
    for tid, name, arguments, result in calls(path):
        nonblocking(name, arguments, result, known)
        first = arguments.split(", ", 1)[0]
        why = None
        if "<UNIX" in first or "memfd:" in first:
            looked["calls on what strangers hold"] += 1
            why = problem(name, arguments, known)
        elif "<TCP" in first and tid != process and name in TRANSFERS + OTHERS:
            looked["calls of the service thread on connections"] += 1
            why = None if "MSG_DONTWAIT" in arguments else "does not say that it does not wait"
        if name == "sendmsg" and "SCM_RIGHTS" in arguments and "eventfd" in arguments:
            why = "sends an eventfd"
        if why:
            wrong.append(f"{name}({arguments[:120]}: {why}")
    return wrong, looked
