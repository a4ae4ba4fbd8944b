#!/bin/bash
# SPDX-License-Identifier: MIT
# caddy: files, TLS, a reverse proxy to itself and to Python, many connections.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires caddy curl openssl wrk python3
version=$(caddy version)

configure() {
	mkdir -p "$dir/www"
	head -c 3000000 /dev/urandom > "$dir/www/large"
	echo small > "$dir/www/small"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	cat > "$dir/Caddyfile" <<-END
		{
			admin off
			auto_https off
		}
		http://127.0.0.1:7001 {
			root * $dir/www
			file_server
		}
		http://127.0.0.1:7002 {
			reverse_proxy 127.0.0.1:7001
		}
		http://127.0.0.1:7003 {
			reverse_proxy 127.0.0.1:7005
		}
		https://localhost:7004 {
			tls $dir/cert $dir/key
			root * $dir/www
			file_server
		}
	END
}

drive() {
	local back
	configure
	start back $server python3 "$apps/httpd.py" 7005 "$dir/www"
	back=$pid
	up 7005 || return
	start caddy $server env HOME="$dir" caddy run --config "$dir/Caddyfile" --adapter caddyfile
	up 7004 && up 7001 && up 7003 || return
	same "a small file" fetch http://127.0.0.1:7001/small
	try "a large file" file http://127.0.0.1:7001/large
	try "a large file by TLS" file https://localhost:7004/large
	try "a large file by way of itself" file http://127.0.0.1:7002/large
	try "a large file by way of it, of Python" file http://127.0.0.1:7003/large
	try "40 connections" load files 40 http://127.0.0.1:7001/small
	try "40 connections by way of itself" load proxy 40 http://127.0.0.1:7002/small
	stop $pid
	stop $back
}

matrix drive
