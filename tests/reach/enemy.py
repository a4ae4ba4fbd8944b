# SPDX-License-Identifier: MIT
"""The link channel and the proof of docs/dev/PROTOCOL.md, written anew for those who mean no good. Nothing here is core/'s."""
import array
import ctypes
import fcntl
import hashlib
import mmap
import os
import pathlib
import select
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "calls"))
import wire  # noqa: E402

MESSAGE, HAVE_MESSAGE = 320, 184
(HELLO, CLAIM, ACCEPT, CONFIRM, REFUSE, LEAVE, LEFT, EXPECT, MOCK, REDIRECT, KNOCK, ASK,
 CHALLENGE, REVEAL, SHOWN, NONCE, PROVEN, NO_NONCE, QOS, QOS_REPORT, QOS_POOL) = (wire.messages()[name] for name in (
    "HELLO CLAIM ACCEPT CONFIRM REFUSE LEAVE LEFT EXPECT MOCK REDIRECT KNOCK ASK CHALLENGE REVEAL SHOWN NONCE "
    "PROVEN NO_NONCE QOS QOS_REPORT QOS_POOL").split())
JOIN, HAVE, WANTED = 1, 2, 3
BIT = 0x80000000
ROUNDS = 8
NETNS_COOKIE, PEERPIDFD = 71, 77
MARKS = (15, 24, 49, 34)	# IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_ALL, IP_MULTICAST_LOOP
MAPPED = bytes(10) + b"\xff\xff"

SEGMENT = 16 << 20
QUEUE, DEPTH = 4096 + 1024 * 32, 64


def names(port):
    """Where claims and co-listeners of a port of 127.0.0.1 may come in."""
    return [f"\0shunt/{kind}/{where}:{port}" for kind in ("tcp", "have") for where in ("::ffff:127.0.0.1", "*", "*6")]


def free_of(port, word="tcp"):
    return [name for name in names(port) if name.startswith(f"\0shunt/{word}/")]


# --- connections ---

class End:
    """A connection as the end that claims it sees it."""
    def __init__(self, local, local_port, peer, peer_port, user=-1):
        self.local, self.peer = MAPPED + local, MAPPED + peer
        self.local_port, self.peer_port, self.user = local_port, peer_port, user

    def bytes(self):
        return self.local + self.peer + struct.pack(">HH", self.local_port, self.peer_port)

    def hashed(self):
        return self.local + struct.pack(">H", self.local_port) + self.peer + struct.pack(">H", self.peer_port)

    def reversed(self):
        return End(self.peer[12:], self.peer_port, self.local[12:], self.local_port)


def _address(text):
    host, port = text.split(":")
    return struct.pack("=I", int(host, 16)), int(port, 16)


def connections(port):
    """The connecting ends of all connections to the port that this network namespace shows."""
    found = []
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table.readlines()[1:]:
            words = line.split()
            (near, near_port), (far, far_port) = _address(words[1]), _address(words[2])
            if words[3] == "01" and far_port == port:
                found.append(End(near, near_port, far, far_port, int(words[7])))
    return found


def end_of(sock):
    (near, near_port), (far, far_port) = sock.getsockname(), sock.getpeername()
    return End(socket.inet_aton(near), near_port, socket.inet_aton(far), far_port)


def network_of(sock):
    return struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, NETNS_COOKIE, 8))[0]


def this_network():
    with socket.socket() as sock:
        return network_of(sock)


def show(sock, bits):
    for i, option in enumerate(MARKS):
        sock.setsockopt(socket.IPPROTO_IP, option, bits >> i & 1)


# --- a channel ---

def inode_of_peer(inode):
    """The other end of a Unix socket, as sock_diag(7) has it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as kernel:
        question = struct.pack("=BBHIII2I", socket.AF_UNIX, 0, 0, 0xffffffff, inode, 4, 0xffffffff, 0xffffffff)
        kernel.send(struct.pack("=IHHII", 16 + len(question), 20, 1, 1, 0) + question)
        answer = kernel.recv(8192)
    at = 16 + 16
    while at + 4 <= len(answer):
        length, kind = struct.unpack_from("=HH", answer, at)
        if kind == 2:
            return struct.unpack_from("=I", answer, at + 4)[0]
        at += max(length + 3 & ~3, 4)
    return 0


class Memory(Exception):
    """Descriptors have come: that is what the enemy wants."""


class Heard:
    def __init__(self, data, fds):
        self.data, self.fds = data, fds
        self.type, self.stream = struct.unpack_from("=II", data)
        self.number, self.round = struct.unpack_from("=II", data, 8)
        self.bytes = data[64:96]	# of a proof
        self.process = data[8:24]

    def end(self):
        local, peer = self.data[16:32], self.data[32:48]
        local_port, peer_port = struct.unpack_from(">HH", self.data, 48)
        return End(local[12:], local_port, peer[12:], peer_port)


def process_of(sock):
    """The inode of a pidfd of the process at the other end; 0: the kernel has none."""
    try:
        process = sock.getsockopt(socket.SOL_SOCKET, PEERPIDFD)
    except OSError:
        return 0
    try:
        return os.fstat(process).st_ino
    finally:
        os.close(process)


class Channel:
    memory = 0	# descriptors that any channel has got
    refused = None	# why a peer has refused last

    def __init__(self, sock, initiator):
        self.sock, self.initiator, self.number, self.bell, self.elsewhere = sock, initiator, 0, None, None
        self.sent, self.heard = 0, 0
        one, other = socket.socketpair()
        with one, other:
            self.own = process_of(one)	# of who connects; a child of it may go on

    @classmethod
    def to(cls, name, timeout=10):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.settimeout(timeout)
        sock.connect(name)
        return cls(sock, True)

    def processes(self):
        """Of the claimant, and of the acceptor: inodes of pidfds."""
        both = self.own, process_of(self.sock)
        return both if self.initiator else both[::-1]

    def ends(self):
        """The claimant's and the acceptor's."""
        own = os.fstat(self.sock.fileno()).st_ino & 0xffffffff
        pair = own, inode_of_peer(own)
        return pair if self.initiator else pair[::-1]

    def next_number(self):
        self.number += 1
        return self.number | BIT

    def send(self, kind, stream=0, body=b"", fds=(), flags=0):
        data = (struct.pack("=II", kind, stream) + body).ljust(MESSAGE, b"\0")[:MESSAGE]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], rights, socket.MSG_NOSIGNAL | flags)
        self.sent += 1

    def receive(self):
        """A message; None: the peer has gone."""
        try:
            data, extra, _, _ = self.sock.recvmsg(MESSAGE, 128)
        except ConnectionResetError:
            return None
        fds = array.array("i")
        for level, kind, some in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(some[:len(some) - len(some) % 4])
        Channel.memory += len(fds)
        if not data:
            return None
        self.heard += 1
        return Heard(data, list(fds))

    def await_(self, *kinds):
        """The next message of a kind; None: the peer has gone, or refuses."""
        while True:
            heard = self.receive()
            if not heard or heard.type in kinds:
                return heard
            self.elsewhere = heard.data[8:24] if heard.type == REDIRECT else None
            if heard.type in (REFUSE, REDIRECT):
                Channel.refused = struct.unpack_from("=I", heard.data, 16)[0]
                return None

    def knock(self, identity=None, version=wire.VERSION, proves=1, fds=()):
        self.send(KNOCK, 0, struct.pack("=III", wire.MAGIC, version, proves) + (identity or os.urandom(16)), fds)

    def knock_as_equal(self):
        """With what the kernel says of us, and no wish for proofs."""
        body = struct.pack("=III", wire.MAGIC, wire.VERSION, 0) + os.urandom(16)
        data = (struct.pack("=II", KNOCK, 0) + body).ljust(MESSAGE, b"\0")
        ours = struct.pack("=iII", os.getpid(), os.getuid(), os.getgid())
        self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, ours)], socket.MSG_NOSIGNAL)

    def meet(self, **more):
        self.knock(**more)
        return self.receive()

    def refuse(self, number, why=0):
        self.send(REFUSE, number, struct.pack("=QI", 0, why))

    def close(self):
        self.sock.close()


# --- a proof ---

def digest_of(half):
    return hashlib.sha256(b"shunt half\0" + half).digest()


class Proof:
    """One proof at one end of a channel. The enemy takes the steps, in whatever order."""
    def __init__(self, channel, end, half=None):
        self.channel, self.end, self.half = channel, end, half or os.urandom(32)
        self.number, self.peer, self.peers = channel.next_number(), 0, b""

    # --- claimant ---
    def ask(self, digest=None, network=None, fds=(), flags=0):
        network = this_network() if network is None else network
        self.channel.send(ASK, 0, struct.pack("=II", self.number, 0) + self.end.bytes() + bytes(4) +
                          struct.pack("=Q", network) + (digest or digest_of(self.half)), fds, flags)

    def challenged(self, heard):
        self.peer, self.peers = heard.number, heard.bytes

    def reveal(self, half=None):
        self.channel.send(REVEAL, self.peer, bytes(56) + (half or self.half))

    # --- acceptor ---
    def challenge(self, peer, half=None):
        self.peer = peer
        self.channel.send(CHALLENGE, peer, struct.pack("=II", self.number, 0) + bytes(48) + (half or self.half))

    def revealed(self, heard):
        self.peers = heard.bytes

    # --- both ---
    def shown(self, number):
        self.channel.send(SHOWN, self.peer, struct.pack("=II", 0, number))

    def parts(self, whose):
        """What the socket of that end has to show: eight times four bits."""
        claims = self.channel.initiator
        sum_ = hashlib.sha256(whose + struct.pack("=II", *self.channel.ends()) +
                              struct.pack("=QQ", *self.channel.processes()) + self.end.hashed() +
                              (self.half if claims else self.peers) + (self.peers if claims else self.half)).digest()
        word = struct.unpack_from("=I", sum_)[0]
        return [word >> 4 * i & 15 for i in range(ROUNDS)]

    def ours(self):
        return self.parts(b"claimant" if self.channel.initiator else b"acceptor")


def prove(channel, sock, until=ROUNDS, step=lambda name: None):
    """As a claimant that has the socket; `until` rounds. The proof; None: the peer does not go along."""
    proof = Proof(channel, end_of(sock))
    proof.ask(network=network_of(sock))
    step("asked")
    heard = channel.await_(CHALLENGE)
    if not heard:
        return None
    proof.challenged(heard)
    step("challenged")
    ours = proof.ours()
    show(sock, ours[0])
    proof.reveal()
    step("revealed")
    for number in range(until):
        heard = channel.await_(SHOWN)
        if not heard:
            return None
        if number + 1 < ROUNDS:
            show(sock, ours[number + 1])
        proof.shown(number + 1)
        step(f"shown {number + 1}")
    return proof


# --- memory ---

def segment(size=SEGMENT, seals=fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW, told=SEGMENT):
    fd = os.memfd_create("enemy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if size:
        os.pwrite(fd, struct.pack("<IIQ", 0x45534853, 1, told), 0)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def bell():
    """By the second the peer wakes whoever has the first."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return ours, theirs.detach()


def hello(channel, memory=None, event=None, arena=SEGMENT // 2, rkey=1, receives=DEPTH, streams=32, kind=1, nonces=0, lanes=1,
          retains=0, address=None, size=SEGMENT):
    memory = segment() if memory is None else memory
    if event is None:
        channel.bell, event = bell()
    address = address or struct.pack("<IIQQII", 0x41534853, 1, QUEUE, size, DEPTH, 0)
    body = struct.pack("<IIQQIIIIIIHHI", wire.MAGIC, wire.VERSION, 0, arena, rkey, receives, streams, os.getpid(), kind, lanes,
                       nonces, retains, 0)
    try:
        channel.send(HELLO, 0, body + address, [memory, event])
    finally:
        os.close(memory)
        os.close(event)


def claim(channel, end, network=None, offset=1 << 20, size=16 << 10, stream=1, rkey=1, lane=0):
    network = this_network() if network is None else network
    channel.send(CLAIM, 0, end.bytes() + bytes(4) + struct.pack("=QIIII", offset, size, stream, rkey, lane) + bytes(16) +
                 struct.pack("=Q", network))


def scribble(fd, rng, count):
    """Noise in a segment of the peer's: its header, its queues, its control lines."""
    size = os.fstat(fd).st_size
    with mmap.mmap(fd, size) as memory:
        for _ in range(count):
            at = rng.choice([rng.randrange(0, 4096), rng.randrange(4096, QUEUE), rng.randrange(QUEUE, QUEUE + 65536),
                             rng.randrange(0, size - 8)]) & ~7
            memory[at:at + 8] = rng.choice([rng.randbytes(8), bytes(8), b"\xff" * 8])


# --- descriptors that hold up whoever closes them ---

def lingering():
    """A socket that is full, and the end at which nobody reads."""
    near = socket.socket()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        near.connect(server.getsockname())
        far, _ = server.accept()
    near.setblocking(False)
    try:
        while True:
            near.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10000))
    return near, far


# --- namespaces ---

NEWUSER, NEWNET = 0x10000000, 0x40000000


def leave_network():
    """Into a network namespace of our own, as its root. False: that is not allowed here."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWUSER | NEWNET):
        return False
    with socket.socket() as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16xH14x", fcntl.ioctl(sock, 0x8913, request))[0]
        fcntl.ioctl(sock, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))
    return True


def forged(end):
    """Our own connection that has the addresses of somebody else's. The connecting end, and the other."""
    address = lambda host, port: (socket.inet_ntoa(host[12:]), port)  # noqa: E731
    near = socket.socket()
    with socket.create_server(address(end.peer, end.peer_port)) as server:
        near.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        near.bind(address(end.local, end.local_port))
        near.connect(server.getsockname())
        far, _ = server.accept()
    return near, far


def call_itself(name):
    """As ps(1) shows it."""
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)


def is_over(wait=0.0):
    """Our own standard input has ended."""
    return bool(select.select([0], [], [], wait)[0])
