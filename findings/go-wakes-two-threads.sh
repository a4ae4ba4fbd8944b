#!/bin/bash
# SPDX-License-Identifier: MIT
# A Go server that is otherwise idle wakes two threads for each message, and the second has no part in it.
#
# Seen with Go 1.19.8 of Debian 12 (golang-1.19-go 1.19.8-2), linux/amd64: an echo server, and a client that sends a byte
# 300 times, 5 ms apart. In the server the thread that reads and writes slept about 300 times. A second one, which
# touches no socket, slept two to four times as often. That is sysmon, the runtime's watchman. When the last goroutine
# waits, it sleeps on a futex for up to 60 s. The first that runs again wakes it (runtime.sched.sysmonwait), and it sleeps
# 20 us at a time until all is idle again. A C server has one sleep for each message.
#
#	go-wakes-two-threads.sh		downloads the packages into a temporary folder
#
# Exit status: 0 as described, 1 not any more, 77 the packages are not to be had.
set -u
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null; rm -rf "$folder"' EXIT
cd "$folder" || exit 77
apt-get download -q golang-1.19-go=1.19.8-2 golang-1.19-src=1.19.8-2 > apt.log 2>&1 || {
	tail -1 apt.log
	exit 77
}
for package in ./*.deb; do
	dpkg -x "$package" root || exit 77
done
cat > program.go <<'END'
package main

import (
	"fmt"
	"net"
	"os"
	"time"
)

func main() {
	if len(os.Args) > 1 {
		c, _ := net.Dial("tcp", os.Args[1])
		b := make([]byte, 1)
		for i := 0; i < 300; i++ {
			c.Write(b)
			c.Read(b)
			time.Sleep(5 * time.Millisecond)
		}
		return
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	fmt.Println(l.Addr())
	for {
		c, _ := l.Accept()
		b := make([]byte, 1)
		for {
			if n, _ := c.Read(b); n == 0 {
				break
			}
			c.Write(b)
		}
	}
}
END
HOME=$folder CGO_ENABLED=0 GOFLAGS=-mod=mod GOROOT=$folder/root/usr/lib/go-1.19 root/usr/lib/go-1.19/bin/go build -o program program.go || exit 77
mkfifo said
./program > said &
server=$!
read -r address < said

# sleeps: how often each thread of the server has slept so far, a line each.
sleeps() {
	local task
	for task in "/proc/$server/task"/*; do
		awk -v id="${task##*/}" '/^voluntary/ { print id, $2 }' "$task/status"
	done
}

./program "$address"	# the threads of the server are there
sleeps | sort > before
./program "$address"
sleeps | sort > after
join before after | awk '
	{ slept = $3 - $2; print "thread " ++n ": " slept " sleeps in 300 messages"; often += slept >= 250 }
	END { exit often < 2 }'
