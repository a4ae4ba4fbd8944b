#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that Shunt cannot help: Go's own system calls, and a static binary. They must work as ever, and be named.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires go python3
version=$(go version | awk '{ print substr($3, 3) }')
why="statically linked: not seen, and said so at the start"

# The warning, where there is anything to warn of.
said_so() {
	[ -z "$server" ] || grep -q 'statically linked' "$dir/go.out"
}

drive() {
	[ -e "$work/echo" ] || CGO_ENABLED=0 HOME=$work GOFLAGS=-mod=mod go build -o "$work/echo" "$apps/echo.go" || { not_ok "$configuration: go build"; return; }
	start go $server "$work/echo" 127.0.0.1:7001
	up 7001 || return
	try "it is named as static" said_so
	try "a first client" $client python3 "$apps/echo.py" threads 7001 1 1
	marks $pid
	same "clients of a static server" $client python3 "$apps/echo.py" threads 7001 8 40
	same "asyncio clients of a static server" $client python3 "$apps/echo.py" asyncio 7001 20 40
	left $pid
	stop $pid
	start python $server python3 "$apps/echod.py" threads 7002
	up 7002 || return
	same "a static client" $client "$work/echo" 127.0.0.1:7002 8
	stop $pid
}

matrix drive
