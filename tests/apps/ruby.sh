#!/bin/bash
# SPDX-License-Identifier: MIT
# Ruby: a server with threads, clients with buffered streams.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires ruby python3
version=$(ruby --version | awk '{ print $2 }')

drive() {
	start ruby $server ruby "$apps/echo.rb" 7001
	up 7001 || return
	try "a first client" $client python3 "$apps/echo.py" threads 7001 1 1
	marks $pid
	same "Python's clients" $client python3 "$apps/echo.py" asyncio 7001 20 40
	same "its own clients" $client ruby "$apps/echo.rb" 7001 8
	left $pid
	stop $pid
}

matrix drive
