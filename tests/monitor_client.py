# SPDX-License-Identifier: MIT
"""What an HTTP client sees of `shunt monitor`.

monitor_client.py SHUNT FAKE   FAKE: tests/stat_fake.py
"""
import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metrics_check  # noqa: E402

SHUNT, FAKE = sys.argv[1:3]
NOBODY = 65534
TOKEN = "a-token-of-27-characters..."
started = []


def fail(what):
    sys.exit("monitor: %s" % what)


def check(what, got, wanted):
    if got != wanted:
        fail("%s: %r, not %r" % (what, got, wanted))


def start(*arguments, program=SHUNT, **more):
    process = subprocess.Popen([program, "monitor", "--json", "--listen", "127.0.0.1:0", *arguments],
                               stdout=subprocess.PIPE, text=True, **more)
    started.append(process)
    said = json.loads(process.stdout.readline())
    check("the schema", (said["schema"], said["pid"]), (1, process.pid))
    process.port = int(re.fullmatch(r"http://(?:127.0.0.1|0.0.0.0):(\d+)/", said["url"])[1])
    return process


def end(process, signal_=signal.SIGTERM):
    process.send_signal(signal_)
    check("the exit status", process.wait(), 0)


def fake(kind):
    process = subprocess.Popen([sys.executable, FAKE, kind], stdout=subprocess.PIPE, text=True)
    started.append(process)
    check("a process id", int(process.stdout.readline()), process.pid)
    return process


def connect(monitor):
    stream = socket.create_connection(("127.0.0.1", monitor.port))
    stream.settimeout(100)
    return stream


def read(stream):
    answer = b""
    try:
        while got := stream.recv(65536):
            answer += got
    except ConnectionResetError:
        pass
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode("ascii").split("\r\n")
    headers = {line.split(": ")[0].lower(): line.split(": ", 1)[1] for line in lines[1:]}
    status = int(lines[0].split(" ")[1]) if answer else None
    return status, headers, body.decode("utf-8")


def ask(monitor, path, method="GET", host="localhost", more="", body=""):
    with connect(monitor) as stream:
        stream.sendall(("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s" % (method, path, host, more, body)).encode())
        return read(stream)


def status(*arguments, **more):
    return ask(*arguments, **more)[0]


def metrics(monitor, strict=False, more=""):
    more += "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n" if strict else ""
    code, headers, text = ask(monitor, "/metrics", more=more)
    check("the status", code, 200)
    check("the type", headers["content-type"].split(";")[0], "application/openmetrics-text" if strict else "text/plain")
    samples, _ = metrics_check.read(text, strict)
    return {(name, dict(labels).get("pid")): value for (name, labels), value in samples.items()}


def endpoints(monitor, growing):
    check("health", ask(monitor, "/healthz")[::2], (200, "ok\n"))
    code, headers, page = ask(monitor, "/")
    check("a page", (code, headers["content-type"]), (200, "text/html; charset=utf-8"))
    for name, value in (("content-security-policy", "default-src 'none'"), ("x-content-type-options", "nosniff"),
                        ("cache-control", "no-store"), ("x-frame-options", "DENY"), ("connection", "close")):
        if value not in headers[name]:
            fail("%s: %s" % (name, headers[name]))
    for piece in ('<td class="n">%d</td>' % growing.pid, "127.0.0.1:40000", "Busiest streams", "why"):
        if piece not in page:
            fail("no %r in the page" % piece)
    check("scripts", re.findall(r"<script|<img|src=|href=.?http|\x1b|title\x07", page), [])
    code, headers, body = ask(monitor, "/", method="HEAD")
    check("a head", (code, body, int(headers["content-length"]) > 1000), (200, "", True))
    check("a log", ask(monitor, "/log")[0], 200)
    for strict in False, True:
        found = metrics(monitor, strict)
        check("streams", found["shunt_streams_made_total", str(growing.pid)], 3)
        check("processes", found["shunt_processes", None], 2)


def refusals(monitor):
    for method in "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", "ADM":
        code, headers, _ = ask(monitor, "/metrics", method=method)
        check(method, (code, headers["allow"]), (405, "GET, HEAD"))
    check("a body", status(monitor, "/", more="Content-Length: 5\r\n", body="hello"), 413)
    check("chunks", status(monitor, "/", more="Transfer-Encoding: chunked\r\n", body="0\r\n\r\n"), 413)
    for path in "/x", "/metrics/", "//", "/../etc/passwd", "/%2e%2e/", "/metrics%00", "/healthz/x", "*":
        if status(monitor, path) not in (404, 400):
            fail("%s: %r" % (path, status(monitor, path)))
    for host in ("localhost", "LocalHost:80", "127.0.0.1", "127.1.2.3:9477", "[::1]", "[::1]:80"):
        check(host, status(monitor, "/metrics", host=host), 200)
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "[::1",
                 "localhost:x", "localhost:80:80", "[]", "", "localhost evil.example", "0.0.0.0", "127.0.0.1@x"):
        if status(monitor, "/metrics", host=host) not in (421, 400):
            fail("the host %r: %r" % (host, status(monitor, "/metrics", host=host)))
    check("two hosts", status(monitor, "/metrics", more="Host: localhost\r\n"), 400)
    with connect(monitor) as stream:
        stream.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        check("no host", read(stream)[0], 400)


def one_look_for_many(growing):
    """The process has more bytes in each answer that it gives."""
    monitor = start("--interval", "60")
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        seen = {each["shunt_bytes_total", str(growing.pid)] for each in pool.map(metrics, 30 * [monitor])}
    check("looks", len(seen), 1)
    end(monitor, signal.SIGINT)


def crowds(monitor):
    """Whoever holds connections, with and without a part of a request, is ended by those that come."""
    holders = [connect(monitor) for _ in range(300)]
    for i, stream in enumerate(holders):
        try:
            stream.sendall((b"", b"G", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")[i % 3])
        except OSError:
            pass
    for _ in range(20):
        check("health in a crowd", status(monitor, "/healthz"), 200)
        metrics(monitor)
    with connect(monitor) as stream:  # it does not read its answer
        stream.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        metrics(monitor)
    for stream in holders:
        stream.close()
    check("a long line", status(monitor, "/" + 100000 * "a") in (414, 400, 431, None), True)
    check("long headers", status(monitor, "/", more="".join("X-%d: %s\r\n" % (i, 1000 * "b") for i in range(100)))
          in (413, 431, 400, None), True)
    metrics(monitor)


def large_processes():
    """Answers that would become 1.5 GB: what the unit of the monitor allows is enough for it."""
    monitor = start("--interval", "0.05")
    fakes = [fake(kind) for kind in ("large", "large", "larger", "larger")]
    for _ in range(4):
        metrics(monitor)
        status(monitor, "/")
    with open("/proc/%d/status" % monitor.pid, encoding="ascii") as file:
        most = int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) >> 10
    check("memory", most < 256 or "%d MB" % most, True)
    for each in fakes:
        each.kill()
        each.wait()
    end(monitor)


def deaf_process():
    """A process that is slow to answer keeps nobody from /healthz; it has no series."""
    monitor, trickle = start(), fake("trickle")
    with connect(monitor) as waiting:
        waiting.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check("health", status(monitor, "/healthz"), 200)
        samples, _ = metrics_check.read(read(waiting)[2], False)
        check("late", samples["shunt_processes_late", ()], 1)
    # It ends while a request waits, and another is half sent.
    other = start()
    with connect(other) as waiting, connect(other) as half:
        waiting.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        half.sendall(b"GET / HT")
        end(other)
    end(monitor)


def token(scratch):
    path = os.path.join(scratch, "token")

    def write(text, mode):
        if os.path.exists(path):
            os.unlink(path)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, mode), "w", encoding="ascii") as file:
            file.write(text)

    def refused(wanted, *arguments):
        done = subprocess.run([SHUNT, "monitor", *arguments], capture_output=True, text=True, check=False)
        check("%r: %s" % (arguments, done.stderr), (done.returncode, bool(done.stderr)), (wanted, True))

    for text, mode in (TOKEN, 0o644), (TOKEN, 0o640), ("short", 0o600), ("", 0o600), (600 * "x", 0o600), ("a b" * 10, 0o600):
        write(text, mode)
        refused(1, "--token", path)
    refused(1, "--token", path + "x")
    refused(1, "--token", "/")
    for address in ("0.0.0.0:0", "[::]:0", "10.0.0.1:80"):
        refused(2, "--listen", address)
    for arguments in (["--listen", x] for x in ("localhost", "127.0.0.1", "127.0.0.1:99999", "::1:80", "[::1:80", "127.0.0.1:", "x:1")):
        refused(2, *arguments)
    for arguments in (["--interval", "0"], ["--user", "nobody-of-that-name"], ["--wrong"], ["word"]):
        refused(2, *arguments)
    refused(1, "--listen", "127.0.0.1:%d" % start().port)

    write(TOKEN + "\n", 0o600)
    monitor = start("--token", path, "--listen", "0.0.0.0:0")
    check("health", status(monitor, "/healthz", host="any.example"), 200)
    for given in (None, "", "Bearer", "Bearer ", TOKEN, "Bearer x", "Basic " + TOKEN, "Bearer " + TOKEN[:-1],
                  "Bearer " + TOKEN + "x", "Bearer " + 2 * TOKEN, "Bearer " + TOKEN.upper()):
        more = "" if given is None else "Authorization: %s\r\n" % given
        code, headers, body = ask(monitor, "/metrics", more=more)
        check("token %r" % given, (code, headers["www-authenticate"][:6], "shunt_" in body), (401, "Bearer", False))
    metrics(monitor, more="Authorization: Bearer %s\r\n" % TOKEN)
    check("a page", status(monitor, "/", host="any.example", more="Authorization: Bearer %s\r\n" % TOKEN), 200)
    end(monitor)


def shunted(*role):
    """A real one: it refuses other users itself, as the fake ones do not. And what it says."""
    counts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics_count.py")
    process = subprocess.Popen([SHUNT, "run", sys.executable, counts, "end", *role], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "SHUNT_TUNE": "slow_us=1"})
    started.append(process)
    return process, process.stdout.readline().strip()


def log(monitor):
    """Events of two processes in one stream, in the order of time."""
    server, port = shunted("server")
    client, _ = shunted("client", port)
    code, headers, text = ask(monitor, "/log")
    check("the log", (code, headers["content-type"]), (200, "application/x-ndjson"))
    events = [json.loads(line) for line in text.splitlines()]
    check("processes in the log", {event["pid"] for event in events}, {server.pid, client.pid})
    times = [event["time_ns"] for event in events]
    check("the order", times, sorted(times))
    for process in client, server:
        process.kill()
        process.wait()


def other_user(monitor, scratch):
    """As root only."""
    ours, _ = shunted("server")
    program = os.path.join(scratch, "shunt")
    subprocess.check_call(["cp", SHUNT, os.path.join(os.path.dirname(SHUNT), "shunt-view"), scratch])
    os.chmod(scratch, 0o755)

    def as_nobody(function):
        child = os.fork()
        if not child:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os._exit(function())
        check("the other user's", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def is_refused():
        answers = [ask(monitor, path) for path in ("/metrics", "/", "/log")]
        return not all(code == 403 and "shunt_" not in body and str(ours.pid) not in body for code, _, body in answers)

    as_nobody(is_refused)
    # A crowd of somebody who may not ask ends nobody's request but its own.
    with connect(monitor) as waiting:
        waiting.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n")
        status(monitor, "/healthz")

        def crowd():
            kept = [connect(monitor) for _ in range(200)]
            return status(monitor, "/healthz") != 200 or not kept

        as_nobody(crowd)
        waiting.sendall(b"\r\n")
        check("in somebody's crowd", read(waiting)[0], 200)
    friendly = start("--user", "nobody")
    as_nobody(lambda: status(friendly, "/metrics") != 200)
    end(friendly)
    # As another user it sees none of ours; root may ask it.
    theirs = start(program=program, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    series = "shunt_streams_made_total", str(ours.pid)
    fresh = start()
    check("to root", series in metrics(fresh), True)
    end(fresh)
    check("to others", series in metrics(theirs), False)
    check("their page", '<td class="n">%d</td>' % ours.pid in ask(theirs, "/")[2], False)
    end(theirs)


def names(scratch):
    mesh = os.path.join(scratch, "mesh")
    with open(mesh, "w", encoding="ascii") as file:
        json.dump({"schema": 1, "hosts": ["a<b", "c"], "ways": [
            {"from": "a<b", "to": "c", "verdict": "tcp", "cause": "memlock", "says": "<script>", "ns": 7200},
            {"from": "nowhere", "to": 5, "verdict": {}}, 7]}, file)
    monitor = start("--host", "metrics.example", "--matrix", mesh)
    check("a name", status(monitor, "/metrics", host="metrics.EXAMPLE:80"), 200)
    check("another", status(monitor, "/metrics", host="metrics.example.evil"), 421)
    page = ask(monitor, "/")[2]
    for piece in ("TCP 7.2 µs", "a&lt;b", "&lt;script&gt;"):
        if piece not in page:
            fail("no %r in the page" % piece)
    with open(mesh, "w", encoding="ascii") as file:
        file.write("[]")
    end(monitor)
    monitor = start("--matrix", mesh)
    if "it is no answer of shunt ping" not in ask(monitor, "/")[2]:
        fail("nothing of a wrong matrix")
    end(monitor)


def main():
    growing, _ = fake("growing"), fake("hostile")
    with tempfile.TemporaryDirectory() as scratch:
        monitor = start()
        endpoints(monitor, growing)
        refusals(monitor)
        log(start())
        one_look_for_many(growing)
        crowds(monitor)
        token(scratch)
        names(scratch)
        if not os.geteuid():
            other_user(monitor, scratch)
        deaf_process()
        if not os.environ.get("ASAN_OPTIONS"):
            large_processes()
        end(monitor)
    print("ok")


try:
    main()
finally:
    for each in started:
        each.kill()
