#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one enemy does to others: attacks.py NAME JSON, as a process of its own.

JSON has `ports`: of a shunted server, of a plain one, and for a server of the enemy's; `speech`: what the shunted one understands
(speech.py). With `dir` the doors are those in that SHUNT_DIR, where nothing has to be proven. Each attack is a function of that.
It says "ready" when it is in its place, and does what it does until it has done it or its standard input ends. With `again` it
does it again and again, until SIGUSR1. Then it says what it has seen as JSON, keeps what it holds, and ends with its standard
input.
"""
import array
import collections
import gc
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
import weakref

sys.dont_write_bytecode = True
import enemy  # noqa: E402
import speech  # noqa: E402
from enemy import Channel, End, Proof, is_over  # noqa: E402

ESCAPES = "\x1b]0;title\x07\x1b[2J\r\x9b31m\x7f\nall is well"
seen = collections.Counter()
held = []	# what must not be closed
mine = set()	# ports of our own connections
users = weakref.WeakSet()	# connections to workers of nginx, which tell of those alone that last
again, enough = [], []	# true where they are not empty: it is done once more; that will do
HOLDS = ("proven-links", "proven-wakes", "flood-have")	# what these hold goes on to harm, so they are not repeated
DIR = None	# a SHUNT_DIR, whose doors are attacked instead of the abstract ones


def ready():
    """Once, however often it is done."""
    if not again:
        print("ready", flush=True)


def dial(where):
    """A connection of our own, which the server's program has used."""
    sock = socket.create_connection(("127.0.0.1", where["ports"][0]))
    mine.add(sock.getsockname()[1])
    speech.ask(where["speech"], sock, b"used")
    if where["speech"] == "http":
        users.add(sock)
    return sock


def others(port):
    return [end for end in enemy.connections(port) if end.local_port not in mine]


def rng_of(where):
    return random.Random(where["ports"][0])


# --- those who sit on names ---

class Squatter:
    """Takes names, again and again, and does `welcome` and `behave` with who comes."""
    def __init__(self, names, behave=None, welcome=None):
        self.names, self.behave, self.welcome = names, behave, welcome
        self.listeners, self.channels, self.say_ready = {}, {}, ready
        self.poll = select.poll()
        self.poll.register(0, select.POLLIN)

    def take(self):
        had = {name for _, name in self.listeners.values()}
        for name in self.names:
            if name in had:
                continue
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            try:
                sock.bind(name)
            except OSError:
                sock.close()
                continue
            sock.listen(128)
            self.listeners[sock.fileno()] = sock, name
            self.poll.register(sock, select.POLLIN)
            seen["names"] += 1

    def let_in(self, listener, name):
        sock, _ = listener.accept()
        sock.settimeout(1)
        channel = Channel(sock, False)
        channel.name, channel.proofs = name, {}
        self.channels[sock.fileno()] = channel
        self.poll.register(sock, select.POLLIN)
        seen["came"] += 1
        if self.welcome:
            self.welcome(channel)

    def drop(self, channel):
        fd = channel.sock.fileno()
        if self.channels.pop(fd, None):
            self.poll.unregister(fd)
        channel.close()

    def hear(self, channel):
        heard = channel.receive()
        if not heard:
            self.drop(channel)
        elif self.behave:
            seen[f"heard {heard.type}"] += 1
            self.behave(channel, heard)

    def serve(self, fd):
        try:
            if fd in self.listeners:
                self.let_in(*self.listeners[fd])
            elif fd in self.channels:
                self.hear(self.channels[fd])
        except (OSError, struct.error):	# a peer that has gone is not shown any more
            if fd in self.channels:
                self.drop(self.channels[fd])

    def run(self):
        self.take()
        self.say_ready()
        while True:
            for fd, _ in self.poll.poll(20):
                if fd == 0:
                    return
                self.serve(fd)
            self.take()


def all_names(where, word=None):
    return [name for port in where["ports"][:2] for name in (enemy.free_of(port, word) if word else enemy.names(port))]


def knocks(channel):
    if channel.name.startswith("\0shunt/have/"):
        return
    channel.knock()


def squat(behave, welcome=knocks):
    def attack(where):
        Squatter(all_names(where), behave, welcome).run()
    return attack


def answers_ask(answer):
    """A behaviour: it answers each ASK in its own way."""
    def behave(channel, heard):
        if heard.type == enemy.ASK and not channel.name.startswith("\0shunt/have/"):
            answer(channel, heard)
    return behave


def plays_along(channel, heard):
    """Says each step in its turn, for a connection that it does not hold."""
    if heard.type == enemy.ASK:
        proof = Proof(channel, heard.end())
        proof.challenge(heard.number)
        channel.proofs[proof.number] = proof
    proof = channel.proofs.get(heard.stream)
    if heard.type == enemy.REVEAL and proof:
        proof.revealed(heard)
        proof.shown(0)
    elif heard.type == enemy.SHOWN and proof:
        seen["rounds"] += 1
        if heard.round == enemy.ROUNDS:
            seen["others' proven"] += 1
        else:
            proof.shown(heard.round)


def in_a_hurry(channel, heard):
    """Says all steps at once."""
    if heard.type == enemy.ASK:
        proof = Proof(channel, heard.end())
        proof.challenge(heard.number)
        for number in range(enemy.ROUNDS + 1):
            proof.shown(number)


def reflects_ask(channel, heard):
    """Tells the claimant's own digest as its half of chance."""
    if heard.type == enemy.ASK:
        Proof(channel, heard.end()).challenge(heard.number, half=heard.bytes)


def refuses(channel, heard):
    channel.refuse(heard.number, random.choice([0, 1, 7, 8, 0xffffffff]))


def accepts_unproven(channel, heard):
    channel.send(enemy.ACCEPT, heard.number, bytes(24 + 16) + struct.pack("=I", 0))
    channel.send(enemy.LEAVE, 1, bytes(40))
    enemy.hello(channel)


def redirects(identities):
    def answer(channel, heard):
        for identity in identities:
            channel.send(enemy.REDIRECT, heard.number, identity)
    return answer


def name_of(identity):
    return "\0shunt/link/" + identity.hex()


def in_circles(where):
    """To itself, by other names."""
    some = [os.urandom(16) for _ in range(2)]
    answer = answers_ask(lambda channel, heard: redirects([random.choice(some)])(channel, heard))
    Squatter(all_names(where) + [name_of(identity) for identity in some], answer, knocks).run()


def to_many(where):
    some = [os.urandom(16) for _ in range(1000)]
    Squatter(all_names(where) + [name_of(identity) for identity in some[:50]], answers_ask(redirects(some)), knocks).run()


def to_nobody(where):
    Squatter(all_names(where), answers_ask(lambda channel, heard: redirects([os.urandom(16)])(channel, heard)), knocks).run()


def makes_noise(channel):
    channel.sock.send(random.randbytes(random.choice([1, 8, enemy.MESSAGE, 4096])))


def hangs_up(channel):
    channel.close()


def other_version(channel):
    channel.knock(version=enemy.wire.VERSION + random.choice([-1, 1]))


def owns_address(where):
    """Takes what co-listeners say, wants ever more of it, and says what it must not."""
    def behave(channel, heard):
        if not channel.name.startswith("\0shunt/have/"):
            answers_ask(refuses)(channel, heard)

    def welcome(channel):
        knocks(channel)
        if channel.name.startswith("\0shunt/have/"):
            for on in 1, 0, 1:
                channel.sock.send(have(enemy.WANTED, on))
            if random.random() < 0.5:
                channel.sock.send(have(enemy.WANTED, 7))
    Squatter(all_names(where), behave, welcome).run()


# --- those who claim what they see ---

def have(kind, on=0, end=None, identity=bytes(16)):
    return (struct.pack("=IIII", enemy.wire.MAGIC, enemy.wire.VERSION, kind, on) +
            (end.bytes() if end else bytes(36)) + identity).ljust(enemy.HAVE_MESSAGE, b"\0")


def doors(port):
    """The names at which a server of ours takes claims at present."""
    if DIR:
        return [f"{DIR}/{name}" for name in os.listdir(DIR) if name.startswith("link-") or name.endswith(f":{port}")]
    with open("/proc/net/unix", encoding="latin-1") as table:
        found = {"\0" + line.split()[-1][1:] for line in table if "@shunt/tcp/" in line and line.split()[3] == "00010000"}
    return [name for name in enemy.free_of(port) if name in found]


def meet(port, **more):
    """A channel to the server, which has knocked; None: it does not want us."""
    for name in doors(port):
        try:
            channel = Channel.to(name)
            if channel.meet(**more):
                return channel
        except (OSError, TimeoutError):
            pass
        seen["turned away"] += 1
    return None


class Claims:
    """Channels to a server on which each connection that can be seen is asked for once."""
    def __init__(self, where, step, digest=None, network=None):
        self.port, self.step, self.digest, self.network = where["ports"][0], step, digest, network
        self.poll = select.poll()
        self.channel, self.asked, self.proofs = None, set(), {}

    def open(self):
        self.channel = meet(self.port)
        self.asked.clear()
        self.proofs.clear()
        return self.channel

    def ask(self):
        for end in others(self.port):
            if end.local_port in self.asked:
                continue
            self.asked.add(end.local_port)
            proof = Proof(self.channel, end)
            self.proofs[proof.number] = proof
            proof.ask(digest=self.digest, network=self.network)
            seen["asked"] += 1

    def hear(self):
        while select.select([self.channel.sock], [], [], 0)[0]:
            heard = self.channel.receive()
            if not heard:
                self.channel.close()
                self.channel = None
                seen["hung up"] += 1
                return
            seen[f"heard {heard.type}"] += 1
            proof = self.proofs.get(heard.stream)
            if proof:
                self.step(proof, heard)

    def turn(self):
        try:
            if self.channel or self.open():
                self.ask()
                self.hear()
        except (OSError, TimeoutError):
            self.channel = None


def claims(step, **more):
    def attack(where):
        some = Claims(where, step, **more)
        some.open()
        ready()
        while not is_over(0.002):
            some.turn()
    return attack


def lets_its_turn_pass(proof, heard):
    pass


def shows_nothing(proof, heard):
    """All that can be said; the sockets are others'."""
    if heard.type == enemy.CHALLENGE:
        proof.challenged(heard)
        proof.ours()
        proof.reveal()
    elif heard.type == enemy.SHOWN:
        seen["rounds"] += 1
        seen["others' proven"] += heard.round == enemy.ROUNDS - 1
        proof.shown(heard.round + 1)


def shows_too_soon(proof, heard):
    if heard.type == enemy.CHALLENGE:
        proof.challenged(heard)
        proof.reveal()
        for number in range(1, enemy.ROUNDS + 1):
            proof.shown(number)


def reflects(proof, heard):
    """What the acceptor has told as its half is revealed as ours."""
    if heard.type == enemy.CHALLENGE:
        proof.challenged(heard)
        proof.reveal(half=heard.bytes)


def replays(where):
    """Asks on one channel, and says there what it has heard on another."""
    first, second = Claims(where, lambda *_: None), Claims(where, lambda *_: None)
    halves = {}

    def on_first(proof, heard):
        if heard.type == enemy.CHALLENGE:
            halves[proof.end.local_port] = heard.bytes
            proof.challenged(heard)
            proof.reveal()

    def on_second(proof, heard):
        if heard.type == enemy.CHALLENGE:
            proof.challenged(heard)
            proof.reveal(half=halves.get(proof.end.local_port, bytes(32)))
        elif heard.type == enemy.SHOWN:
            proof.shown(heard.round + 1)
    first.step, second.step = on_first, on_second
    first.open()
    second.open()
    ready()
    while not is_over(0.002):
        first.turn()
        second.turn()


def before_any_proof(where):
    """HELLO, claims and everything else from one that has proven nothing."""
    ready()
    kinds = [lambda c: enemy.hello(c), lambda c: [enemy.claim(c, end) for end in enemy.connections(where["ports"][0])],
             lambda c: c.send(enemy.LEAVE, 1, bytes(32) + struct.pack("=I", 1)), lambda c: c.send(enemy.SHOWN, 1 | enemy.BIT, struct.pack("=II", 0, 8)),
             lambda c: c.knock(), lambda c: c.send(enemy.ASK, 0, bytes(200)), lambda c: c.send(77, 1, os.urandom(200)),
             lambda c: c.send(enemy.CHALLENGE, 1 | enemy.BIT, os.urandom(100)), lambda c: makes_noise(c)]
    while not is_over(0.005):
        for kind, proves in itertools.product(kinds, (1, 0)):	# 0: it speaks as one of the server's own would
            channel = meet(where["ports"][0], proves=proves)
            if not channel:
                continue
            channel.sock.settimeout(0.2)
            try:
                kind(channel)
                while channel.receive():
                    seen["answers"] += 1
                seen["hung up"] += 1
            except TimeoutError:
                seen["not answered"] += 1
            except PermissionError:	# SO_PASSRIGHTS
                seen["no descriptors"] += 1
            except OSError:
                seen["hung up"] += 1
            channel.close()


def wrong_network(where):
    """From the victims' namespace, as if the socket were in another one."""
    claims(shows_nothing, network=enemy.this_network() ^ 0x1234)(where)


def prove_forged(channel, end, network, near):
    """Each step, with a socket that has the right addresses in the wrong namespace."""
    proof = Proof(channel, end)
    proof.ask(network=network)
    heard = channel.await_(enemy.CHALLENGE)
    if not heard:
        return f"not challenged ({Channel.refused})"
    proof.challenged(heard)
    try:
        ours = proof.ours()
    except (OSError, struct.error):	# the channel's other end is not shown here
        seen["no ends"] += 1
        ours = [0] * enemy.ROUNDS
    enemy.show(near, ours[0])
    proof.reveal()
    for number in range(enemy.ROUNDS):
        if not channel.await_(enemy.SHOWN):
            return "disproven"
        if number + 1 < enemy.ROUNDS:
            enemy.show(near, ours[number + 1])
        proof.shown(number + 1)
    return "proven"


def forge_in_namespace(where, channels, outside, ports, here):
    """A child, in a network namespace of its own: it is told which connections there are outside."""
    said = collections.Counter()
    if not enemy.leave_network():
        said["not allowed a namespace"] += 1
    for name in enemy.names(where["ports"][0]):
        try:
            Channel.to(name)
            said["met from another namespace"] += 1
        except OSError:
            said["names out of reach"] += 1
    os.write(here, b"\n")
    loopback = socket.inet_aton("127.0.0.1")
    for i, channel in enumerate(channels):
        port = os.read(ports, 2)
        if len(port) < 2:
            break
        end = End(loopback, struct.unpack("=H", port)[0], loopback, where["ports"][0])
        try:
            near, far = enemy.forged(end)
            said[prove_forged(channel, end, enemy.this_network() if i % 4 == 3 else outside, near)] += 1
            far.close()
            near.close()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            said["hung up"] += 1
        os.write(here, b"\n")	# for the next one, which must be new when it is claimed
    os.write(here, json.dumps(said + seen).encode())
    os._exit(0)


def own_namespace(where):
    """Connections of the same addresses in a network namespace of our own, through channels from outside."""
    server, tried = where["ports"][0], set()
    channels = [channel for channel in (meet(server) for _ in range(12)) if channel]
    (ports, tell), (there, here) = os.pipe(), os.pipe()
    seen.clear()
    if not os.fork():
        os.close(tell)
        forge_in_namespace(where, channels, enemy.this_network(), ports, here)
    os.close(here)
    os.read(there, 1)
    ready()
    for i in range(len(channels)):
        new = []
        if i % 3 == 2:	# nobody else claims this one, and it is not the socket that is forged
            held.append(dial(where))
            new = [enemy.end_of(held[-1])]
        while not new and not is_over(0.001):
            before = {end.local_port for end in others(server)} - tried
            if before and not is_over(0.004):	# some last a moment alone
                new = [end for end in others(server) if end.local_port in before]
                tried |= before
        for end in new[-1:]:
            os.write(tell, struct.pack("=H", end.local_port))
            os.read(there, 1)
    os.close(tell)
    seen.update(json.loads(os.read(there, 4096) or b"{}"))


# --- one between the two ---

def relay(where):
    """Sits at the exact name, hands each message of the client to the server at its other name, and back."""
    port = where["ports"][0]
    pairs, poll = {}, select.poll()
    poll.register(0, select.POLLIN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"\0shunt/tcp/::ffff:127.0.0.1:{port}")
    listener.listen(128)
    poll.register(listener, select.POLLIN)
    ready()
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                return
            if fd == listener.fileno():
                near = Channel(listener.accept()[0], False)
                try:
                    far = Channel.to(f"\0shunt/tcp/*:{port}")
                except OSError:
                    near.close()
                    continue
                for one, other in (near, far), (far, near):
                    one.sock.settimeout(1)
                    pairs[one.sock.fileno()] = one, other
                    poll.register(one.sock, select.POLLIN)
                seen["relayed"] += 1
                continue
            if fd not in pairs:
                continue
            one, other = pairs[fd]
            try:
                heard = one.receive()
                if heard:
                    seen[f"passed on {heard.type}"] += 1
                    other.sock.sendmsg([heard.data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", heard.fds))]
                                       if heard.fds else [], socket.MSG_NOSIGNAL)
                    continue
            except (OSError, TimeoutError):
                pass
            for end in one, other:
                pairs.pop(end.sock.fileno(), None)
                poll.unregister(end.sock)
                end.close()


# --- descriptors ---

def send(channel, fds, kind):
    if kind == "knock":
        channel.knock(fds=fds)
        return
    channel.meet()
    if kind == "ask":
        Proof(channel, End(b"\x7f\0\0\1", 1, b"\x7f\0\0\1", 2)).ask(fds=fds)
    else:
        channel.send(enemy.HELLO, 0, struct.pack("=II", enemy.wire.MAGIC, enemy.wire.VERSION), fds)


def leave_there(near, action):
    """By a child, in which nothing lingers: the last of the socket is then the one that `action` sends to the server."""
    there, here = os.pipe()
    child = os.fork()
    if not child:
        os.close(here)
        os.read(there, 1)
        try:
            action()
            signal.alarm(1)	# where the server was faster, this is the last after all
            os.close(near.fileno())
        except PermissionError:
            os._exit(2)
        except (OSError, TimeoutError):
            os._exit(1)
        os._exit(0)
    near.close()
    os.close(there)
    os.close(here)
    return {0: "sent", 2: "not let through"}.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "hung up")


def descriptors(kind):
    """Sockets that linger, FIFOs, as many as may be, in messages of that kind."""
    def attack(where):
        ready()
        for more in 2 * [0, 3, 252]:
            for name in doors(where["ports"][0]) + ([] if DIR else enemy.free_of(where["ports"][0], "have")):
                try:
                    channel = Channel.to(name, 2)
                except OSError:
                    continue
                near, far = enemy.lingering()
                fifo = os.pipe()
                fds = [near.fileno()] + more * [fifo[0]]
                seen[leave_there(near, lambda: send(channel, fds, kind))] += 1  # pylint: disable=cell-var-from-loop
                held.append((channel, far))
                for fd in fifo:
                    os.close(fd)
    return attack


def lingers_as_equal(where):
    """Another process of the server's user, which is believed: sockets that linger, in messages, and behind the end of the link."""
    for received in 8 * (True, False):	# where the server is slower than our child, it has the last of the socket
        try:
            channel = Channel.to(doors(where["ports"][0])[0], 2)
            channel.knock_as_equal()
            channel.receive()
            near, far = enemy.lingering()
            held.extend([channel, far])
            fds = [near.fileno()]

            def lingers():
                if not received:	# the link ends with this, and the next one stays in the queue
                    channel.send(77, 1)  # pylint: disable=cell-var-from-loop
                channel.send(77, 1, fds=fds)  # pylint: disable=cell-var-from-loop
            seen[leave_there(near, lingers)] += 1
        except (OSError, TimeoutError, IndexError):
            seen["hung up"] += 1
    ready()


# --- floods ---

def flood_connects(where):
    """10,000 that never knock; 500 of them are held."""
    ready()
    kept, most = collections.deque(), seen["connects"] + where.get("count", 10000)
    while seen["connects"] < most and not is_over():
        for name in doors(where["ports"][0]):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.setblocking(False)
            try:
                sock.connect(name)
                seen["connects"] += 1
            except OSError:
                seen["no room"] += 1
                sock.close()
                time.sleep(0.0005)
                continue
            kept.append(sock)
        while len(kept) > 500:
            kept.popleft().close()
    held.append(kept)


def flood_knocks(where):
    """Knocks without a word after them."""
    ready()
    kept, most = collections.deque(), seen["knocks"] + where.get("count", 5000)
    while seen["knocks"] < most and not is_over():
        for name in doors(where["ports"][0]):
            try:
                channel = Channel.to(name, 0)
                channel.knock()
                seen["knocks"] += 1
                kept.append(channel)
            except OSError:
                seen["hung up"] += 1
                time.sleep(0.0005)
        while len(kept) > 500:
            kept.popleft().close()
    held.append(kept)


def ask_on(channel, end, count, listens):
    network = enemy.this_network()
    proof = Proof(channel, end)
    for _ in range(count):
        if is_over():
            return
        while True:
            try:
                proof.ask(network=network, flags=socket.MSG_DONTWAIT)
                seen["asks"] += 1
                break
            except BlockingIOError:
                select.select([channel.sock, 0] if listens else [0], [channel.sock], [], 1)
                if is_over():
                    return
            if listens:
                while select.select([channel.sock], [], [], 0)[0] and channel.receive():
                    seen["answers"] += 1


def flood_asks(own, count=16384, listens=True, proven=False):
    """For one connection again and again: one that its program has used (our own), or one that nobody has."""
    def attack(where):
        channel = linked(where)[0] if proven else meet(where["ports"][0])
        sock = dial(where)
        held.extend([channel, sock])
        ready()
        if not channel:
            return
        end = enemy.end_of(sock) if own else End(b"\x7f\0\0\1", 1, b"\x7f\0\0\1", where["ports"][0])
        try:
            ask_on(channel, end, count, listens)
        except OSError:
            seen["hung up"] += 1
    return attack


def flood_tuples(where):
    """Says of everybody's connections that it has them: 100,000 times."""
    ready()
    channels, count = [], 0
    while count < where.get("count", 100000) and not is_over():
        if not channels:
            for name in enemy.free_of(where["ports"][0], "have"):
                try:
                    channels.append(Channel.to(name))
                    channels[-1].sock.send(have(enemy.JOIN))
                except OSError:
                    pass
            if not channels:
                seen["nobody there"] += 1
                time.sleep(0.01)
                count += 100
                continue
        ends = [end.reversed() for end in enemy.connections(where["ports"][0])]
        ends += [End(b"\x7f\0\0\1", where["ports"][0], b"\x7f\0\0\1", count % 65536) for _ in range(200)]
        for channel in channels:
            try:
                for end in ends:
                    channel.sock.send(have(enemy.HAVE, end=end, identity=os.urandom(16)))
                    seen["told"] += 1
                    count += 1
            except OSError:
                seen["hung up"] += 1
                channels.remove(channel)
                break
    held.append(channels)


# --- one that holds a connection, and proves it ---

def prove_there(channel, sock, step=lambda name: None):
    """The channel of the process that has the connection: that, or a worker of it. None: no process goes along."""
    def asked(name):
        step(name)
        for _ in range(500 if name == "asked" and sock in users else 0):
            if select.select([channel.sock], [], [], 0.001)[0]:
                return
            speech.ask("http", sock, b"again")

    if enemy.prove(channel, sock, step=asked):
        return channel
    if channel.elsewhere:
        channel = Channel.to(name_of(channel.elsewhere))
        if channel.meet() and enemy.prove(channel, sock, step=step):
            return channel
    return None


def prove_own(where, sock=None):
    """A channel on which a connection of ours has been proven, and that."""
    port = where["ports"][0]
    if DIR:
        channel = meet(port)
        seen["met"] += bool(channel)
        return channel, None
    sock = sock or dial(where)
    channel = meet(port)
    channel = channel and prove_there(channel, sock)
    if not channel:
        return None, sock
    seen["proven"] += 1
    return channel, sock


def hello(channel, **more):
    """Between network namespaces connections are proven by nonces."""
    enemy.hello(channel, **{"nonces": int(bool(DIR)), **more})


def linked(where, sock=None, size=enemy.SEGMENT):
    """The same, and it has answered our HELLO: its memory, too."""
    channel, sock = prove_own(where, sock)
    if not channel:
        return None, sock, None
    hello(channel, memory=enemy.segment(size=size, told=size), size=size)
    heard = channel.await_(enemy.HELLO)
    seen["hello"] += bool(heard)
    held.extend([channel, sock])
    return (channel if heard else None), sock, heard


def full_bell():
    """One by which nobody is woken, and which has descriptors in its queue."""
    ours, theirs = enemy.bell()
    near, far = enemy.lingering()
    held.append(far)
    ours.sendmsg([b""], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [near.fileno()]))])
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
    return theirs


def wrong_hellos(where):
    ready()
    kinds = [dict(arena=2 ** 63), dict(streams=1), dict(streams=2 ** 31), dict(receives=0), dict(receives=2 ** 20), dict(kind=2),
             dict(lanes=0), dict(lanes=9), dict(retains=2), dict(nonces=1), dict(address=os.urandom(32)), dict(address=bytes(32)),
             dict(size=2 ** 40), dict(arena=0), dict(memory=lambda: enemy.segment(seals=0)),
             dict(memory=lambda: enemy.segment(size=0)), dict(memory=lambda: enemy.segment(size=8192)),
             dict(memory=lambda: enemy.segment(told=2 ** 40)), dict(memory=lambda: os.open("/dev/zero", os.O_RDWR)),
             dict(memory=lambda: os.open("/dev/null", os.O_RDWR)), dict(event=lambda: os.eventfd(0, 0)),
             dict(event=lambda: os.eventfd(0, os.EFD_NONBLOCK)), dict(event=lambda: socket.socket().detach()),
             dict(event=lambda: socket.socket(socket.AF_UNIX).detach()), dict(event=lambda: os.dup(channel.sock.fileno())),
             dict(event=full_bell), dict(event=lambda: os.open("/dev/null", os.O_RDWR)), dict(event=lambda: enemy.segment()),
             dict(memory=lambda: enemy.segment(seals=15))]
    for kind in kinds:
        if is_over():
            return
        channel, _ = prove_own(where)
        if not channel:
            seen["turned away"] += 1
            continue
        try:
            hello(channel, **{key: value() if callable(value) else value for key, value in kind.items()})
            seen["answered" if channel.await_(enemy.HELLO) else "refused"] += 1
        except (OSError, TimeoutError):
            seen["refused"] += 1
        channel.close()


def links_of_child(where, here):
    said, sock = collections.Counter(), None if DIR else dial(where)
    for _ in range(where.get("count", 250)):
        if is_over():
            break
        try:
            channel = linked(where, sock, size=64 << 30)[0]
        except (OSError, TimeoutError):
            channel = None
        said["up" if channel else "refused"] += 1
        if not channel and not DIR:	# it may be too old to be claimed
            try:
                sock = dial(where)
            except OSError:
                said["not served"] += 1
    os.write(here, json.dumps(said).encode())
    os.close(here)
    is_over(600)
    os._exit(0)


def from_four(where, of_child):
    children = []
    for _ in range(4):
        there, here = os.pipe()
        if not os.fork():
            of_child(where, here)
        os.close(here)
        children.append(there)
    for there in children:
        seen.update(json.loads(os.read(there, 4096) or b"{}"))


def many_links(where):
    """1,000 links by the proofs of a few connections, from four processes; of each 64 GiB could be mapped."""
    ready()
    from_four(where, links_of_child)


def co_listeners_of_child(where, here):
    said, names = collections.Counter(), enemy.free_of(where["ports"][0], "have")
    for _ in range(where.get("count", 300)):
        for name in names:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sock.settimeout(1)
            try:
                sock.connect(name)
                sock.send(have(enemy.JOIN))
                said["connects"] += 1
                held.append(sock)
            except OSError:
                said["hung up"] += 1
                sock.close()
    os.write(here, json.dumps(said).encode())
    os.close(here)
    is_over(600)
    os._exit(0)


def flood_have(where):
    """Four processes say at the names for co-listeners that they accept there, 300 times each, and hang on."""
    ready()
    from_four(where, co_listeners_of_child)


def ended_connection(where):
    """The link and its memory are held after the connection has ended."""
    ready()
    for _ in range(10):
        channel, sock, _ = linked(where)
        if channel:
            claim_own(channel, sock)
        sock.close()


def claim_own(channel, sock):
    enemy.claim(channel, enemy.end_of(sock), network=enemy.network_of(sock))
    heard = channel.await_(enemy.ACCEPT)
    seen["accepted" if heard else "not accepted"] += 1
    return heard


def on_link(where, channel, sock, number):
    """A connection of its own on the link, as its stream of that number."""
    if number > 1 and not enemy.prove(channel, sock):
        return
    enemy.claim(channel, enemy.end_of(sock), network=enemy.network_of(sock), offset=(64 + number) << 14, stream=number)
    heard = channel.await_(enemy.ACCEPT)
    if heard:
        channel.send(enemy.CONFIRM, struct.unpack_from("=I", heard.data, 20)[0])
        seen["on the link"] += 1


def answers_no_retire(where):
    """Eight connections on one link, for each call that wants them back on TCP; it answers no LEAVE."""
    ready()
    for word in b"pass!", b"splice", b"setresuid", b"fork":
        channel, sock, _ = linked(where)
        socks = [sock] + [dial(where) for _ in range(7)]
        for number, one in enumerate(socks, 1):
            if channel:
                on_link(where, channel, one, number)
        time.sleep(0.05)
        for one in socks:	# redis forks a child that saves
            one.sendall(b"BGSAVE\r\n" if where["speech"] == "redis" else word)
        held.extend(socks)
        seen[f"asked for {word.decode()}"] += 1


def claims_of_others(where):
    """On a link of its own: claims of others' connections, without proofs and with wrong ones."""
    channel, _, _ = linked(where)
    ready()
    asked, proofs = set(), {}
    while channel and not is_over(0.005):
        for end in others(where["ports"][0]):
            if end.local_port in asked:
                continue
            asked.add(end.local_port)
            try:
                enemy.claim(channel, end, stream=1 + len(asked) % 30)
                proof = Proof(channel, end)
                proof.ask()
                proofs[proof.number] = proof
                seen["claims"] += 1
            except OSError:
                channel = None
                break
        while channel and select.select([channel.sock], [], [], 0)[0]:
            heard = channel.receive()
            if not heard:
                seen["hung up"] += 1
                channel = None
                break
            seen[f"heard {heard.type}"] += 1
            if heard.type == enemy.ACCEPT:
                seen["others' accepted"] += 1
            if heard.stream in proofs:
                shows_nothing(proofs[heard.stream], heard)


def wrong_later(where):
    """A true proof first; later ones of connections of its own are wrong in some round."""
    ready()
    rng = rng_of(where)
    for _ in range(20):
        channel, _, _ = linked(where)
        if not channel:
            seen["turned away"] += 1
            continue
        sock = dial(where)
        try:
            proof = enemy.prove(channel, sock, until=rng.randrange(0, 8))
            if proof:
                enemy.show(sock, rng.randrange(16))
                proof.shown(rng.choice([proof.number & 15, 8, 3, 0xffffffff]))
            seen["took it" if channel.await_(enemy.SHOWN) else "noticed"] += 1
        except (OSError, TimeoutError):
            seen["noticed"] += 1


def scribbles(where):
    """Noise into all of the memory that a link gives it, and nonsense on its channel."""
    ready()
    rng = rng_of(where)
    for _ in range(8):
        channel, sock, heard = linked(where)
        if not channel:
            seen["turned away"] += 1
            continue
        try:
            claim_own(channel, sock)
            enemy.scribble(heard.fds[0], rng, 2000)
            socket.socket(fileno=os.dup(heard.fds[1])).send(b"x")
            for _ in range(20):
                channel.send(rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 99]), rng.randrange(1, 4), os.urandom(200))
        except (OSError, TimeoutError):
            seen["hung up"] += 1


def lingers_later(where):
    """Sockets that linger, in messages behind HELLO that have no descriptors. The first come while the server is busy with HELLO."""
    ready()
    for kind, at_once in itertools.product((enemy.MOCK, enemy.QOS_POOL, enemy.HELLO, 99), (True, False)):
        if is_over():
            return
        try:
            channel, sock = prove_own(where)
            held.extend([channel, sock])
            near, far = enemy.lingering()
            held.append(far)
            fds = [near.fileno()]

            def lingers():
                if at_once:
                    hello(channel)  # pylint: disable=cell-var-from-loop
                channel.send(kind, 1, fds=fds)  # pylint: disable=cell-var-from-loop

            if not at_once:
                hello(channel)
                channel.await_(enemy.HELLO)
            seen[leave_there(near, lingers)] += 1
        except (OSError, TimeoutError, AttributeError):
            seen["not served"] += 1


def fill(fd):
    """What wakes somebody: whoever wakes them next would wait, if he were to wait."""
    with socket.socket(fileno=os.dup(fd)) as some:
        some.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        try:
            while True:
                some.send(b"x", socket.MSG_DONTWAIT)
        except BlockingIOError:
            seen["full"] += 1
        some.setblocking(True)


def never_sleeps(memory):
    """The server wakes us at each message, and has room for all of them."""
    posted, armed = struct.pack("=Q", 1 << 20), struct.pack("=I", 2)
    os.pwrite(memory, posted, enemy.QUEUE)
    while not is_over(0.001):
        os.pwrite(memory, armed, enemy.QUEUE + 128)


def full_wakes(where):
    """Connections on links. What wakes the enemy is full, may block, and is looked at by thousands of epoll sets; so is the server's."""
    ready()
    for _ in range(4):
        try:
            channel, sock = prove_own(where)
            ours, theirs = enemy.bell()
            memory = enemy.segment()
            held.extend([channel, sock, ours, memory])
            enemy.hello(channel, memory=os.dup(memory), event=os.dup(theirs))
            heard = channel.await_(enemy.HELLO)
            threading.Thread(target=never_sleeps, args=[memory], daemon=True).start()
            fill(theirs)
            fill(heard.fds[1])
            for _ in range(200):
                held.append(select.epoll())
                held[-1].register(ours, select.EPOLLIN)
            number = struct.unpack_from("=QIIII", claim_own(channel, sock).data, 8)[2]
            channel.send(enemy.CONFIRM, number)	# its answers come by the link from here on
            for _ in range(40):
                sock.sendall(speech.question(where["speech"], b"a" * 1000))
                seen["asked"] += 1
                time.sleep(0.01)
        except (OSError, TimeoutError, AttributeError):
            seen["not served"] += 1


def wrong_claims(where):
    """A proven connection is claimed with places that are none."""
    ready()
    for kind in (dict(offset=2 ** 62), dict(offset=1), dict(size=0), dict(size=3), dict(size=2 ** 31), dict(stream=0),
                 dict(stream=2 ** 31), dict(lane=99), dict(rkey=77), dict(offset=0)):
        channel, sock, _ = linked(where)
        if not channel:
            seen["turned away"] += 1
            continue
        try:
            enemy.claim(channel, enemy.end_of(sock), network=enemy.network_of(sock), **kind)
            seen["accepted" if channel.await_(enemy.ACCEPT) else "refused"] += 1
        except (OSError, TimeoutError):
            seen["refused"] += 1
        channel.close()


def escapes(where):
    """Its own name, and what it says as one that offers statistics and commands, moves cursors."""
    enemy.call_itself(b"\x1b]0;x\x07\x1b[2J")
    answer = json.dumps({"schema": 1, "pid": os.getpid(), "program": ESCAPES, "device": ESCAPES, "reason": ESCAPES,
                         "counters": {ESCAPES: 1}, "reasons": {ESCAPES: 3}, "streams": [
                             {"fd": 3, "local": ESCAPES, "peer": ESCAPES, "state": ESCAPES, "reason": ESCAPES, "held": ESCAPES}]})
    answers = {"stat": (socket.SOCK_STREAM, [answer.encode(), b"{" + ESCAPES.encode("latin-1") + b"}"]),
               "adm": (socket.SOCK_SEQPACKET, [("+" + ESCAPES).encode("latin-1"), ("-" + ESCAPES).encode("latin-1")])}
    poll, what = select.poll(), {}
    for word, (kind, texts) in answers.items():
        for last in str(os.getpid()), os.urandom(16).hex():
            sock = socket.socket(socket.AF_UNIX, kind)
            sock.bind(f"\0shunt/{word}/{last}")
            sock.listen(16)
            what[sock.fileno()] = sock, texts
            poll.register(sock, select.POLLIN)
    poll.register(0, select.POLLIN)
    linked(where)
    for _ in range(3):	# log lines about us
        channel = meet(where["ports"][0])
        if channel:
            channel.send(77, 1, ESCAPES.encode("latin-1"))
    ready()
    while True:
        for fd, _ in poll.poll():
            if fd == 0:
                return
            sock, texts = what[fd]
            come, _ = sock.accept()
            seen["asked for " + ("statistics" if texts is answers["stat"][1] else "commands")] += 1
            try:
                come.send(texts[seen["answers"] % 2])
            except OSError:
                pass
            seen["answers"] += 1
            come.close()


# --- a server that holds its connections, and proves it ---

def echo_all(listener, sockets):
    """An honest server of TCP, in a thread."""
    poll, by_number = select.poll(), {listener.fileno(): listener}
    poll.register(listener, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                sock, address = listener.accept()
                sockets[address[1]] = by_number[sock.fileno()] = sock
                poll.register(sock, select.POLLIN)
                continue
            sock = by_number[fd]
            try:
                data = sock.recv(1 << 16)
                sock.sendall(data)
            except OSError:
                data = b""
            if not data:
                poll.unregister(fd)
                del by_number[fd]
                sock.close()


def accept_body(heard, **more):
    offset, size, stream, rkey, lane = struct.unpack_from("=QIIII", heard.data, 48)
    place = {"offset": offset, "size": size, "stream": stream, "rkey": rkey, "lane": lane, "tcp": 0, **more}
    return struct.pack("=QIIII16xI", *(place[word] for word in ("offset", "size", "stream", "rkey", "lane", "tcp")))


# To a CLAIM of a proven connection: type, whether of its stream, and what it says.
ANSWERS = [(enemy.ACCEPT, dict(offset=2 ** 62)), (enemy.ACCEPT, dict(size=3)), (enemy.ACCEPT, dict(stream=0)),
           (enemy.ACCEPT, dict(stream=2 ** 31)), (enemy.ACCEPT, dict(lane=99)), (enemy.ACCEPT, dict(tcp=7)),
           (enemy.REDIRECT, {}), (enemy.LEAVE, {}), (enemy.LEFT, {}), (enemy.MOCK, {}), (enemy.LEFT, {}),
           (enemy.HELLO, {}), (enemy.CLAIM, {}), (enemy.REFUSE, {})]


def as_server(where):
    """Proves as an acceptor what it holds, introduces itself, and answers claims with what cannot be."""
    listener, sockets = socket.create_server(("127.0.0.1", where["ports"][2]), backlog=128), {}
    threading.Thread(target=echo_all, args=(listener, sockets), daemon=True).start()

    def behave(channel, heard):
        if heard.type == enemy.ASK:
            proof = Proof(channel, heard.end())
            proof.challenge(heard.number)
            channel.proofs[proof.number] = proof
        elif heard.type == enemy.HELLO:
            enemy.hello(channel)
            seen["hello"] += 1
        elif heard.type == enemy.CLAIM:
            kind, more = ANSWERS[seen["claims"] % len(ANSWERS)]
            seen["claims"] += 1
            stream = struct.unpack_from("=I", heard.data, 60)[0]
            channel.send(kind, stream, accept_body(heard, **more) if kind == enemy.ACCEPT else os.urandom(64))
        proof = channel.proofs.get(heard.stream)
        if not proof:
            return
        sock = sockets.get(proof.end.local_port)
        if not sock:	# the thread has not accepted it yet
            channel.refuse(proof.peer)
        elif heard.type == enemy.REVEAL:
            proof.revealed(heard)
            proof.bits = proof.ours()
            enemy.show(sock, proof.bits[0])
            proof.shown(0)
        elif heard.type == enemy.SHOWN and heard.round < enemy.ROUNDS:
            enemy.show(sock, proof.bits[heard.round])
            proof.shown(heard.round)
        elif heard.type == enemy.SHOWN:
            seen["proven"] += 1
    Squatter(enemy.free_of(where["ports"][2]), behave, knocks).run()


# --- those who die ---

STEPS = ["connected", "knocked", "asked", "challenged", "revealed", *(f"shown {i}" for i in range(1, 9)), "hello", "met", "claimed",
         "accepted", "confirmed"]


def die_at(where, last):
    def step(name):
        if name == last:
            os.kill(os.getpid(), signal.SIGKILL)
    sock = dial(where)
    channel = Channel.to(doors(where["ports"][0])[0])
    step("connected")
    channel.meet()
    step("knocked")
    channel = prove_there(channel, sock, step)
    enemy.hello(channel)
    step("hello")
    channel.await_(enemy.HELLO)
    step("met")
    enemy.claim(channel, enemy.end_of(sock), network=enemy.network_of(sock))
    step("claimed")
    heard = channel.await_(enemy.ACCEPT)
    step("accepted")
    channel.send(enemy.CONFIRM, struct.unpack_from("=I", heard.data, 20)[0])
    step("confirmed")


def dies(where):
    """At each step, as who claims."""
    ready()
    for last in where.get("steps") or STEPS:
        for _ in range(where.get("times", 3)):
            child = os.fork()
            if not child:
                try:
                    die_at(where, last)
                except Exception as error:	# noqa: BLE001
                    print(f"dies: {last}: {error!r}", file=sys.stderr)
                os._exit(1)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            seen["died" if status == -signal.SIGKILL else f"missed {last}"] += 1


def squat_until(where, last, say_ready):
    """A child that dies when it has answered a message of that type; None: when somebody has come."""
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def welcome(channel):
        if last is None:
            die()
        knocks(channel)
        if last == enemy.KNOCK:
            die()

    def behave(channel, heard):
        plays_along(channel, heard)
        if heard.type == last:
            die()
    child = os.fork()
    if not child:
        squatter = Squatter(all_names(where), behave, welcome)
        squatter.say_ready = say_ready
        squatter.run()
        os._exit(0)
    return child


def dies_squatting(where):
    """At each step, as who is asked; the names are taken again after each death."""
    say_ready = ready
    for last in 3 * [None, enemy.KNOCK, enemy.ASK, enemy.REVEAL, enemy.SHOWN]:
        child, until = squat_until(where, last, say_ready), time.monotonic() + 1
        say_ready = lambda: None  # noqa: E731
        gone = 0
        while not gone and time.monotonic() < until and not is_over(0.005):
            gone = os.waitpid(child, os.WNOHANG)[0]
        seen["died" if gone else "nobody came so far"] += 1
        if not gone:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


ATTACKS = {
    "squat-silent": squat(None, None),
    "squat-knocks": squat(None),
    "squat-plays-along": squat(plays_along),
    "squat-hurries": squat(in_a_hurry),
    "squat-reflects": squat(reflects_ask),
    "squat-refuses": squat(answers_ask(refuses)),
    "squat-accepts": squat(answers_ask(accepts_unproven)),
    "squat-circles": in_circles,
    "squat-nobody": to_nobody,
    "squat-thousand": to_many,
    "squat-noise": squat(None, makes_noise),
    "squat-hangs-up": squat(None, hangs_up),
    "squat-version": squat(None, other_version),
    "squat-owner": owns_address,
    "claim-silent": claims(lets_its_turn_pass),
    "claim-wrong": claims(shows_nothing),
    "claim-hurried": claims(shows_too_soon),
    "claim-reflects": claims(reflects),
    "claim-replays": replays,
    "claim-unproven": before_any_proof,
    "network-wrong": wrong_network,
    "network-own": own_namespace,
    "relay": relay,
    "fds-knock": descriptors("knock"),
    "fds-ask": descriptors("ask"),
    "fds-hello": descriptors("hello"),
    "fds-equal": lingers_as_equal,
    "flood-connects": flood_connects,
    "flood-knocks": flood_knocks,
    "flood-asks": flood_asks(True),
    "flood-parked": flood_asks(False),
    "flood-more-asks": flood_asks(True, 200000, proven=True),
    "flood-deaf": flood_asks(False, 300000, listens=False, proven=True),
    "flood-tuples": flood_tuples,
    "flood-have": flood_have,
    "proven-hello": wrong_hellos,
    "proven-links": many_links,
    "proven-ended": ended_connection,
    "proven-retire": answers_no_retire,
    "proven-later": wrong_later,
    "proven-others": claims_of_others,
    "proven-claims": wrong_claims,
    "proven-lingers": lingers_later,
    "proven-wakes": full_wakes,
    "proven-scribbles": scribbles,
    "proven-escapes": escapes,
    "proven-server": as_server,
    "dies": dies,
    "dies-squatting": dies_squatting,
}


def release():
    """What was held for the last time, before it is done again."""
    held.clear()
    gc.collect()


def attack_again(attack, where):
    while where.get("again") and not enough:
        again.append(True)
        release()
        if is_over(0.05):
            break
        attack(where)


def main():
    global DIR  # pylint: disable=global-statement
    attack, where = ATTACKS[sys.argv[1]], json.loads(sys.argv[2])
    DIR = where.get("dir")
    signal.signal(signal.SIGUSR1, lambda *_: enough.append(True))
    attack(where)
    if sys.argv[1] not in HOLDS:
        attack_again(attack, where)
    print(json.dumps({**seen, "memory": Channel.memory}), flush=True)
    is_over(600)


if __name__ == "__main__":
    main()
