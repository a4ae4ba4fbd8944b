#!/bin/bash
# SPDX-License-Identifier: MIT
# curl and wget against a threaded server: downloads, uploads, ranges, TLS, parallel transfers, one connection for many.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires curl wget openssl python3
version="$(curl --version | awk 'NR == 1 { print $2 }'), wget $(wget --version | awk 'NR == 1 { print $3 }')"

is_large() {
	local one
	for one; do
		cmp "$one" "$dir/www/large" || return
	done
}

download() { # URL
	fetch -o "$dir/a" "$1" && is_large "$dir/a"
}

# The bytes come back as they went.
upload() {
	fetch -H Expect: --data-binary @"$dir/www/large" -o "$dir/a" http://127.0.0.1:7001/ && is_large "$dir/a"
}

many_over_one() {
	local i arguments=()
	for ((i = 0; i < 300; i++)); do
		arguments+=(-o "$dir/many.$i" "http://127.0.0.1:7001/file.$((i % 10))")
	done
	fetch -w '%{num_connects} ' "${arguments[@]}" > "$dir/connects" || return
	for ((i = 0; i < 300; i++)); do
		cmp "$dir/many.$i" "$dir/www/file.$((i % 10))" || return
	done
	[ "$(tr ' ' '\n' < "$dir/connects" | awk '{ n += $1 } END { print n }')" = 1 ]
}

parallel() {
	local i arguments=()
	for i in 1 2 3 4 5 6 7 8; do
		arguments+=(-o "$dir/parallel.$i" http://127.0.0.1:7001/large)
	done
	fetch --parallel --parallel-immediate "${arguments[@]}" && is_large "$dir"/parallel.?
}

ranges() {
	fetch -r 1000000-1999999 -o "$dir/a" http://127.0.0.1:7001/large && head -c 5000 "$dir/www/large" > "$dir/b" &&
		timeout $patience $client wget -q --no-proxy -O "$dir/c" http://127.0.0.1:7001/large && is_large "$dir/c"
}

mirror() {
	timeout $patience $client wget -q --no-proxy -r -nH -P "$dir/mirror" http://127.0.0.1:7001/ && diff -r "$dir/www" "$dir/mirror" -x index.html
}

errors() {
	fetch -o /dev/null -w '%{http_code}\n' http://127.0.0.1:7001/missing
	fetch http://127.0.0.1:7009/ 2>&1 | sed 's/after [0-9]* ms//'
	fetch -m 1 telnet://127.0.0.1:7001 < /dev/null
	echo "status $?"
}

drive() {
	local i tls
	mkdir -p "$dir/www"
	head -c 20000000 /dev/urandom > "$dir/www/large"
	for i in 0 1 2 3 4 5 6 7 8 9; do
		head -c $((i * i * 3000 + 1)) /dev/urandom > "$dir/www/file.$i"
	done
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	start tls $server python3 "$apps/httpd.py" 7002 "$dir/www" "$dir/cert" "$dir/key"
	tls=$pid
	up 7002 || return
	start plain $server python3 "$apps/httpd.py" 7001 "$dir/www"
	up 7001 || return
	try "a first file" fetch -o /dev/null http://127.0.0.1:7001/file.1
	marks $pid
	try "20 MB" download http://127.0.0.1:7001/large
	try "20 MB by TLS" download https://localhost:7002/large
	try "20 MB there and back" upload
	try "300 files over one connection" many_over_one
	try "eight downloads at once" parallel
	try "parts" ranges
	try "wget: the whole folder" mirror
	same "errors" errors
	left $pid
	stop $pid
	stop $tls
}

matrix drive
