#!/bin/bash
# SPDX-License-Identifier: MIT
# squid: a proxy that keeps what it has fetched, tunnels (CONNECT), and kept connections; lighttpd behind it.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires squid lighttpd curl
version=$(squid -v | awk 'NR == 1 { print $4 }')

fetch() {
	timeout $patience $client curl -sS --fail --noproxy '' -x http://127.0.0.1:7001 "$@"
}

many() {
	local i urls=()
	for ((i = 0; i < 100; i++)); do urls+=("http://127.0.0.1:7002/small?$i"); done
	fetch "${urls[@]}" | sort | uniq -c
}

together() {
	local i pids=()
	for i in 1 2 3 4; do
		fetch -o "$dir/got.$i" "http://127.0.0.1:7002/large?$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait $i || return; done
	for i in 1 2 3 4; do
		cmp "$dir/got.$i" "$dir/www/large" || return
	done
}

drive() {
	local back
	give_root_up
	mkdir -p "$dir/www" "$dir/state"
	head -c 3000000 /dev/urandom > "$dir/www/large"
	echo small > "$dir/www/small"
	chmod 777 "$dir/state"
	chmod 755 "$dir/www"
	chmod 644 "$dir"/www/*
	printf 'server.document-root="%s"\nserver.port=7002\nserver.bind="127.0.0.1"\n' "$dir/www" > "$dir/back.conf"
	cat > "$dir/conf" <<-END
		http_port 127.0.0.1:7001
		http_access allow all
		cache_mem 16 MB
		maximum_object_size_in_memory 4 MB
		access_log none
		cache_log $dir/state/log
		pid_filename none
		coredump_dir $dir/state
		visible_hostname localhost
		pinger_enable off
		shutdown_lifetime 1 seconds
		max_filedescriptors 1024
	END
	start back $server lighttpd -D -f "$dir/back.conf"
	back=$pid
	up 7002 || return
	start squid $server squid -N -f "$dir/conf"
	up 7001 || return
	same "a small file" fetch http://127.0.0.1:7002/small
	try "a large file" file http://127.0.0.1:7002/large
	try "the same through a tunnel" file --proxytunnel http://127.0.0.1:7002/large
	same "a hundred files" many
	try "four clients at once" together
	stop $pid
	stop $back
}

file() { # OPTION... URL
	fetch -o "$dir/a" "$@" && cmp "$dir/a" "$dir/www/large"
}

matrix drive
