#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is in a dump, or in a capture; and programs to be dumped.

dump.py streams FILE...      a line for each connection: bytes and digest of what its client has sent, and its server
dump.py check FILE           what a dump has to be: checksums, sequence numbers, comments, counts; prints what it found
dump.py server               prints its port, and answers a client by all roads that bytes have into and out of a stream
dump.py client PORT          asks until its standard input ends; then it throws some of the answers away unread
dump.py engine SEED          takes a listener as an engine does, tells its identity, and writes records of any kind
dump.py liar PID             listens to a process with memory that is none, then with words that cannot be right

FILE is pcapng, or pcap as tcpdump writes it, with Ethernet frames. Port numbers tell the server: the lower one, or that
which had the first SYN.
"""
import array
import fcntl
import hashlib
import mmap
import os
import random
import select
import socket
import struct
import sys

FIN, SYN, RST, ACK = 1, 2, 4, 16


def options_of(block):
    """{code: value} of a block's options; a code that is there twice has its last value."""
    found, at = {}, 0
    while at + 4 <= len(block):
        code, size = struct.unpack_from("=HH", block, at)
        if not code:
            break
        found[code] = block[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4
    return found


class File:
    """Frames with their options, names of interfaces, and drops as the last blocks count them."""

    def __init__(self, path):
        self.frames, self.interfaces, self.received, self.dropped = [], [], 0, 0
        with open(path, "rb") as file:
            data = file.read()
        if data[:4] == struct.pack("=I", 0x0a0d0d0a):
            self.pcapng(data)
        else:
            self.pcap(data)

    def pcap(self, data):
        at = 24
        while at < len(data):
            size = struct.unpack_from("=I", data, at + 8)[0]
            self.frames.append((data[at + 16:at + 16 + size], {}))
            at += 16 + size

    def pcapng(self, data):
        at = 0
        while at < len(data):
            kind, size = struct.unpack_from("=II", data, at)
            assert size % 4 == 0 and struct.unpack_from("=I", data, at + size - 4)[0] == size, "a block's two lengths"
            self.block(kind, data[at + 8:at + size - 4])
            at += size

    def block(self, kind, body):
        if kind == 1:
            assert struct.unpack_from("=H", body)[0] == 1, "Ethernet"
            options = options_of(body[8:])
            assert options[9] == b"\x09", "nanoseconds"
            self.interfaces.append(options[2].decode())
        elif kind == 6:
            interface, _, _, size, whole = struct.unpack_from("=IIIII", body)
            assert interface < len(self.interfaces) and size == whole <= 65535
            self.frames.append((body[20:20 + size], options_of(body[20 + (size + 3) // 4 * 4:])))
        elif kind == 5:
            options = options_of(body[12:])
            self.received += struct.unpack("=Q", options[4])[0]
            self.dropped += struct.unpack("=Q", options[5])[0]


def summed(data):
    """The sum of the Internet checksum: 0 if a checksum is part of the data, and right."""
    words = array.array("H", data + b"\0" * (len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


class Segment:
    """A TCP segment: ends, numbers, flags, bytes. `right`: its checksums."""

    def __init__(self, frame):
        kind = struct.unpack_from("!H", frame, 12)[0]
        if kind == 0x0800:
            header = (frame[14] & 15) * 4
            size = struct.unpack_from("!H", frame, 16)[0] - header
            addresses, begin = frame[26:34], 14 + header
            self.right = not summed(frame[14:14 + header])
        else:
            size, begin, addresses = struct.unpack_from("!H", frame, 18)[0], 54, frame[22:54]
            self.right = True
        tcp = frame[begin:begin + size]
        ports = struct.unpack_from("!HH", tcp)
        half = len(addresses) // 2
        self.ends = (addresses[:half], ports[0]), (addresses[half:], ports[1])
        self.sequence, self.acknowledged, offset, self.flags = struct.unpack_from("!IIBB", tcp, 4)
        self.bytes = tcp[(offset >> 4) * 4:]
        self.right = self.right and not summed(addresses + struct.pack("!II", 6, len(tcp)) + tcp)
        self.right = self.right and len(frame) == begin + size


class Way:
    """A direction: bytes by their place behind the first one, which may come more than once, and in any order."""

    def __init__(self):
        self.first, self.parts, self.next, self.ended = None, {}, 0, False

    def add(self, segment):
        if self.first is None:
            self.first = segment.sequence + (1 if segment.flags & SYN else 0)
        if segment.bytes:
            at = (segment.sequence - self.first) & 0xffffffff
            if at > 1 << 31:
                return
            if len(self.parts.get(at, b"")) < len(segment.bytes):
                self.parts[at] = segment.bytes

    def whole(self):
        data, end = [], 0
        for at in sorted(self.parts):
            part = self.parts[at]
            if at > end:
                return None
            if at + len(part) > end:
                data.append(part[end - at:])
                end = at + len(part)
        return b"".join(data)


def connections(paths):
    """Lists of directions [client's, server's], in the order in which they began."""
    begun = {}
    for path in paths:
        for frame, _ in File(path).frames:
            segment = Segment(frame)
            key = tuple(sorted(segment.ends))
            if segment.flags & (SYN | ACK) == SYN:
                server = segment.ends[1]
            else:
                server = min(segment.ends, key=lambda end: end[1])
            if segment.flags & (SYN | ACK) == SYN and key in begun and begun[key][0][0].parts:
                begun[key].append([Way(), Way(), server])
            begun.setdefault(key, [[Way(), Way(), server]])
            ways = begun[key][-1]
            ways[segment.ends[0] == ways[2]].add(segment)
    return [ways for several in begun.values() for ways in several]


def show_streams(paths):
    for ways in connections(paths):
        for way in ways[:2]:
            data = way.whole()
            if data is None:
                print("a gap", end=" ")
            else:
                print(len(data), hashlib.sha256(data).hexdigest(), end=" ")
        print()


def check(path):
    """Each direction goes on where it was, unless packets were dropped."""
    file = File(path)
    going, told, tracks, switches, gaps = {}, 0, set(), 0, 0
    for frame, options in file.frames:
        segment = Segment(frame)
        assert segment.right, "a checksum"
        drops = struct.unpack("=Q", options[4])[0] if 4 in options else 0
        comment = options.get(1, b"").decode()
        told += drops
        if segment.bytes:
            assert comment.startswith(("link", "TCP")), comment
            tracks.add(comment.split(",")[0])
            switches += "from byte" in comment
        key = segment.ends
        if key in going and not segment.flags & SYN:
            gap = (segment.sequence - going[key]) & 0xffffffff
            assert not gap or told, f"a gap of {gap} bytes, and no drop is told of"
            gaps += gap != 0
        going[key] = segment.sequence + len(segment.bytes) + (1 if segment.flags & (SYN | FIN) else 0) & 0xffffffff
    assert file.received == len(file.frames), f"{len(file.frames)} packets, {file.received} counted"
    assert told <= file.dropped, f"{told} drops at packets, {file.dropped} in all"
    assert not gaps or file.dropped
    flags = [Segment(frame).flags for frame, _ in file.frames]
    print(f"packets={len(file.frames)} dropped={file.dropped} gaps={gaps} switches={switches} "
          f"tracks={'+'.join(sorted(tracks))} syn={sum(f & SYN != 0 for f in flags)} fin={sum(f & FIN != 0 for f in flags)}")


class Roads:
    """One end of a connection: sends and receives blocks in all ways, and notes what it has sent."""

    def __init__(self, connection, seed):
        self.connection, self.random, self.pipe = connection, random.Random(seed), os.pipe()
        self.file = os.memfd_create("block")
        self.sent, self.digest = 0, hashlib.sha256()

    def block(self):
        size = self.random.choice((1, 100, 4096, self.random.randrange(1, 30000)))
        return self.random.getrandbits(8 * size).to_bytes(size, "little")

    def send(self, road, data):
        self.sent += len(data)
        self.digest.update(data)
        if road == 1:
            pieces = [data[at:at + 1 + len(data) // 5] for at in range(0, len(data), 1 + len(data) // 5)]
            data = data[self.connection.sendmsg(pieces + [b""]):]
        elif road == 2:
            os.ftruncate(self.file, 0)
            os.pwrite(self.file, data, 0)
            data = data[os.sendfile(self.connection.fileno(), self.file, 0, len(data)):]
        elif road == 3 and hasattr(os, "splice"):
            data = data[self.pour(data):]
        self.connection.sendall(data)

    def pour(self, data):
        os.write(self.pipe[1], data)
        moved = 0
        while moved < len(data):
            moved += os.splice(self.pipe[0], self.connection.fileno(), len(data) - moved)
        return moved

    def receive(self, road, size):
        data = b""
        while len(data) < size:
            data += self.receive_some(road, size - len(data))
        return data

    def receive_some(self, road, size):
        if road == 1:
            pieces = bytearray(size // 2), bytearray(size - size // 2)
            got = self.connection.recvmsg_into(pieces)[0]
            return b"".join(pieces)[:got]
        if road == 2:
            seen = self.connection.recv(size, socket.MSG_PEEK)
            data = self.connection.recv(len(seen))
            assert data == seen[:len(data)]
            return data
        if road == 3 and hasattr(os, "splice"):
            return os.read(self.pipe[0], os.splice(self.connection.fileno(), self.pipe[1], size))
        if road == 4:
            return bytes(size)[:self.connection.recv_into(bytearray(size), 0, socket.MSG_TRUNC)]
        return self.connection.recv(size)

    def tell(self):
        print(self.sent, self.digest.hexdigest(), flush=True)


def serve():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print("port", listener.getsockname()[1], flush=True)
        roads = Roads(listener.accept()[0], 1)
    for turn in range(1 << 30):
        head = roads.connection.recv(4, socket.MSG_WAITALL)
        if not head:
            break
        roads.receive(turn % 4, struct.unpack("=I", head)[0])
        data = roads.block()
        roads.send(turn // 4 % 4, struct.pack("=I", len(data)) + data)
    roads.tell()


def ask(port):
    roads = Roads(socket.create_connection(("127.0.0.1", port)), 2)
    turn, left = 0, None
    while left is None or turn < left:
        data = roads.block()
        roads.send(turn % 4, struct.pack("=I", len(data)) + data)
        size = struct.unpack("=I", roads.connection.recv(4, socket.MSG_WAITALL))[0]
        roads.receive(turn // 4 % (4 if left is None else 5), size)
        turn += 1
        if left is None and turn > 100 and select.select([0], [], [], 0)[0]:
            left = turn + 100
    roads.connection.shutdown(socket.SHUT_WR)
    roads.tell()
    assert not roads.connection.recv(1)


def door_of(pid):
    """The control socket of a process: its name is the inode's in the kernel's list."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            inodes.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass
    with open("/proc/net/unix", encoding="ascii") as sockets:
        for line in sockets:
            words = line.split()
            if "@shunt/adm/" in line and f"socket:[{words[6]}]" in inodes:
                return words[7][1:]
    sys.exit("no control socket")


def listen(door):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel.settimeout(30)
    channel.connect("\0" + door)
    channel.send(b"dump")
    return channel, channel.recv(4096)


def give(channel, memory):
    channel.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", memory))])
    return channel.recv(4096)[:1]


def memory_of(size, seals):
    memory = os.memfd_create("liar", os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, size)
    fcntl.fcntl(memory, 1033, seals)  # F_ADD_SEALS
    return memory


def refused(door, memory):
    channel, said = listen(door)
    assert said.startswith(b"+"), said
    assert give(channel, memory) == b"-"
    assert not channel.recv(1)


def lie(pid):
    """Stays until its standard input ends: words of the memory are random all the while."""
    mib, door = 1 << 20, door_of(pid)
    size = 4096 + mib // 4 + mib
    pipe = os.pipe()
    refused(door, pipe[0])
    refused(door, os.open("/dev/zero", os.O_RDWR))
    refused(door, memory_of(size, 1))  # it may still shrink
    refused(door, memory_of(size, 2 | 4 | 8))  # not to be written
    refused(door, memory_of(size - 4096, 2 | 4))
    refused(door, memory_of(1 << 40, 2 | 4))
    channel, said = listen(door)
    assert said == b"+layout 1\n", said
    memory = memory_of(size, 1 | 2 | 4)
    assert give(channel, memory) == b"+"
    other, said = listen(door)
    assert said.startswith(b"-"), "two listeners"
    other.close()
    print("listening", flush=True)
    os.set_blocking(0, False)
    lies = 0
    while True:
        os.pwrite(memory, os.urandom(256), 0)
        os.pwrite(memory, os.urandom(4096), 4096 + 4096 * (lies % 256))
        lies += 1
        try:
            if not os.read(0, 1):
                break
        except BlockingIOError:
            pass
    print("lies", lies)
    channel.close()


def play_engine(seed):
    """Each record has its number and its place, or the reader would not look at it; all else is random."""
    chance = random.Random(seed)
    identity = f"{chance.getrandbits(128):032x}"
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.bind("\0shunt/adm/" + identity)
    door.listen()
    print(identity, flush=True)
    channel = door.accept()[0]
    assert channel.recv(100) == b"dump"
    channel.send(b"+layout 1\n")
    rights = channel.recvmsg(100, socket.CMSG_SPACE(4))[1][0][2]
    size = os.fstat(struct.unpack("=i", rights)[0]).st_size
    memory = mmap.mmap(struct.unpack("=i", rights)[0], size)
    channel.send(b"+it begins\n")
    ring = (size - 4096) // 5 * 4
    unit, tuples = 0, [chance.getrandbits(288).to_bytes(36, "little") for _ in range(4)]
    for number in range(ring // 512):
        wrong = chance.random() < 0.0005
        kind, flags = chance.randrange(6 if wrong else 5), chance.randrange(32)
        size = chance.getrandbits(32) if wrong else chance.randrange(chance.choice((2, 1500, 65409)))
        if unit + 1022 > ring // 64 and not wrong:
            break
        units = chance.getrandbits(10 if wrong else 0) if flags & 16 or kind else (size + 63) // 64
        place = 4096 + 128 * number
        memory[place + 4:place + 86] = struct.pack("=IIIIxxxxQQQ36sBB", size & 0xffffffff, unit, units, chance.randrange(3) * 7,
                                                   chance.getrandbits(chance.choice((8, 64))), chance.getrandbits(64),
                                                   chance.randrange(4), chance.choice(tuples), kind, flags)
        memory[place:place + 4] = struct.pack("=I", number + 1)
        unit += units
    channel.settimeout(60)
    channel.recv(1)


def main():
    what, *words = sys.argv[1:]
    if what == "streams":
        show_streams(words)
    elif what == "check":
        check(words[0])
    elif what == "server":
        serve()
    elif what == "engine":
        play_engine(int(words[0]))
    elif what == "client":
        ask(int(words[0]))
    else:
        lie(int(words[0]))


main()
