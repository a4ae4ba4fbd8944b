#!/bin/bash
# SPDX-License-Identifier: MIT
# A busy C++ server: every thread waits in one edge-triggered, one-shot epoll set; connections come and go all the time.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires g++ python3
version=$(g++ -dumpfullversion)

drive() {
	[ -e "$work/echo" ] || g++ -O2 -Wall -std=c++17 -pthread -o "$work/echo" "$apps/echo.cc" || { not_ok "$configuration: g++"; return; }
	start threads $server "$work/echo" server 7001 8
	up 7001 || return
	try "a first client" $client "$work/echo" client 7001 1 1 100
	marks $pid
	same "16 threads, long connections" $client "$work/echo" client 7001 16 1 2000
	same "16 threads, short connections" $client "$work/echo" client 7001 16 100 5
	same "exceptions thrown out of waits" $client "$work/echo" thrown 7001 500
	same "asyncio clients" $client python3 "$apps/echo.py" asyncio 7001 20 40
	left $pid
	stop $pid
}

matrix drive
