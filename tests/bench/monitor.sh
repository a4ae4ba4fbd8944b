#!/bin/bash
# SPDX-License-Identifier: MIT
# What scraping costs: processor time of shunt monitor, and of a busy shunted program's service thread, at RATE scrapes
# a second for DURATION seconds, beside the same time without scrapes. Acceptance: the monitor under 1 % of a core.
# monitor.sh [STREAMS [RATE [DURATION [INTERVAL]]]]; in the folder of a build, or with top_builddir.
set -u
build=${top_builddir:-.}
here=$(cd "$(dirname "$0")" && pwd)
exec python3 - "$build/tools/shunt" "$here" "${1:-16}" "${2:-10}" "${3:-60}" "${4:-1}" <<'PYTHON'
import json
import os
import re
import socket
import subprocess
import sys
import time

shunt, here = sys.argv[1:3]
streams, rate, duration, interval = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), sys.argv[6]
SERVER = """
import socket, threading
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def serve(stream):
    while got := stream.recv(65536):
        stream.sendall(got)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""
CLIENT = """
import socket, sys, time
streams = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
while True:
    for stream in streams:
        stream.sendall(b"x" * 1000)
        stream.recv(65536)
    time.sleep(0.001)
"""



def schedstat(path):    # ns, where ticks are too coarse
    with open(path, encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def of_process(pid):
    return sum(schedstat("/proc/%d/task/%s/schedstat" % (pid, task)) for task in os.listdir("/proc/%d/task" % pid))


def service(pid):    # the first thread after the program's own: before its first connection
    task = min(int(task) for task in os.listdir("/proc/%d/task" % pid) if int(task) != pid)
    return schedstat("/proc/%d/task/%d/schedstat" % (pid, task))


def scrape(port):
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while got := stream.recv(1 << 20):
            answer += got
    assert answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"# EOF\n"), answer[:300]
    return len(answer)


def measure(monitor, programs, port, scrapes):
    before = of_process(monitor), [service(pid) for pid in programs], [of_process(pid) for pid in programs]
    start, count, size = time.monotonic(), 0, 0
    while time.monotonic() < start + duration:
        if scrapes:
            size = scrape(port)
            count += 1
        time.sleep(max(0, start + (count + 1) / rate - time.monotonic()) if scrapes else 1)
    took = time.monotonic() - start

    def share(now, then):
        return 100 * (now - then) / took

    print("%-16s %5d scrapes of %6d bytes: monitor %.3f %% of a core; service threads %s %%; programs %s %%" % (
        "with scrapes" if scrapes else "without", count, size, share(of_process(monitor), before[0]),
        " ".join("%.2f" % share(service(pid), then) for pid, then in zip(programs, before[1])),
        " ".join("%.1f" % share(of_process(pid), then) for pid, then in zip(programs, before[2]))), flush=True)


started = []


def start(*command):
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    started.append(process)
    return process


try:
    server = start(shunt, "run", sys.executable, "-c", SERVER)
    client = start(shunt, "run", sys.executable, "-c", CLIENT, server.stdout.readline().strip(), str(streams))
    monitor = start(shunt, "monitor", "--json", "--listen", "127.0.0.1:0", "--interval", interval)
    port = int(re.search(r":(\d+)/", json.loads(monitor.stdout.readline())["url"])[1])
    while 'state="linked"} %d' % streams not in subprocess.check_output([shunt, "stat", "--openmetrics"], text=True):
        time.sleep(0.1)
    programs = [server.pid, client.pid]
    measure(monitor.pid, programs, port, False)
    measure(monitor.pid, programs, port, True)
finally:
    for each in reversed(started):
        each.kill()
PYTHON
