#!/bin/bash
# SPDX-License-Identifier: MIT
# Python: asyncio, threads, select and selectors, TLS, subprocesses with pipes and sockets, multiprocessing, socketserver.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires python3 openssl
version=$(python3 --version | awk '{ print $2 }')
why="short connections of children: each is on TCP until its claim has been sent on to who has it"

drive() {
	local kind port=7010 pids=() share
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	for kind in asyncio threads selectors tls forking pool; do
		start $kind $server python3 "$apps/echod.py" $kind $((++port)) "$dir/cert" "$dir/key"
		up $port || return
		pids+=("$pid")
		try "$kind: a first client" $client python3 "$apps/echo.py" threads $port 1 1 "$([ $kind = tls ] && echo "$dir/cert")"
		marks $pid
		same "$kind: clients in threads" $client python3 "$apps/echo.py" threads $port 8 40 "$([ $kind = tls ] && echo "$dir/cert")"
		same "$kind: asyncio clients" $client python3 "$apps/echo.py" asyncio $port 20 40 "$([ $kind = tls ] && echo "$dir/cert")"
		same "$kind: clients in processes" $client python3 "$apps/echo.py" processes $port 4 40 "$([ $kind = tls ] && echo "$dir/cert")"
		left $pid
	done
	for pid in "${pids[@]}"; do
		stop $pid
	done
	same "multiprocessing: manager, queues and connections" $client python3 "$apps/echo.py" multiprocessing 0 0 0
	same "a subprocess on a socket" $client python3 "$apps/echo.py" subprocess 0 0 0
}

matrix drive
