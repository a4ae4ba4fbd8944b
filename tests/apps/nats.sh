#!/bin/bash
# SPDX-License-Identifier: MIT
# nats-server: subscribers that check each message of publishers, in order, of all sizes.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires nats-server python3
version=$(nats-server --version | awk '{ print substr($2, 2) }')

drive() {
	start nats $server nats-server --addr 127.0.0.1 --port 7001
	up 7001 || return
	try "a first client" $client python3 "$apps/nats.py" 7001 1 10
	marks $pid
	same "4 publishers and 4 subscribers" $client python3 "$apps/nats.py" 7001 4 20000
	left $pid
	stop $pid
}

matrix drive
