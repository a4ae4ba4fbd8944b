#!/bin/bash
# SPDX-License-Identifier: MIT
# stunnel: TLS before a server that has none, and a client that has none: two tunnels in a row.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires stunnel openssl python3
version=$(stunnel -version 2>&1 | sed -n 's/.*stunnel \([0-9][^ ]*\).*/\1/p' | head -n 1)

drive() {
	local back tunnel
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	printf 'foreground = yes\npid =\ndebug = err\n[in]\ncert = %s\nkey = %s\naccept = 127.0.0.1:7002\nconnect = 127.0.0.1:7001\n' \
		"$dir/cert" "$dir/key" > "$dir/in.conf"
	printf 'foreground = yes\npid =\ndebug = err\n[out]\nclient = yes\nCAfile = %s\nverifyChain = yes\naccept = 127.0.0.1:7003\nconnect = 127.0.0.1:7002\n' \
		"$dir/cert" > "$dir/out.conf"
	start back $server python3 "$apps/echod.py" threads 7001
	back=$pid
	up 7001 || return
	start tunnel $server stunnel "$dir/in.conf"
	tunnel=$pid
	up 7002 || return
	start outer $client stunnel "$dir/out.conf"
	up 7003 || return
	try "a first client" $client python3 "$apps/echo.py" threads 7003 1 1
	marks $tunnel
	try "by TLS" $client python3 "$apps/echo.py" asyncio 7002 8 40 "$dir/cert"
	try "through two tunnels" $client python3 "$apps/echo.py" asyncio 7003 8 60
	# Little: what is unread when a socket of its own says HUP, stunnel forgets, also without Shunt.
	try "with half closes" $client python3 "$apps/echo.py" threads 7003 4 1
	left $tunnel
	stop $pid
	stop $tunnel
	stop $back
}

matrix drive
