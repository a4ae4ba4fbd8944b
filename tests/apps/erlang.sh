#!/bin/bash
# SPDX-License-Identifier: MIT
# Erlang: a server with a process for each connection, sockets in passive and in active mode.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires erl python3
version=$(erl -noshell -eval 'io:format("Erlang ~s", [erlang:system_info(otp_release)]), halt().')

# Active mode: what comes arrives as messages.
erlang() {
	timeout $patience $client erl -noshell -pa "$work" -s echo client 7001 8
}

drive() {
	[ -e "$work/echo.beam" ] || erlc -o "$work" "$apps/echo.erl" || { not_ok "$configuration: erlc"; return; }
	start erlang $server erl -noinput -noshell -pa "$work" -s echo server 7001
	up 7001 || return
	try "a first client" $client python3 "$apps/echo.py" threads 7001 1 1
	marks $pid
	same "Python's clients" $client python3 "$apps/echo.py" asyncio 7001 20 40
	same "with half closes" $client python3 "$apps/echo.py" threads 7001 4 40
	same "its own clients" erlang
	left $pid
	stop $pid
}

matrix drive
