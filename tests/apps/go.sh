#!/bin/bash
# SPDX-License-Identifier: MIT
# Go's package net: a server and clients, dynamically linked, with Python's at the other end and among themselves.
# (tests/calls/go.sh has more, and programs that stay on TCP.)
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires go gcc python3
version=$(go version | awk '{ print substr($3, 3) }')

drive() {
	[ -e "$work/echo" ] || HOME=$work GOCACHE=${GOCACHE:-$work/cache} GOFLAGS=-mod=mod go build -o "$work/echo" "$apps/echo.go" || { not_ok "$configuration: go build"; return; }
	start go $server "$work/echo" 127.0.0.1:7001
	up 7001 || return
	try "a first client" $client python3 "$apps/echo.py" threads 7001 1 1
	marks $pid
	same "clients of Python's" $client python3 "$apps/echo.py" threads 7001 8 40
	same "asyncio clients" $client python3 "$apps/echo.py" asyncio 7001 20 40
	same "clients of Go's" $client "$work/echo" 127.0.0.1:7001 8
	left $pid
	stop $pid
	start python $server python3 "$apps/echod.py" threads 7002
	up 7002 || return
	same "clients of a server of Python's" $client "$work/echo" 127.0.0.1:7002 8
	stop $pid
}

matrix drive
