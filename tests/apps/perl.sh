#!/bin/bash
# SPDX-License-Identifier: MIT
# Perl: a server with select, a server with children, clients with buffered streams.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires perl python3
version=$(perl -e 'print substr($^V, 1)')
why="short connections of children: each is on TCP until its claim has been sent on to who has it"

drive() {
	local kind port=7000
	for kind in select fork; do
		start $kind $server perl "$apps/echo.pl" $kind $((++port))
		up $port || return
		try "$kind: a first client" $client python3 "$apps/echo.py" threads $port 1 1
		marks $pid
		same "$kind: Python's clients" $client python3 "$apps/echo.py" asyncio $port 10 40
		same "$kind: its own clients" $client perl "$apps/echo.pl" client $port 3000
		left $pid
		stop $pid
	done
}

matrix drive
