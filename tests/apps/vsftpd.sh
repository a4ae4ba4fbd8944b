#!/bin/bash
# SPDX-License-Identifier: MIT
# vsftpd and curl: two processes for each session, confined and with limited memory; files both ways, either end connecting.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires vsftpd curl
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP vsftpd wants to be started by root"; exit 77; }
version=$(vsftpd -v 0>&1 2> /dev/null | awk '{ print $NF }')
why="each session is in a chroot without /proc, as another user"

ftp() {
	timeout $patience $client curl -s --max-time $patience "$@"
}

get() { # OPTION...
	ftp "$@" -o "$dir/got" ftp://127.0.0.1:7001/large && cmp "$dir/got" "$dir/root/large"
}

put() {
	ftp -T "$dir/root/large" ftp://127.0.0.1:7001/up/$1 && cmp "$dir/root/up/$1" "$dir/root/large"
}

nothing() {
	ftp ftp://127.0.0.1:7001/nothing
	echo $?
}

often() {
	local i
	for ((i = 0; i < 20; i++)); do
		get || return
		get --ftp-port - || return
	done
}

together() {
	put 1 & put 2 && wait $!
}

drive() {
	mkdir -p "$dir/root/up" "$dir/empty"
	head -c 3000000 /dev/urandom > "$dir/root/large"
	chmod 755 "$dir" "$dir/root"
	chmod 644 "$dir/root/large"
	chmod 777 "$dir/root/up"
	# Its seccomp filter is older than today's libc.
	cat > "$dir/conf" <<-END
		listen=YES
		listen_address=127.0.0.1
		listen_port=7001
		background=NO
		anonymous_enable=YES
		anon_root=$dir/root
		no_anon_password=YES
		write_enable=YES
		anon_upload_enable=YES
		anon_umask=022
		local_enable=NO
		connect_from_port_20=NO
		secure_chroot_dir=$dir/empty
		seccomp_sandbox=NO
	END
	start vsftpd $server vsftpd "$dir/conf"
	up 7001 || return
	same "a directory" ftp --list-only ftp://127.0.0.1:7001/
	marks $pid
	try "a file to the server" put 0
	try "and from it, twenty times either way" often
	same "a part of a file" bash -c "timeout $patience $client curl -s -r 100-1099 ftp://127.0.0.1:7001/large | wc -c"
	same "a file that is not there" nothing
	try "two clients at once" together
	left $pid
	stop $pid
}

matrix drive
