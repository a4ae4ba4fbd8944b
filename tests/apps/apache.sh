#!/bin/bash
# SPDX-License-Identifier: MIT
# Apache: its three ways of using processes and threads, keep-alive, TLS, graceful restart under load.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires apache2 curl openssl wrk
version=$(apache2 -v | awk -F'[/ ]' 'NR == 1 { print $4 }')
modules=/usr/lib/apache2/modules

configure() { # MPM
	cat > "$dir/conf" <<-END
		ServerRoot $dir
		ServerName localhost
		PidFile $dir/pid
		ErrorLog $dir/errors
		Listen 127.0.0.1:7001
		Listen 127.0.0.1:7002
		LoadModule mpm_$1_module $modules/mod_mpm_$1.so
		LoadModule authz_core_module $modules/mod_authz_core.so
		LoadModule ssl_module $modules/mod_ssl.so
		KeepAliveTimeout 2
		GracefulShutdownTimeout 5
		DocumentRoot $dir/www
		<VirtualHost 127.0.0.1:7002>
			SSLEngine on
			SSLCertificateFile $dir/cert
			SSLCertificateKeyFile $dir/key
		</VirtualHost>
	END
}

restarted() {
	[ "$(grep -c 'resuming normal operations' "$dir/errors")" -gt "$1" ]
}

restart() {
	local before wrk
	before=$(grep -c 'resuming normal operations' "$dir/errors")
	load restart 20 http://127.0.0.1:7001/small -H "Connection: close" & wrk=$!
	kill -USR1 $pid
	until_true restarted "$before" && wait $wrk && file http://127.0.0.1:7001/large
}

drive() {
	local mpm
	give_root_up
	mkdir -p "$dir/www"
	head -c 3000000 /dev/urandom > "$dir/www/large"
	echo small > "$dir/www/small"
	chmod 755 "$dir/www"
	chmod 644 "$dir"/www/*
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	chmod 644 "$dir/key" "$dir/cert"
	for mpm in event worker prefork; do
		configure $mpm
		: > "$dir/errors"
		chmod 666 "$dir/errors"
		# It ends with a signal to its whole process group.
		start apache setsid $server apache2 -f "$dir/conf" -DFOREGROUND
		up 7001 && up 7002 || return
		same "$mpm: a small file" fetch http://127.0.0.1:7001/small
		try "$mpm: a large file" file http://127.0.0.1:7001/large
		try "$mpm: the same by TLS" file https://localhost:7002/large
		try "$mpm: 20 connections" load kept 20 http://127.0.0.1:7001/small
		try "$mpm: connections for one request each" load short 20 http://127.0.0.1:7001/small -H "Connection: close"
		try "$mpm: a graceful restart under load" restart
		stop $pid
	done
}

matrix drive
