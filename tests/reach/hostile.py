#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Somebody means no good to programs of other users. hostile.py [--quick] [--keep FOLDER] [ATTACK...]

Each case starts a server of one user and clients of another, shunted ones and plain ones, and an enemy who is a third user
(attacks.py) and speaks the protocol by an implementation of his own (enemy.py). While he is at it the clients check each byte
and measure each step. Afterwards each of their connections must be on a link, or on TCP with a reason; when he has gone, a new
one must be linked. What he may cost is bounded. TAP.

With --whole the cases run one after another, and the clients' times are compared in turns with times that nobody attacks: before,
twice during the attack, and after it. Each turn has 300 short connections of each client. The servers end in the midst of the
attack. A plain client of a plain server shows what a loaded machine does by itself: what the attack costs it is no fault of ours.

Needs root, to be three users. SHUNT: the command; BUILD: the folder of the build; ADDRESS: one that is no loopback address.
"""
import collections
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
import speech  # noqa: E402
import waits  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
BUILD = pathlib.Path(os.environ.get("BUILD", ".")).resolve()
SHUNT = os.environ.get("SHUNT", f"{BUILD}/tools/shunt run").split()
TOOL = f"{BUILD}/tools/shunt"
LACKING = f"{BUILD}/tests/calls/lacking"
SERVER, CLIENT, ENEMY = 64001, 64002, 64003	# the users
CLAIM_MS = 250
HANG = 5	# seconds: what takes longer hangs
ENDS = 8	# seconds in which a server ends: exit() waits 5 s for readers of what the program has sent (core/engine.c)
SETTLES = 15	# seconds in which a connection gets a link or a reason
MB = 1 << 20
CALLS = 300	# short connections of each client in a turn of --whole
TURNS = 4	# so often a case is played, until its clients are not slower in all turns together
MEDIAN, MOST = 1.2, 5	# what a short connection may take in an attack, times what it takes without

# core/peer/limits.h; what an unproven stranger may cost a process, with room for what a loaded machine has not closed yet.
GUESTS_PER_USER, CO_LISTENERS, LINKS_PER_PROCESS = 64, 64, 256
GUEST_FDS = GUESTS_PER_USER + CO_LISTENERS + 16
NOFILE, STRANGERS_SHARE = 1024, 8	# of the cases that count links; a user has half of the share

# What the enemy must have seen, by the beginning of the attack's name, or it was none; the longest counts.
REACHES = {"squat": "came", "claim": "asked", "claim-unproven": "hung up", "network": "asked", "network-own": "disproven",
           "relay": "relayed", "fds": "", "fds-equal": "", "flood-connects": "connects", "flood-knocks": "knocks", "flood": "asks",
           "flood-tuples": "told", "flood-have": "connects",
           "proven": "proven", "proven-retire": "on the link", "proven-links": "up", "dies": "died",
           "dir-proven": "met", "dir-proven-links": "up", "dir-fds": "", "dir-flood-connects": "connects", "dir-flood-knocks": "knocks"}


class Case:
    def __init__(self, attack, first=False, address="127.0.0.1", fds=GUEST_FDS, mb=32, threads=2, wrap=(), quick=False, alone=False,
                 links_during=None, log="info", calls=40, restart=False, same_user=False, enemy=(), check=None, where=None,
                 steady=False, victim="echo", dir=False, traced=False, patience=0):
        self.attack, self.first, self.address, self.fds, self.mb, self.threads = attack, first, address, fds, mb, threads
        self.wrap, self.quick, self.alone, self.links_during = list(wrap), quick, alone, links_during
        self.log, self.calls, self.restart, self.same_user = log, calls, restart, same_user
        self.enemy, self.check, self.where, self.steady = list(enemy), check, where or {}, steady
        self.victim, self.dir, self.traced, self.patience = victim, dir, traced, patience
        self.base = ("dir-" if dir else "") + attack + ("-after" if restart else "") + ("-unguarded" if "passrights" in wrap else "")
        self.base += ("-same-user" if same_user else "") + ("-traced" if traced else "")
        self.name = self.base + (f"@{victim}" if victim != "echo" else "")

    def beside(self, victim, quick=False):
        """The same attack on another server, whose program takes more of everything for itself."""
        other = copy.copy(self)
        other.victim, other.quick, other.name = victim, quick, f"{self.base}@{victim}"
        other.fds, other.mb = self.fds + 64, self.mb + 32
        return other

    @property
    def finishes(self):
        """The enemy does what he does until he has done it, and tells then."""
        return bool(self.attack) and self.attack.split("-")[0] in ("flood", "fds", "proven", "dies") and \
            self.attack not in ("proven-others", "proven-escapes", "proven-server")


# --- processes ---

class Process:
    def __init__(self, command, user, log, **environment):
        env = {key: value for key, value in os.environ.items() if not key.startswith("SHUNT")}
        self.log = open(log, "w+", encoding="latin-1")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, user=user,
                                        group=user, extra_groups=[], env={**env, **environment})
        self.pid, self.rest, self.by_signal = self.process.pid, b"", False

    def line(self, seconds):
        """Its next line; None: it has said none in time, or has ended."""
        until = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return None
            some = os.read(self.process.stdout.fileno(), 65536)
            if not some:
                return None
            self.rest += some
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def end(self, seconds=30):
        """Its exit status; None: it does not end."""
        self.close()
        if self.by_signal:
            self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()

    def said(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()


def answers(port):
    with socket.socket() as sock:
        return not sock.connect_ex(("127.0.0.1", port))


def children_of(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def cost(pid):
    """Memory in bytes, descriptors, threads."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.M).group(1))  # noqa: E731
    return field("VmRSS") * 1024, len(os.listdir(f"/proc/{pid}/fd")), field("Threads")


class Watch(threading.Thread):
    """The most that a process costs, until stop()."""
    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.over = pid, cost(pid), threading.Event()
        self.before = self.most
        self.start()

    def run(self):
        while not self.over.wait(0.02):
            try:
                self.most = tuple(map(max, self.most, cost(self.pid)))
            except (OSError, AttributeError):
                return

    def stop(self):
        self.over.set()
        self.join()
        return [most - before for most, before in zip(self.most, self.before)]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


# --- one case ---

class Scene:
    """Victims and an enemy, and what is wrong with them."""
    def __init__(self, case, folder, whole=False, earlier=None):
        self.case, self.folder, self.whole, self.wrong, self.notes = case, folder, whole, [], []
        self.count, self.processes, self.slow = earlier.count if earlier else 0, [], []
        self.ports = [free_port() for _ in range(4)]	# of a shunted server, a plain one, one of the enemy's, one behind a proxy
        self.servers, self.clients, self.enemy, self.dir = [], {}, None, None
        self.turns = earlier.turns if earlier else {"without": [], "during": []}
        self.compares = whole and case.attack and not case.traced
        if case.dir:
            self.dir = f"{folder}/dir.{case.name}"
            os.makedirs(self.dir, exist_ok=True)
            os.chmod(self.dir, 0o1777)

    def start(self, what, command, user, shunted=False):
        self.count += 1
        base = f"{self.folder}/{user}/{self.case.name}.{self.count}.{what}"
        environment = {}
        if shunted:
            command = (self.case.wrap if what == "server" or "passrights" in self.case.wrap else []) + SHUNT + command
            if self.case.traced and what == "server":
                command = waits.STRACE + [base + ".trace"] + command
            environment = {"SHUNT_LOG": self.case.log, "SHUNT_LOG_FILE": base + ".log", "SHUNT_STATS": base + ".stats",
                           "SHUNT_TUNE": f"claim_ms={CLAIM_MS},brief=0,refused_ms=300"}
            environment.update({"SHUNT_DIR": self.dir} if self.dir else {})
        process = Process(command, user, base + ".err", **environment)
        process.base, process.what, process.shunted, process.worker = base, what, shunted, process.pid
        self.processes.append(process)
        return process

    def echo(self, port, shunted):
        server = self.start("server", [PYTHON, str(HERE / "victim.py"), "serve", self.case.address, str(port)], SERVER, shunted)
        if not server.line(30):
            self.wrong.append("a server does not start: " + server.said()[-500:])
        return server

    def service(self, port):
        """A program of Debian's, as its service runs it."""
        folder = f"{self.folder}/{SERVER}/{self.case.name}.{self.count}"
        os.mkdir(folder, 0o700)
        command = speech.command(self.case.victim, folder, self.case.address, port, self.ports[3])
        for path in [folder, *pathlib.Path(folder).iterdir()]:
            os.chown(path, SERVER, SERVER)
        server = self.start("server", command, SERVER, True)
        server.by_signal = True
        until = time.monotonic() + 30
        while not answers(port) and server.process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        if not answers(port):
            self.wrong.append("a server does not start: " + server.said()[-500:])
        server.worker = ([server.pid] + children_of(server.pid))[-1]
        return server

    def start_servers(self):
        self.servers = [self.echo(self.ports[0], True) if self.case.victim == "echo" else self.service(self.ports[0]),
                        self.echo(self.ports[1], False)]
        if self.case.victim == "haproxy":
            self.servers.append(self.echo(self.ports[3], True))

    def call(self, what, port, shunted, calls=None):
        speaks = speech.SPEECH[self.case.victim] if port == self.ports[0] else "echo"
        calls = calls or (CALLS if self.whole else self.case.calls)
        return self.start(what, [PYTHON, str(HERE / "victim.py"), "call", str(port), str(calls), speaks], CLIENT, shunted)

    def attack(self):
        where = {"ports": self.ports, "pids": [server.pid for server in self.servers], "speech": speech.SPEECH[self.case.victim],
                 "dir": self.dir, "again": self.whole and self.case.finishes, **self.case.where}
        self.enemy = self.start("enemy", self.case.enemy + [PYTHON, str(HERE / "attacks.py"), self.case.attack, json.dumps(where)],
                                SERVER if self.case.same_user else ENEMY)
        if self.enemy.line(30) != "ready":
            self.wrong.append("the enemy does not get ready: " + self.enemy.said()[-500:])

    def start_all(self):
        if self.case.attack and self.case.first:
            self.attack()
        self.start_servers()
        if self.case.steady or (self.compares and not (self.case.first or self.case.restart)):
            self.without()
        if self.case.attack and not self.case.first:
            self.attack()
        if self.case.restart:	# the enemy waits for just this
            self.end_servers()
            time.sleep(0.1)
            self.start_servers()
        self.watches = [Watch(self.servers[0].worker)]
        self.start_clients()
        if self.case.attack == "proven-server":
            self.clients["to-enemy"] = self.call("to-enemy", self.ports[2], True)

    def without(self):
        """A turn that nobody attacks."""
        self.start_clients()
        self.turns["without"].append(self.measured())
        self.end_clients()

    def start_clients(self):
        self.clients = {"both": self.call("both", self.ports[0], True), "to-plain": self.call("to-plain", self.ports[1], True),
                        "from-plain": self.call("from-plain", self.ports[0], False)}
        if self.whole:
            self.clients["plain"] = self.call("plain", self.ports[1], False)

    def end_clients(self):
        for client in self.clients.values():
            self.end_client(client)
        self.clients = {}

    def compared(self):
        """Nobody is slower than before the attack. What a loaded machine does by itself is not the enemy's."""
        for what, steps in self.figures.items():
            for step, times in steps.items():
                before = self.turns["without"][0].get(what, {}).get(step)
                if not before:
                    continue
                for figure, ratio, slack in (("median", 1.2, 0.003), ("most", 5, 0.5)):
                    if times[figure] > max(ratio * before[figure], before[figure] + slack):
                        self.wrong.append(f"{what}: {step} takes {times[figure] * 1e3:.2f} ms ({figure}), before the attack "
                                          f"{before[figure] * 1e3:.2f} ms")

    def ratio(self, what, figure):
        """How much longer a short connection takes in the attack, and what it takes without, in ms."""
        during, without = ([turn[what]["whole"][figure] for turn in self.turns[when] if what in turn] for when in ("during", "without"))
        if not during or not without:
            return 0, 0
        usual = statistics.median(without) if figure == "median" else max(without)
        return (statistics.median(during) if figure == "median" else statistics.median_low(during)) / usual, usual * 1e3

    def compared_in_turns(self):
        for figure, bound in (("median", MEDIAN), ("most", MOST)):
            own = max(1, self.ratio("plain", figure)[0])	# what the machine does to those who have nothing to do with us
            said = []
            for what in ("both", "to-plain", "from-plain", "plain"):
                ratio, usual = self.ratio(what, figure)
                said.append(f"{what} x{ratio:.2f} of {usual:.2f} ms")
                if ratio > bound * own and (figure == "median" or ratio * usual > self.case.patience):
                    self.slow.append(f"{what}: a short connection takes {ratio:.2f} times as long ({figure}), one that is all plain "
                                     f"{own:.2f} times")
            self.notes.append(f"{figure}: " + ", ".join(said))

    def measured(self):
        """All steps of all clients."""
        figures = {}
        for what, client in self.clients.items():
            line = client.line(90)
            if line is None:
                self.wrong.append(f"client {what} is not served: {client.said()[-300:]}")
                continue
            figures[what] = json.loads(line)
            for step, times in figures[what].items():
                if times["most"] > HANG:
                    self.wrong.append(f"{what}: {step} takes {times['most']:.1f} s")
        return figures

    def streams(self, process):
        """Of a shunted process."""
        said = subprocess.run([TOOL, "stat", "--json", str(process.pid)], capture_output=True, check=False)
        try:
            return json.loads(said.stdout)[0]["streams"]
        except (ValueError, KeyError, IndexError):
            return None

    def settled(self, process, until=None):
        """What its connections came to; a problem for each that has neither a link nor a reason."""
        until, open_ = until or time.monotonic() + SETTLES, None
        while True:
            streams = self.streams(process) or []
            open_ = [stream for stream in streams if not (stream["state"] == "linked" or
                                                         (stream["state"] == "plain" and stream["reason"]))]
            if (streams and not open_) or time.monotonic() > until:
                break
            time.sleep(0.05)
        for stream in open_ if streams else [None]:
            self.wrong.append(f"{process.what}: " + (f"a connection is {stream['state']}, waits for '{stream['waits_for']}', reason "
                                                     f"'{stream['reason']}'" if stream else "no statistics"))
        return collections.Counter(stream["reason"] or stream["state"] for stream in streams)

    def verdicts(self):
        until = time.monotonic() + SETTLES
        outcome = self.settled(self.clients["both"], until)
        self.notes.append("shunted both: " + ", ".join(f"{count} {what}" for what, count in sorted(outcome.items())))
        if self.case.links_during and set(outcome) != {"linked"}:
            self.wrong.append("its connections are not on a link")
        plain = self.settled(self.clients["to-plain"], until)
        if "linked" in plain:
            self.wrong.append("a connection to a plain server is on a link")

    def report(self):
        """What the enemy has seen. His work is over, or he is told so; he holds what he has."""
        if not self.enemy:
            return None
        if self.whole and self.case.finishes:
            os.kill(self.enemy.pid, signal.SIGUSR1)
        return self.enemy.line(60)

    def bounded(self):
        memory, fds, threads = self.watches[0].stop()
        self.notes.append(f"server: {memory / MB:+.1f} MB, {fds:+d} descriptors, {threads:+d} threads")
        for what, much, most in (("MB", memory / MB, self.case.mb), ("descriptors", fds, self.case.fds),
                                 ("threads", threads, self.case.threads)):
            if much > most:
                self.wrong.append(f"the server has {much:.0f} {what} more, not {most} at most")

    def afterwards(self):
        """The enemy has gone: links come up, soon enough for a client that tries again."""
        until, wrong = time.monotonic() + SETTLES, list(self.wrong)
        while True:
            self.wrong[:] = wrong
            client = self.call("afterwards", self.ports[0], True, 1)
            if client.line(60) is None:
                self.wrong.append("a client afterwards is not served")
            outcome = self.settled(client)
            self.end_client(client)
            if set(outcome) == {"linked"}:
                return
            if time.monotonic() > until:
                self.wrong.append("no link comes up afterwards: " + ", ".join(outcome))
                return

    def end_client(self, client):
        client.close()
        if client.line(60) != "exact":
            self.wrong.append(f"client {client.what}: {client.said()[-300:] or 'does not end'}")
        if client.end() != 0:
            self.wrong.append(f"client {client.what} ends with {client.process.returncode}")

    def end_servers(self):
        servers, self.servers = self.servers, []
        for server in servers:
            begun = time.monotonic()
            status, took = server.end(), time.monotonic() - begun
            if status != (speech.ENDS.get(self.case.victim, 0) if server.by_signal else 0):
                self.wrong.append(f"a server ends with {server.process.returncode}: {server.said()[-300:]}")
            if self.whole and took > ENDS:
                self.wrong.append(f"a server ends after {took:.1f} s")
        if self.case.traced and servers:
            self.waits(servers[0])

    def waits(self, server):
        until = time.monotonic() + 30
        trace = pathlib.Path(server.base + ".trace")
        while not re.search(rf"^{server.pid} +\+\+\+", trace.read_text(encoding="latin-1"), re.M) and time.monotonic() < until:
            time.sleep(0.05)
        wrong, looked = waits.look(trace, server.pid)
        self.wrong += wrong[:20]
        self.notes.append(", ".join(f"{count} {what}" for what, count in looked.items()))
        if looked["calls on what strangers hold"] < 100:
            self.wrong.append("few calls were traced")

    def end_attacked(self):
        """The servers are told to end while somebody attacks."""
        if self.case.attack:
            self.attack()
            self.enemy.line(0.5)
        self.end_servers()
        if self.case.attack:
            self.enemy.end()

    def shown(self):
        """What people read has no control characters."""
        for process in self.processes:
            if not process.shunted:
                continue
            for suffix in ".log", ".err", ".stats":
                path = pathlib.Path(process.base + suffix)
                text = path.read_bytes() if path.exists() else b""
                said = collections.Counter(re.findall(rb"shunt\[(\d+)\].*: more are refused", text))
                if said and max(said.values()) > 1:
                    self.wrong.append(f"{max(said.values())} lines about limits in {path.name}")
                if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", text):
                    self.wrong.append(f"control characters in {path.name}")

    def run(self):
        self.start_all()
        self.figures = self.measured()
        if self.case.steady:
            self.compared()
        self.turns["during"].append(self.figures)
        if self.compares:
            more, self.clients = self.clients, {}
            self.start_clients()
            self.turns["during"].append(self.measured())
            self.end_clients()
            self.clients = more
        if self.case.finishes:
            report = self.report()
            self.verdicts()
        else:
            self.verdicts()
            report = None
        if self.case.check:
            self.case.check(self)
        self.bounded()
        if "to-enemy" in self.clients:	# whose server is about to end
            self.end_client(self.clients.pop("to-enemy"))
        if self.enemy:
            self.enemy.close()
            self.judge(json.loads(report or self.report() or "{}"))
            self.enemy.end()
        self.afterwards()
        self.end_clients()
        if self.compares:
            self.without()
            while len(self.turns["without"]) < len(self.turns["during"]):
                self.without()
            self.compared_in_turns()
            self.end_attacked()
        self.end_servers()
        self.shown()

    def judge(self, seen):
        """By the enemy's own words he got nothing that was not his."""
        if not seen:
            self.wrong.append("the enemy says nothing: " + self.enemy.said()[-800:])
        reach = REACHES[max((begin for begin in REACHES if self.case.base.startswith(begin)), key=len)]
        if reach and not seen.get(reach):
            self.wrong.append(f"the enemy has not got so far: nothing {reach}")
        self.notes.append("enemy: " + ", ".join(f"{count} {what}" for what, count in seen.items()))
        if seen.get("memory") and not seen.get("proven") and not self.case.dir:
            self.wrong.append("he has got memory")
        for what in ("others' accepted", "others' proven", "met from another namespace"):
            if seen.get(what):
                self.wrong.append(f"the enemy: {what}")
        if seen.get("proven") and not self.case.attack.startswith(("proven", "dies", "flood")):
            self.wrong.append("he has proven what he does not hold")

    def leave(self):
        for process in self.processes:
            if process.process.poll() is None:
                process.process.kill()
                process.process.wait()
            process.log.close()
            process.process.stdout.close()


# --- what only some cases check ---

def strangers(scene):
    """What strangers have at the server, as its statistics say."""
    said = subprocess.run([TOOL, "stat", "--json", str(scene.servers[0].worker)], capture_output=True, check=False)
    return json.loads(said.stdout)[0]["strangers"]


def half_of_the_links(scene):
    """One user has no more than half of what strangers may have, and a link maps no more than two arenas of our size."""
    sums = strangers(scene)
    scene.notes.append("strangers: " + ", ".join(f"{count} {what}" for what, count in sums.items()))
    most, arena = NOFILE // STRANGERS_SHARE, 1 << 30
    if sums["links_most"] != most or not most // 4 < sums["links"] <= most // 2 + len(scene.clients):
        scene.wrong.append(f"strangers have {sums['links']} links, of {sums['links_most']}")
    if sums["address_space"] > sums["links"] * 2 * (arena + 16 * MB):
        scene.wrong.append(f"{sums['links']} links map {sums['address_space'] >> 30} GiB")
    status = pathlib.Path(f"/proc/{scene.servers[0].worker}/status").read_text(encoding="ascii")
    mapped = int(re.search(r"^VmSize:\s+(\d+)", status, re.M).group(1)) * 1024
    if mapped > (sums["links"] + 8) * 2 * (arena + 16 * MB):
        scene.wrong.append(f"the server maps {mapped >> 30} GiB with {sums['links']} links")


def half_of_the_co_listeners(scene):
    sums = strangers(scene)
    scene.notes.append(f"strangers: {sums['co_listeners']} connections for co-listeners, of {sums['co_listeners_most']}")
    if not 0 < sums["co_listeners"] <= NOFILE // STRANGERS_SHARE // 2:
        scene.wrong.append(f"one user has {sums['co_listeners']} connections for co-listeners")


def shows_no_escapes(scene):
    """`shunt stat` and `shunt adm` of a process that lies, and of one that it talks to."""
    for words in (["stat"], ["stat", str(scene.enemy.pid)], ["stat", "--json", str(scene.enemy.pid)], ["adm", str(scene.enemy.pid), "help"],
                  ["stat", str(scene.servers[0].pid)], ["stat", "--streams", str(scene.servers[0].pid)]):
        said = subprocess.run([TOOL, *words], capture_output=True, check=False, timeout=60)
        if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", said.stdout + said.stderr):
            scene.wrong.append(f"shunt {' '.join(words)} prints control characters")


def cases():
    unguarded = [LACKING, "passrights"]
    squats = ["silent", "knocks", "plays-along", "hurries", "reflects", "refuses", "accepts", "circles", "nobody", "thousand", "noise",
              "hangs-up", "version", "owner"]
    some = [Case("", quick=True, links_during=True)]
    linked = True if os.environ.get("USER_DIRS") else None
    some += [Case(f"squat-{how}", first=True, quick=how in ("plays-along",), links_during=linked) for how in squats]
    some += [Case(f"squat-{how}", restart=True, links_during=linked) for how in ("plays-along", "silent")]
    some += [Case(f"claim-{how}", quick=how == "wrong") for how in ("silent", "wrong", "hurried", "reflects", "replays", "unproven")]
    some += [Case("claim-wrong", same_user=True, enemy=["unshare", "--user", "--pid", "--fork", "--kill-child"])]
    some += [Case("claim-unproven", same_user=True, wrap=[LACKING, "attach"], quick=True)]	# a policy such as Yama's
    some += [Case("network-wrong"), Case("network-own", quick=True, calls=80)]
    some += [Case("relay", first=True, address="0.0.0.0", quick=True)]
    for kind in "knock", "ask", "hello":
        some += [Case(f"fds-{kind}", links_during=True, quick=kind == "ask"), Case(f"fds-{kind}", wrap=unguarded, fds=GUEST_FDS + 253)]
    some += [Case("fds-equal", same_user=True, steady=True, links_during=True, quick=True)]
    some += [Case(f"flood-{what}", quick=what == "tuples", alone=True)
             for what in ("connects", "knocks", "asks", "parked", "deaf", "tuples")]
    some += [Case("flood-more-asks", alone=True, mb=8)]	# 16,384 that wait have half of that
    some += [Case(f"proven-{what}", quick=what in ("hello", "escapes", "server"), fds=GUEST_FDS + 200, mb=64,
                  check=shows_no_escapes if what == "escapes" else None, log="debug" if what == "escapes" else "info")
             for what in ("hello", "ended", "later", "others", "claims", "scribbles", "escapes", "server")]
    # A program waits for such a stranger's link once (core/link/patience.h), and its other clients with it.
    some += [Case("proven-retire", fds=GUEST_FDS + 200, mb=64, patience=300)]
    some += [Case("proven-lingers", quick=True, steady=True, mb=64),
             Case("proven-lingers", wrap=unguarded, steady=True, mb=64)]
    some += [Case("proven-wakes", quick=True, steady=True, mb=64)]
    few = ["prlimit", f"--nofile={NOFILE}:{NOFILE}"]
    some += [Case("proven-links", alone=True, fds=4 * LINKS_PER_PROCESS, mb=128, wrap=few, check=half_of_the_links)]
    some += [Case("dies", quick=False), Case("dies-squatting", first=True, calls=80), Case("dies", where={"times": 1, "steps": ["asked", "revealed", "shown 4"]})]
    some[-1].name, some[-1].quick = "dies-some", True
    some.append(Case("flood-have", alone=True, wrap=few, fds=CO_LISTENERS + 16, check=half_of_the_co_listeners))
    some += at_doors_of_a_directory()
    return some + at_services(some)


def at_doors_of_a_directory():
    """The same without any connection, at the doors in a SHUNT_DIR; there is one for each address that is no loopback address."""
    if not os.environ.get("ADDRESS"):
        print("# doors in SHUNT_DIR are left out: no address for them", flush=True)
        return []
    unguarded = [LACKING, "passrights"]
    more = {"address": "0.0.0.0", "dir": True}
    some = [Case(f"fds-{kind}", links_during=True, quick=kind == "hello", **more) for kind in ("knock", "ask", "hello")]
    some += [Case("fds-hello", wrap=unguarded, fds=GUEST_FDS + 253, **more)]
    some += [Case(f"flood-{what}", alone=True, **more) for what in ("connects", "knocks")]
    some += [Case("proven-hello", fds=GUEST_FDS + 200, mb=64, **more), Case("proven-lingers", quick=True, mb=64, **more),
             Case("proven-lingers", wrap=unguarded, mb=64, **more)]
    few = ["prlimit", f"--nofile={NOFILE}:{NOFILE}"]
    return some + [Case("proven-links", alone=True, fds=4 * LINKS_PER_PROCESS, mb=128, wrap=few, check=half_of_the_links, **more)]


# Attacks on what a linked stranger shares with a process, and those whose course depends on what its program does.
AT_SERVICES = ("", "squat-silent", "squat-plays-along", "claim-wrong", "claim-hurried", "fds-ask", "fds-hello-unguarded", "flood-knocks",
               "flood-deaf", "flood-tuples", "proven-hello", "proven-claims", "proven-scribbles", "proven-lingers",
               "proven-lingers-unguarded", "proven-wakes", "proven-links", "proven-retire", "dies", "dir-proven-lingers")
AT_SERVICES_QUICK = ("proven-wakes@redis", "proven-lingers@nginx", "proven-lingers@haproxy")


def at_services(some):
    found = []
    for service, program in speech.PROGRAM.items():
        if shutil.which(program):
            found.append(service)
        else:
            print(f"# {program} is not installed: left out", flush=True)
    return [case.beside(service, f"{case.base}@{service}" in AT_SERVICES_QUICK)
            for service in found for case in some if case.base in AT_SERVICES and case.name == case.base] + \
        [Case("proven-wakes", victim="redis", traced=True, mb=96) for _ in found[:1] if found[0] == "redis" and shutil.which("strace")]


# --- all of them ---

def ratio_text(figures, bare):
    parts = []
    for step in "connect", "first", "close":
        some = [(figures[what][step]["median"], bare[what][step]["median"]) for what in figures if what in bare]
        if some:
            worst = max(some, key=lambda pair: pair[0] / pair[1])
            parts.append(f"{step} {worst[0] * 1e3:.2f} ms (x{worst[0] / worst[1]:.1f}, "
                         f"most {max(figures[what][step]['most'] for what in figures) * 1e3:.0f} ms)")
    return ", ".join(parts)


class Run:
    def __init__(self, folder, whole):
        self.folder, self.whole, self.done, self.failed, self.bare, self.lock = folder, whole, 0, 0, {}, threading.Lock()

    def one(self, case):
        scene, begun = None, time.monotonic()
        for _ in range(TURNS):	# more turns where two were too few to tell
            scene = Scene(case, self.folder, self.whole, scene)
            try:
                scene.run()
            except Exception as error:  # noqa: BLE001
                scene.wrong.append(f"the test: {error!r}")
            finally:
                scene.leave()
            if scene.wrong or not scene.slow:
                break
        scene.wrong += scene.slow
        with self.lock:
            self.tell(case, scene, time.monotonic() - begun)

    def tell(self, case, scene, seconds):
        figures = getattr(scene, "figures", {})
        if not case.attack and case.victim == "echo":
            self.bare = figures
        self.done += 1
        for wrong in scene.wrong:
            print("# " + repr(wrong)[1:-1])
        for note in scene.notes + [ratio_text(figures, self.bare) + f"; {seconds:.1f} s in all"]:
            print(f"#   {note}")
        verdict = "not ok" if scene.wrong else "ok"
        print(f"{verdict} {self.done} - {case.name if case.attack else 'nobody attacks' + case.name}", flush=True)
        self.failed += bool(scene.wrong)

    def all(self, some, jobs):
        first = [case for case in some if not case.attack]
        for case in first or [Case("", links_during=True)]:
            self.one(case)
        together = [case for case in some if case.attack and not case.alone]
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(self.one, together))
        for case in some:
            if case.alone:
                self.one(case)
        print(f"1..{self.done}")
        return 1 if self.failed else 0


def main():
    words = sys.argv[1:]
    folder, jobs, quick, whole = None, 3, False, False
    chosen = []
    while words:
        word = words.pop(0)
        if word == "--quick":
            quick = True
        elif word == "--whole":
            whole, jobs = True, 1
        elif word in ("--keep", "--jobs"):
            value = words.pop(0)
            folder, jobs = (value, jobs) if word == "--keep" else (folder, int(value))
        else:
            chosen.append(word)
    os.environ["PATH"] += ":/usr/sbin"
    some = [case for case in cases() if (case.name in chosen if chosen else case.quick or not quick)]
    for user in SERVER, CLIENT, ENEMY:
        os.makedirs(f"{folder}/{user}", exist_ok=True)
        os.chown(f"{folder}/{user}", user, user)
        os.chmod(f"{folder}/{user}", 0o700)
    sys.exit(Run(folder, whole).all(some, jobs))


if __name__ == "__main__":
    main()
