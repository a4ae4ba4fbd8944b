#!/bin/bash
# SPDX-License-Identifier: MIT
# Java: selectors (NIO), blocking streams and virtual clients, the HTTP server and client of the JDK.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires java javac
version=$(java -version 2>&1 | sed -n '1s/.*"\(.*\)".*/\1/p')

drive() {
	local kind port=7030
	[ -e "$work/Echo.class" ] || javac -d "$work" "$apps/Echo.java" || { not_ok "$configuration: javac"; return; }
	for kind in blocking nio http; do
		start $kind $server java -Xshare:auto -XX:TieredStopAtLevel=1 -cp "$work" Echo $kind $((++port))
		up $port || return
		try "$kind: a first client" $client java -XX:TieredStopAtLevel=1 -cp "$work" Echo "$kind-client" $port 1 2
		marks $pid
		same "$kind: 16 clients" $client java -XX:TieredStopAtLevel=1 -cp "$work" Echo "$kind-client" $port 16 40
		left $pid
		stop $pid
	done
}

matrix drive
