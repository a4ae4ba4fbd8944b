#!/bin/bash
# SPDX-License-Identifier: MIT
# OpenSSH: commands, large output both ways, scp, sftp, forwarded ports, many sessions over one connection.
# shellcheck disable=SC2046,SC2086,SC2094,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires sshd ssh scp sftp ssh-keygen python3
version=$(ssh -V 2>&1 | sed 's/OpenSSH_\([^ ,]*\).*/\1/')
why="accept, then fork and exec: a session inherits its connection"

options() { # PORT-OPTION
	echo "-F none $1 7001 -i $dir/id -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o BatchMode=yes"
}

to() {
	timeout $patience $client ssh $(options -p) 127.0.0.1 "$@"
}

commands() {
	to 'echo out; echo err >&2; exit 3' 2>&1
	echo "status $?"
	to cat < "$dir/large" | cmp - "$dir/large" && to "cat $dir/large" | cmp - "$dir/large"
}

copies() {
	timeout $patience $client scp -q $(options -P) "$dir/large" "127.0.0.1:$dir/scp" && cmp "$dir/scp" "$dir/large" &&
		timeout $patience $client scp -q $(options -P) -O "127.0.0.1:$dir/large" "$dir/scp2" && cmp "$dir/scp2" "$dir/large"
}

sftps() {
	printf 'put %s %s\nget %s %s\nls %s\nrm %s\n' "$dir/large" "$dir/put" "$dir/put" "$dir/got" "$dir/put" "$dir/put" |
		timeout $patience $client sftp -q -b - $(options -P) 127.0.0.1 > /dev/null && cmp "$dir/got" "$dir/large" && [ ! -e "$dir/put" ]
}

one_for_many() {
	local i pids=()
	timeout $patience $client ssh $(options -p) -M -S "$dir/master" -N 127.0.0.1 &
	until_true test -S "$dir/master" || return
	for i in 1 2 3 4; do
		timeout $patience $client ssh $(options -p) -S "$dir/master" 127.0.0.1 "cat $dir/large" > "$dir/many.$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in 1 2 3 4; do cmp "$dir/many.$i" "$dir/large" || return; done
	$client ssh $(options -p) -S "$dir/master" -O exit 127.0.0.1
}

# Four forwarded connections, through ssh to a plain server and back.
forward() {
	local ssh
	timeout $patience $client ssh $(options -p) -N -L 127.0.0.1:7005:127.0.0.1:7006 127.0.0.1 &
	ssh=$!
	until_true port_is_open 7005 || return
	start forwarded python3 "$apps/echod.py" threads 7006
	up 7006 || return
	timeout $patience $client python3 "$apps/echo.py" threads 7005 4 20 || return
	kill $pid $ssh
}

port_is_open() {
	grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp
}

drive() {
	local sshd
	head -c 5000000 /dev/urandom > "$dir/large"
	ssh-keygen -q -t ed25519 -N '' -f "$dir/id" && ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
	chmod 700 "$dir" && cp "$dir/id.pub" "$dir/authorized"
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
	cat > "$dir/conf" <<-END
		Port 7001
		ListenAddress 127.0.0.1
		HostKey $dir/host
		PidFile $dir/pid
		AuthorizedKeysFile $dir/authorized
		StrictModes no
		UsePAM no
		MaxStartups 100
		Subsystem sftp internal-sftp
	END
	start sshd $server "$(type -P sshd)" -D -e -f "$dir/conf"
	sshd=$pid
	up 7001 || return
	try "a first session" to true
	marks $sshd
	same "commands" commands
	try "scp" copies
	try "sftp" sftps
	try "four sessions over one connection" one_for_many
	try "a forwarded port" forward
	left $sshd
	stop $sshd
}

matrix drive
