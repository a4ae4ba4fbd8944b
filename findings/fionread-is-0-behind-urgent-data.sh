#!/bin/bash
# SPDX-License-Identifier: MIT
# FIONREAD says 0 of a TCP socket that has bytes to read: those behind an urgent byte, even one that was read long ago.
#
# Seen with Linux 6.18, by Python 3.11.2 of Debian 12 (python3.11-minimal 3.11.2-6+deb12u9): a peer sends "abc", "X" as
# urgent data and "def". FIONREAD (SIOCINQ) counts up to the place of the urgent byte: 3. recv(MSG_OOB) takes the byte, and
# it is 3 as before. recv() returns "abc". From then on FIONREAD says 0, poll() says POLLIN, and recv() returns "def". With
# SO_OOBINLINE, which may be set at any time, it counts all. So who asks first how much there is waits for ever, and who
# subtracts FIONREAD from tcpi_bytes_received gets a place behind the one where the program reads.
#
#	fionread-is-0-behind-urgent-data.sh	downloads the packages into a temporary folder
#
# Exit status: 0 as described, 1 not any more, 77 the packages are not to be had.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 77
version=3.11.2-6+deb12u9
apt-get download -q {python3.11,libpython3.11}-minimal=$version libpython3.11-stdlib=$version > apt.log 2>&1 || {
	tail -1 apt.log
	exit 77
}
for package in ./*.deb; do dpkg -x "$package" root || exit 77; done
cat > program.py <<'END'
import fcntl, select, socket, struct, termios

listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
reader, _ = listener.accept()


def look(what):
    there = struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0]
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    print(f"{what}: FIONREAD {there}, {'readable' if poll.poll(0) else 'not readable'}")


sender.sendall(b"abc")
sender.send(b"X", socket.MSG_OOB)
sender.sendall(b"def")
reader.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
while struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0] < 7:
    pass
reader.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 0)
look("all is there")
print(reader.recv(1, socket.MSG_OOB))
look("the urgent byte is read")
print(reader.recv(100))
look("and what was before it")
print(reader.recv(100))
look("and what was behind it")
END
seen=$(PYTHONHOME=$folder/root/usr root/usr/bin/python3.11 program.py)
echo "$seen"
[ "$seen" = "all is there: FIONREAD 3, readable
b'X'
the urgent byte is read: FIONREAD 3, readable
b'abc'
and what was before it: FIONREAD 0, readable
b'def'
and what was behind it: FIONREAD 0, not readable" ]
