#!/bin/bash
# SPDX-License-Identifier: MIT
# Samba: a process for each session; files both ways, directories, two clients at once.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires smbd smbclient
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP smbd wants to be started by root"; exit 77; }
version=$(smbd --version | awk '{ print $2 }')

smb() { # COMMANDS
	timeout $patience $client smbclient -s "$dir/conf" -N -p 7001 //127.0.0.1/files -c "$1" 2>&1 | sed 's/ *([0-9.]* .*//'
}

files() { # NAME
	smb "put $dir/large $1; get $1 $dir/got.$1; del $1"
	cmp "$dir/large" "$dir/got.$1"
}

directories() {
	smb "mkdir one; cd one; put $dir/large two; rename two three; ls three; del three; cd ..; rmdir one" |
		awk '$1 == "three" { print $1, $2, $3 }'
}

together() {
	files 1 & files 2 && wait $!
}

drive() {
	mkdir -p "$dir/files" "$dir/state"
	head -c 3000000 /dev/urandom > "$dir/large"
	cat > "$dir/conf" <<-END
		[global]
			private dir = $dir/state
			lock directory = $dir/state
			state directory = $dir/state
			cache directory = $dir/state
			pid directory = $dir/state
			ncalrpc dir = $dir/state/rpc
			log file = $dir/log
			server role = standalone server
			map to guest = Bad User
			guest account = root
			interfaces = 127.0.0.1
			bind interfaces only = yes
			smb ports = 7001
			disable spoolss = yes
		[files]
			path = $dir/files
			guest ok = yes
			read only = no
	END
	start smbd setsid $server smbd -F --no-process-group -s "$dir/conf"
	up 7001 || return
	try "files both ways" files 0
	marks $pid
	same "directories" directories
	try "two clients at once" together
	left $pid
	stop $pid
}

matrix drive
