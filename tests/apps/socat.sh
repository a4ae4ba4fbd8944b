#!/bin/bash
# SPDX-License-Identifier: MIT
# socat and ncat: streams both ways, half closes, a relay between, a program on a connection, TLS.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires socat ncat openssl python3
version="$(socat -V | awk '/socat version/ { print $3 }'), ncat $(ncat --version 2>&1 | awk '{ print $3 }')"
why="a connection that is given to a program is the kernel's"

# What is sent comes back, and its end after the end of what was sent.
there_and_back() { # COMMAND...
	timeout $patience "$apps/turns.py" "$dir/large" $client "$@"
}

sends_only() {
	timeout $patience $client ncat --send-only 127.0.0.1 7004 < "$dir/large" && until_true cmp "$dir/received" "$dir/large"
}

drive() {
	local pids=() one
	head -c 20000000 /dev/urandom > "$dir/large"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	cat "$dir/cert" "$dir/key" > "$dir/pem"
	start echo $server socat TCP-LISTEN:7001,bind=127.0.0.1,fork,reuseaddr PIPE && pids+=("$pid")
	up 7001 || return
	start program $server socat TCP-LISTEN:7002,bind=127.0.0.1,fork,reuseaddr EXEC:cat && pids+=("$pid")
	up 7002 || return
	start relay $server socat TCP-LISTEN:7003,bind=127.0.0.1,fork,reuseaddr TCP:127.0.0.1:7001 && pids+=("$pid")
	up 7003 || return
	start tls $server socat OPENSSL-LISTEN:7005,bind=127.0.0.1,fork,reuseaddr,cert="$dir/pem",verify=0 PIPE && pids+=("$pid")
	up 7005 || return
	start once $server socat -u TCP-LISTEN:7004,bind=127.0.0.1,reuseaddr CREATE:"$dir/received"
	one=$pid
	up 7004 || return
	try "ncat to one process" sends_only
	try "its server ends with it" until_true gone $one
	start single $server socat TCP-LISTEN:7007,bind=127.0.0.1,reuseaddr PIPE
	one=$pid
	up 7007 || return
	try "to one process and back" there_and_back socat -t 30 - TCP:127.0.0.1:7007
	until_true gone $one
	try "through a child" there_and_back socat -t 30 - TCP:127.0.0.1:7001
	try "through a program" there_and_back socat -t 30 - TCP:127.0.0.1:7002
	try "through a relay" there_and_back socat -t 30 - TCP:127.0.0.1:7003
	try "through TLS" there_and_back socat -t 30 - OPENSSL:127.0.0.1:7005,verify=0
	for one in "${pids[@]}"; do stop $one; done
}

matrix drive
