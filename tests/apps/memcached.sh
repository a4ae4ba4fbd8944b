#!/bin/bash
# SPDX-License-Identifier: MIT
# memcached: its protocols by memcapable, values of all sizes, many clients at once, four threads.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires memcached memccapable
version=$(memcached --version | awk '{ print $2 }')

# memcapable runs the documented protocol, command by command, and says which fail.
protocol() { # OPTION
	timeout $patience $client memccapable -h 127.0.0.1 -p 7001 -t 20 "$1" 2>&1 | sed 's/ *\[/ [/' | grep -a '\['
}

slap() {
	timeout $patience $client memcslap --servers=127.0.0.1:7001 "$@"
}

drive() {
	local user=()
	[ "$(id -u)" = 0 ] && user=(-u root)
	start memcached $server memcached -p 7001 -l 127.0.0.1 -t 4 -m 512 -I 8m "${user[@]}"
	up 7001 || return
	try "a first client" $client python3 "$apps/memcached.py" 7001 1 10
	marks $pid
	same "ASCII protocol" protocol -a
	same "binary protocol" protocol -b
	try "8 clients with values from 1 byte to 4 MB" $client python3 "$apps/memcached.py" 7001 8 400
	try "20 clients set and get" slap --concurrency=20 --execute-number=2000 --test=get --initial-load=1000
	left $pid
	stop $pid
}

matrix drive
