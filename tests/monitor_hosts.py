# SPDX-License-Identifier: MIT
"""What `shunt monitor --hosts` makes of other hosts: those that answer, hang, end, come back, lie and flood.

monitor_hosts.py SHUNT FAKE   FAKE: tests/stat_fake.py
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metrics_check  # noqa: E402
import stat_fake  # noqa: E402

SHUNT, FAKE = sys.argv[1:3]
started = []

# In place of ssh. `good` hosts run the command here; the others say the lines of a file of their name, and go on or hang.
SSH = r"""#!/bin/bash
while [ "$1" != -- ]; do shift; done
echo "$3" >>"$WORK/asked.$2"
echo $$ >"$WORK/pid.$2"
case $2 in
*good*) [ ! -e "$WORK/away" ] || exit 3
	exec sh -c "$3" ;;
hangs) exec sleep 1000 ;;
refuses) echo "ssh: <b>connect</b> $(printf '\033]0;x\007')refused" >&2; exit 255 ;;
floods) yes x | exec tr -d '\n' ;;
storms) exec yes '[]' ;;
back) [ -e "$WORK/back" ] || { echo away >&2; exit 3; } ; echo '[]'; exec sleep 1000 ;;
*) cat "$WORK/$2"; exec sleep 1000 ;;
esac
"""


def fail(what):
    sys.exit("monitor: %s" % what)


def check(what, got, wanted):
    if got != wanted:
        fail("%s: %r, not %r" % (what, got, wanted))


def start(scratch, *hosts, name="list"):
    path = os.path.join(scratch, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("# some hosts\n" + "".join(host + "\n" for host in hosts))
    process = subprocess.Popen([SHUNT, "monitor", "--json", "--listen", "127.0.0.1:0", "--interval", "0.05", "--hosts", path],
                               stdout=subprocess.PIPE, text=True)
    started.append(process)
    process.url = json.loads(process.stdout.readline())["url"]
    return process


def page(monitor):
    return urllib.request.urlopen(monitor.url, timeout=100).read().decode("utf-8")


def metrics(monitor, strict=False):
    request = urllib.request.Request(monitor.url + "metrics")
    if strict:
        request.add_header("Accept", "application/openmetrics-text")
    text = urllib.request.urlopen(request, timeout=100).read().decode("ascii")
    samples, _ = metrics_check.read(text, strict)
    return samples


def up(samples):
    return {dict(labels)["host"]: value for (name, labels), value in samples.items() if name == "shunt_host_up"}


def wait_for(what, condition):
    """Asks again until it is so; the test's runner ends one that never is."""
    while not (found := condition()):
        time.sleep(0.01)
    print("ok - " + what)
    return found


def row(text, host):
    found = re.search(r"<tr>\s*<td[^>]*>%s</td>(.*?)</tr>" % re.escape(host), text, re.S)
    return re.sub(r"<[^>]*>", " ", found[1]) if found else fail("no row of %s: %s" % (host, text))


def touch(scratch, name):
    with open(os.path.join(scratch, name), "w", encoding="ascii"):
        pass


def pid_of(scratch, host):
    path = os.path.join(scratch, "pid." + host)

    def read():
        try:
            with open(path, encoding="ascii") as file:
                return file.read().strip()
        except FileNotFoundError:
            return ""

    return int(wait_for("ssh runs for " + host, read))


def lives(pid):
    return os.path.exists("/proc/%d/exe" % pid)


def answers(scratch, growing):
    """Two hosts that answer, beside some that do not: each has its row, and none stops another."""
    monitor = start(scratch, "good1", "root@good2:22", "hangs", "refuses", "back")
    wanted = {"good1": 1, "root@good2:22": 1, "hangs": 0, "refuses": 0, "back": 0}
    wait_for("two answer", lambda: up(metrics(monitor)) == wanted)
    check("OpenMetrics", up(metrics(monitor, strict=True)), wanted)
    series = {labels: value for (name, labels), value in metrics(monitor).items() if name == "shunt_streams_made_total" and dict(labels)["pid"] == str(growing.pid)}
    check("series", {(dict(labels)["pid"], dict(labels).get("host")): value for labels, value in series.items()},
          {(str(growing.pid), host): 3 for host in (None, "good1", "root@good2:22")})
    processes = {dict(labels).get("host"): value > 0 for (name, labels), value in metrics(monitor).items() if name == "shunt_processes"}
    check("processes", processes, {None: True, "good1": True, "root@good2:22": True, "hangs": False, "refuses": False, "back": False})
    text = wait_for("rates of a host", lambda: (text := page(monitor)) and "B/s" in row(text, "good1") and text)
    for piece in ("%d on good1<" % growing.pid, "%d on root@good2:22<" % growing.pid, '<td class="n">%d</td>' % growing.pid):
        if piece not in text:
            fail("no %r in the page: %s" % (piece, text))
    for host, words in (("good1", r"answers since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\s+\d+){4}\s+\S+ GB/s"), ("hangs", r"no answer since \d.* (it has not answered yet|it has said nothing)"),
                        ("refuses", r"no answer since \d.*ssh has not reached it \(ssh: &lt;b&gt;connect.*x1b.*`ssh -o BatchMode=yes refuses true`"),
                        ("back", r"no answer since \d.*ended with status 3 \(away\)")):
        if not re.search(words, row(text, host), re.S):
            fail("no %r of %s: %r" % (words, host, row(text, host)))
    with open(os.path.join(scratch, "asked.good1"), encoding="ascii") as file:
        check("ssh was asked", file.read(), "shunt stat --json --watch 0.05\n")
    # One comes back, one that answered ends, and comes back.
    touch(scratch, "back")
    wait_for("one is back", lambda: up(metrics(monitor)) == {**wanted, "back": 1})
    touch(scratch, "away")
    os.kill(pid_of(scratch, "good1"), signal.SIGKILL)
    wait_for("one has ended", lambda: "signal 9" in row(page(monitor), "good1") or "status 3" in row(page(monitor), "good1"))
    check("its end in the metrics", up(metrics(monitor))["good1"], 0)
    check("its processes", [labels for (_, labels) in metrics(monitor) if dict(labels).get("host") == "good1" and "pid" in dict(labels)], [])
    os.unlink(os.path.join(scratch, "away"))
    wait_for("it is back", lambda: up(metrics(monitor))["good1"] == 1)
    wait_for("a host that has fallen silent", lambda: "nothing for too long" in row(page(monitor), "back"))
    check("the others", [up(metrics(monitor))[host] for host in ("good1", "root@good2:22")], [1, 1])
    monitor.terminate()
    check("the exit status", monitor.wait(), 0)


def ends(scratch):
    """What it has started ends with it, however it ends."""
    for signal_ in signal.SIGTERM, signal.SIGKILL:
        if os.path.exists(os.path.join(scratch, "pid.hangs")):
            os.unlink(os.path.join(scratch, "pid.hangs"))
        monitor = start(scratch, "hangs")
        pid = pid_of(scratch, "hangs")
        check("ssh runs", lives(pid), True)
        monitor.send_signal(signal_)
        check("the exit status", monitor.wait(), 0 if signal_ == signal.SIGTERM else -9)
        wait_for("ssh has ended with it", lambda: not lives(pid))


def hostile(scratch):
    """Nothing of another host reaches the page or the metrics unescaped, and one that floods starves nobody."""
    escapes = {**stat_fake.process(1 << 62, stat_fake.ESCAPES + "<script>"), "pid": 7, "identity": 32 * "a"}
    odd = {**stat_fake.metrics(), "pid": 8, "identity": 32 * "b"}
    said = {"escapes": [escapes, escapes, odd], "object": {"a": 1}, "nulls": [None], "unnamed": [{"pid": 1}],
            "negative": [{"pid": -1, "identity": 32 * "c"}], "named": [{"pid": 1, "identity": 32 * '"'}],
            "many": [{"pid": i, "identity": "%032x" % i} for i in range(1001)],
            "values": [{"pid": 1, "identity": 32 * "d", "streams": 300000 * [{}]}]}
    for name, value in said.items():
        with open(os.path.join(scratch, name), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(json.dumps(value, ensure_ascii=False) + "\n")
    with open(os.path.join(scratch, "junk"), "wb") as file:
        file.write(b"\0\xff[\n" + b"[" * 100000 + b"\n")
    names = [*said, "junk", "floods", "storms", "good1"]
    monitor = start(scratch, *names)
    wanted = {name: int(name in ("escapes", "storms", "good1")) for name in names}
    wait_for("only those are up that answer as hosts do", lambda: up(metrics(monitor)) == wanted)
    for strict in False, True:
        metrics(monitor, strict)
    wait_for("a flood is told", lambda: "too long for this monitor" in row(page(monitor), "floods"))
    text = page(monitor)
    check("scripts", re.findall(r"<script|<img|src=|href=.?http|\x1b|title\x07", text), [])
    for name in said.keys() - {"escapes"} | {"junk"}:
        if "not that of `shunt stat`" not in row(text, name):
            fail("%s: %s" % (name, row(text, name)))
    with open("/proc/%d/status" % monitor.pid, encoding="ascii") as file:
        most = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) >> 10
    if not os.environ.get("ASAN_OPTIONS"):
        check("memory", most < 256 or "%d MB" % most, True)
    monitor.terminate()
    check("the exit status", monitor.wait(), 0)


def lists(scratch):
    path = os.path.join(scratch, "wrong")
    for line in ("-oProxyCommand=x", "a b", "$(x)", "a\x1b", "good1"):
        with open(path, "w", encoding="utf-8") as file:
            file.write("good1\n%s\n" % line)
        done = subprocess.run([SHUNT, "monitor", "--listen", "127.0.0.1:0", "--hosts", path], capture_output=True, text=True, check=False)
        check(line, (done.returncode, "line 2: " in done.stderr), (2, True))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        with open(os.open(os.path.join(scratch, "ssh"), os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="ascii") as file:
            file.write(SSH)
        os.environ["PATH"] = os.pathsep.join((scratch, os.path.dirname(SHUNT), os.environ["PATH"]))
        os.environ["WORK"] = scratch
        growing = subprocess.Popen([sys.executable, FAKE, "growing"], stdout=subprocess.PIPE, text=True)
        started.append(growing)
        growing.stdout.readline()
        answers(scratch, growing)
        ends(scratch)
        hostile(scratch)
        lists(scratch)
    print("ok")


try:
    main()
finally:
    for each in started:
        each.kill()
