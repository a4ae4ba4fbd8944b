#!/bin/bash
# SPDX-License-Identifier: MIT
# A server may run without a descriptor to be seen: ss -p names no process, and /proc/PID/fd is empty.
#
# Seen with Linux 6.18, Python 3.11.2 (python3.11-minimal 3.11.2-6+deb12u9) and ss of iproute2 6.1.0-3, Debian 12: the first
# thread of a program starts a thread that listens, and ends by pthread_exit(). The program runs on and serves. The kernel
# has taken the table of descriptors from the task that ended, and /proc/PID/fd is that task's: it is there, may be read,
# and has no entry. /proc/PID/task/TID/fd of the other thread has them all. ss looks into /proc/PID/fd alone, also as root,
# so its line of the listener names nobody. State in /proc/PID/stat is Z, as of a process that waits for its parent.
#
#	a-listener-without-a-process.sh	downloads the packages into a temporary folder
#
# Exit status: 0 as described, 1 not any more, 77 the packages are not to be had.
set -u
folder=$(mktemp -d)
trap 'kill "$server" 2> /dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 77
version=3.11.2-6+deb12u9
apt-get download -q {python3.11,libpython3.11}-minimal=$version libpython3.11-stdlib=$version iproute2=6.1.0-3 libffi8=3.4.4-1 > apt.log 2>&1 || {
	tail -1 apt.log
	exit 77
}
for package in ./*.deb; do dpkg -x "$package" root || exit 77; done
cat > program.py <<'END'
import ctypes, socket, threading

listener = socket.create_server(("127.0.0.1", 0))


def serve():
    with open("/proc/self/stat") as stat:  # until the first thread has ended
        while stat.read().rpartition(")")[2].split()[0] != "Z":
            stat.seek(0)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        connection.sendall(b"served")
        connection.close()


threading.Thread(target=serve).start()
ctypes.CDLL(None).pthread_exit(None)
END
mkfifo says
PYTHONHOME=$folder/root/usr LD_LIBRARY_PATH=$folder/root/usr/lib/x86_64-linux-gnu root/usr/bin/python3.11 program.py > says &
server=$!
read -r port < says
tasks=(/proc/"$server"/task/*)
exec 3<> "/dev/tcp/127.0.0.1/$port"
seen="$(cat <&3), /proc/PID/fd has $(find /proc/"$server"/fd -mindepth 1 | wc -l) entries, those of ${#tasks[@]} tasks $(find /proc/"$server"/task/*/fd -lname 'socket:*' | wc -l) sockets"
echo "$seen"
line=$(root/bin/ss -Htlnp "sport = :$port")
echo "$line"
[[ $line == LISTEN* && $line != *users:* ]] && [[ $seen == "served, /proc/PID/fd has 0 entries, those of 2 tasks 1 sockets" ]]
