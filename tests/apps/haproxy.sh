#!/bin/bash
# SPDX-License-Identifier: MIT
# haproxy: HTTP and TCP proxying to two servers, TLS, kept connections, soft reload under load.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires haproxy curl openssl wrk python3
version=$(haproxy -v | awk 'NR == 1 { print $3 }')

configure() {
	mkdir -p "$dir/www"
	head -c 3000000 /dev/urandom > "$dir/www/large"
	echo small > "$dir/www/small"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	cat "$dir/cert" "$dir/key" > "$dir/pem"
	cat > "$dir/conf" <<-END
		global
			nbthread 2
			stats socket $dir/control mode 600 level admin expose-fd listeners
		defaults
			mode http
			timeout connect 10s
			timeout client 60s
			timeout server 60s
			option http-keep-alive
		listen web
			bind 127.0.0.1:7001
			http-request return status 200 content-type text/plain string one if { path /generation }
			server a 127.0.0.1:7003
			server b 127.0.0.1:7004
		listen tls
			bind 127.0.0.1:7002 ssl crt $dir/pem
			server a 127.0.0.1:7003
		listen raw
			bind 127.0.0.1:7005
			mode tcp
			server a 127.0.0.1:7003
	END
}

generation() {
	[ "$(fetch http://127.0.0.1:7001/generation)" = "$1" ]
}

# A new process takes over the listeners; the old one finishes what it has.
reload() {
	local old=$pid wrk
	load reload 40 http://127.0.0.1:7001/small -H "Connection: close" & wrk=$!
	sed -i 's/string one/string two/' "$dir/conf"
	start haproxy2 $server haproxy -f "$dir/conf" -db -x "$dir/control" -sf $old
	until_true generation two && wait $wrk && until_true gone $old
}

drive() {
	local back
	configure
	start back1 $server python3 "$apps/httpd.py" 7003 "$dir/www"
	back=$pid
	up 7003 || return
	start back2 $server python3 "$apps/httpd.py" 7004 "$dir/www"
	up 7004 || return
	start haproxy $server haproxy -f "$dir/conf" -db
	up 7001 || return
	same "a small file" fetch http://127.0.0.1:7001/small
	marks $pid
	try "a large file" file http://127.0.0.1:7001/large
	try "the same by TLS" file https://localhost:7002/large
	try "the same by TCP alone" file http://127.0.0.1:7005/large
	try "40 connections" load direct 40 http://127.0.0.1:7001/small
	try "reload under load" reload
	stop $pid USR1
	stop $back
}

matrix drive
