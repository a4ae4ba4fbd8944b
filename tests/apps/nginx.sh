#!/bin/bash
# SPDX-License-Identifier: MIT
# nginx: four workers, keep-alive, TLS, proxying with kept upstream connections, reload and binary upgrade under load.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires nginx curl openssl wrk
version=$(nginx -v 2>&1 | sed 's/.*nginx.//')

configure() {
	mkdir -p "$dir/www" "$dir/tmp"
	head -c 3000000 /dev/urandom > "$dir/www/large"
	echo small > "$dir/www/small"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	cat > "$dir/conf" <<-END
		worker_processes 4;
		pid $dir/pid;
		error_log $dir/error.log info;
		$([ "$(id -u)" = 0 ] && echo "user root;")
		events { worker_connections 512; }
		http {
			access_log off;
			client_max_body_size 50m;
			client_body_temp_path $dir/tmp/body; proxy_temp_path $dir/tmp/proxy;
			fastcgi_temp_path $dir/tmp/f; uwsgi_temp_path $dir/tmp/u; scgi_temp_path $dir/tmp/s;
			upstream back { server 127.0.0.1:7003; keepalive 8; }
			server { listen 7001; root $dir/www; location /generation { return 200 "generation-1\n"; }
				location /upload { proxy_pass http://back/upload; }
				location /proxy/ { proxy_http_version 1.1; proxy_set_header Connection ""; proxy_pass http://back/; } }
			server { listen 7002 ssl; root $dir/www; ssl_certificate $dir/cert; ssl_certificate_key $dir/key; }
		}
	END
	# One process, which accepts its connections itself: behind the proxy.
	sed -e '1i daemon off; master_process off;' -e '/worker_processes/d; /upstream/d; /listen 700/,$d' \
		-e "s#$dir/pid#$dir/back.pid#" "$dir/conf" > "$dir/back.conf"
	cat >> "$dir/back.conf" <<-END
		server { listen 7003; root $dir/www; sendfile on; location /upload { proxy_pass http://127.0.0.1:7003/echo; }
			location /echo { return 200 "\$content_length\n"; } }
		}
	END
}

upload() {
	fetch -H Expect: --data-binary @"$dir/www/large" http://127.0.0.1:7001/upload
}

ranges() {
	fetch -r 100-199 -o "$dir/a" http://127.0.0.1:7001/large && fetch -r 2999990- -o "$dir/b" http://127.0.0.1:7001/large &&
		cat "$dir/a" "$dir/b" | cmp - <(tail -c +101 "$dir/www/large" | head -c 100; tail -c 10 "$dir/www/large")
}

workers() {
	cat "/proc/$1/task/$1/children"
}

all_gone() {
	local one
	for one; do
		gone "$one" || return 1
	done
}

# Which configuration it has is what it answers.
generation=1
next_generation() {
	sed -i "s/generation-$generation/generation-$((generation + 1))/" "$dir/conf"
	generation=$((generation + 1))
}

has_generation() {
	[ "$(fetch http://127.0.0.1:7001/generation)" = "generation-$generation" ]
}

# The old workers finish what they have, and end.
reload() {
	local old wrk
	old=$(workers $master)
	load reload 40 http://127.0.0.1:7001/small -H "Connection: close" & wrk=$!
	next_generation
	kill -HUP $master
	until_true has_generation && wait $wrk && until_true all_gone $old
}

new_master() {
	[ -s "$dir/pid.oldbin" ] && [ -s "$dir/pid" ] && [ "$(cat "$dir/pid")" != "$master" ]
}

# Another binary takes the listeners over while there is load.
upgrade() {
	local old=$master wrk
	load upgrade 40 http://127.0.0.1:7001/small -H "Connection: close" & wrk=$!
	next_generation
	kill -USR2 $master
	until_true new_master || return
	master=$(cat "$dir/pid")
	kill -WINCH $old
	until_true has_generation && wait $wrk
	kill -QUIT $old
	until_true gone $old && has_generation
}

# A daemon: in the foreground it would refuse another binary.
start_daemon() {
	rm -f "$dir/pid"
	start nginx $server "$(type -P nginx)" -e "$dir/error.log" -c "$dir/conf"
	wait $pid
	until_true test -s "$dir/pid" || return
	master=$(cat "$dir/pid")
	pid=$master
	names[pid]=nginx children+=("$pid")
	up 7001 && up 7002
}

round() {
	reload && load proxy 40 http://127.0.0.1:7001/proxy/small && file http://127.0.0.1:7001/proxy/large &&
		file https://localhost:7002/large || return
	[ $(($1 % 3)) != 0 ] || upgrade || return
	pid=$master
	quiet_workers && no_deaths || return
	[ $(($1 % 10)) = 0 ] || return 0
	kill -QUIT $master
	until_true gone $master && start_daemon
}

drive() {
	local master back
	generation=1
	configure
	start back $server nginx -e "$dir/error.log" -c "$dir/back.conf"
	back=$pid
	up 7003 || return
	start_daemon || { not_ok "$configuration: nginx starts" && said "$dir/error.log"; return; }
	if [ "${ENDURE:-}" ]; then
		marks $back
		endure round
		kill -QUIT $master
		try "it ends" until_true gone $master
		left $back
		stop $back QUIT
		return
	fi
	same "a small file" fetch http://127.0.0.1:7001/small
	marks $master
	try "a large file" file http://127.0.0.1:7001/large
	try "the same by TLS" file https://localhost:7002/large
	try "ranges" ranges
	try "the same by proxy" file http://127.0.0.1:7001/proxy/large
	same "an upload through two proxies" upload
	try "a large file of one process" file http://127.0.0.1:7003/large
	try "40 connections" load direct 40 http://127.0.0.1:7001/small
	try "40 connections to one process" load one 40 http://127.0.0.1:7003/small
	try "40 connections to the proxy" load proxy 40 http://127.0.0.1:7001/proxy/small
	try "no worker has more than its own" quiet_workers
	try "reload under load" reload
	try "upgrade of the binary under load" upgrade
	if [ $master != $pid ]; then
		kill -QUIT $master
		try "the new master ends" until_true gone $master
	fi
	gone $pid || stop $pid QUIT
	stop $back QUIT
	try "no worker has died" no_deaths
}

# Connections to upstreams may be kept (8 a worker), those of clients have gone.
quiet_workers() {
	local one
	for one in $(workers $master); do
		until_true few_sockets "$one" || { ls -l "/proc/$one/fd"; return 1; }
	done
}

no_deaths() {
	! grep 'exited on signal\|\[alert\]' "$dir/error.log"
}

few_sockets() {
	[ "$(program_fds "$1")" -le 60 ]
}

matrix drive
