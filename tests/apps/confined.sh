#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that give root up and shut themselves in, as their packages have them do it: each is started bare and shunted,
# with its own users, serves a connection, and then every thread of each of its processes must be what those of the bare
# one are: ids, groups, capabilities, no_new_privs, filters, namespaces, root. Processes are told apart by their titles
# and their place in the tree. A program that is not installed is skipped, and said to be. PROGRAMS="nginx redis": these.
# shellcheck disable=SC2046,SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
configurations=${CONFIGURATIONS:-bare server}
CONFIGURATIONS=$configurations
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/units.sh
. "$apps/../units.sh"
requires curl
[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP only root can give root up"; exit 77; }
programs=${PROGRAMS:-nginx apache haproxy memcached redis postgresql vsftpd vsftpd_filter sshd}

# --- what processes are ---

# tree PID: it and those below it, each with its depth.
tree() {
	ps -e -o pid=,ppid= | awk -v root="$1" '
		{ parent[$1] = $2 }
		END { for (pid in parent) { depth = 0
			for (p = pid; p && p != root; p = parent[p]) depth++
			if (p == root) print pid, depth } }'
}

# Namespaces that are not this shell's.
own_namespaces() { # TASK
	local name
	for name in cgroup ipc mnt net pid user uts; do
		[ "$(readlink "$1/ns/$name")" = "$(readlink /proc/$$/ns/$name)" ] || printf ' %s' "$name"
	done
}

task_facts() { # TASK
	awk '/^(Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters):/ { $1 = $1; printf "%s ", $0 }' \
		"$1/status"
	echo "own namespaces:$(own_namespaces "$1") root: $(readlink "$1/root")"
}

# facts PID: a line for each kind of thread in each kind of process. Service threads that are as they should are none.
facts() {
	local process depth task
	tree "$1" | while read -r process depth; do
		for task in "/proc/$process/task"/*; do
			printf '%s, %s below: %s\n' "$(tr '\0' ' ' < "/proc/$process/cmdline")" "$depth" "$(task_facts "$task")"
		done
	done | sed "s#$dir#DIR#g; s/ *, /, /" | sort -u
}

# are COUNT PID PATTERN: of so many processes below it the first thread matches, an extended regular expression.
are() {
	local process depth
	tree "$2" | while read -r process depth; do
		[ "$depth" = 0 ] || task_facts "/proc/$process"
	done | grep -cE "$3" | grep -qx "$1"
}

is_only() { # USER: a pattern
	echo "Uid:( $(id -u "$1")){4} Gid:( $(id -g "$1")){4}"
}

# --- programs ---

www() {
	mkdir -p "$dir/www" "$dir/empty"
	chmod 755 "$dir/www"
	echo small > "$dir/www/small"
}

small() {
	timeout $patience curl -sS --fail --noproxy '*' http://127.0.0.1:7001/small
}

nginx_() {
	www
	cat > "$dir/nginx.conf" <<-END
		daemon off;
		user www-data;
		worker_processes 2;
		pid $dir/nginx.pid;
		error_log $dir/nginx.log;
		events { worker_connections 64; }
		http { access_log off; server { listen 7001; root $dir/www; } }
	END
	start nginx $server nginx -e "$dir/nginx.log" -c "$dir/nginx.conf"
	up 7001 || return
	try "nginx: serves" small
	try "nginx: its workers have given root up" until_true are 2 $pid "$(is_only www-data)"
	same "nginx: every thread" facts $pid
	stop $pid
}

apache_() {
	local mpm modules=/usr/lib/apache2/modules
	www
	for mpm in event worker prefork; do
		cat > "$dir/apache.conf" <<-END
			ServerRoot $dir
			ServerName localhost
			PidFile $dir/apache.pid
			ErrorLog $dir/apache.errors
			DefaultRuntimeDir $dir
			Listen 127.0.0.1:7001
			LoadModule mpm_${mpm}_module $modules/mod_mpm_$mpm.so
			LoadModule authz_core_module $modules/mod_authz_core.so
			User www-data
			Group www-data
			StartServers 2
			DocumentRoot $dir/www
		END
		start apache setsid $server apache2 -f "$dir/apache.conf" -DFOREGROUND
		up 7001 || return
		try "apache, $mpm: serves" small
		try "apache, $mpm: its children have given root up" until_true are 2 $pid "$(is_only www-data)"
		same "apache, $mpm: every thread" facts $pid
		stop $pid
	done
}

haproxy_() {
	www
	haproxy_config "$dir/empty" "nbthread 2" > "$dir/haproxy.conf"
	# One process has its listeners before it gives root up; the other has a master that keeps it.
	start haproxy $server haproxy -db -f "$dir/haproxy.conf"
	up 7001 || return
	try "haproxy: serves" small
	same "haproxy: every thread" facts $pid
	stop $pid
	start haproxy_master $server haproxy -W -db -f "$dir/haproxy.conf"
	up 7001 || return
	try "haproxy with a master: serves" small
	try "haproxy with a master: its worker has given root up" until_true are 1 $pid "$(is_only haproxy)"
	same "haproxy with a master: every thread" facts $pid
	stop $pid
}

# says PORT TEXT: what a server says first to a client that sends the TEXT.
says() {
	local line
	exec {client_fd}<> "/dev/tcp/127.0.0.1/$1" || return
	[ -z "$2" ] || printf '%s' "$2" >&$client_fd
	IFS= read -t $patience -r line <&$client_fd
	exec {client_fd}>&-
	echo "$line"
}

memcached_() {
	start memcached $server memcached -p 7001 -l 127.0.0.1 -t 4 -u memcache
	up 7001 || return
	same "memcached: serves" says 7001 $'get nothing\r\n'
	same "memcached: every thread" facts $pid
	stop $pid
}

# As its unit has it: redis does not confine itself.
redis_() {
	start redis $(as_user redis) --inh-caps=-all --bounding-set=-all --no-new-privs \
		$server redis-server --port 7001 --bind 127.0.0.1 --save '' --dir /
	up 7001 || return
	same "redis: serves" says 7001 $'PING\r\n'
	same "redis: every thread" facts $pid
	stop $pid
}

postgresql_() {
	local as
	as=$(as_user postgres)
	mkdir -p "$dir/data"
	chown postgres "$dir/data"
	$as initdb -D "$dir/data" -A trust -N -U postgres > "$dir/initdb" 2>&1 || { not_ok "$configuration: initdb"; said "$dir/initdb"; return; }
	start postgres $as $server postgres -D "$dir/data" -p 7001 -k "" -c listen_addresses=127.0.0.1 -c autovacuum=off
	up 7001 || return
	same "postgresql: serves" until_true psql -h 127.0.0.1 -p 7001 -U postgres -Atc 'select 1'
	try "postgresql: its helpers are there" until_true are 4 $pid "$(is_only postgres)"
	same "postgresql: every thread" facts $pid
	stop $pid INT
}

# A session is three processes: root's helper, the one that talks to the client, and the listener above both.
session() { # PORT: stays open; logged in
	exec {client_fd}<> "/dev/tcp/127.0.0.1/$1" || return
	answer 220 && printf 'USER anonymous\r\n' >&$client_fd && answer 331 &&
		printf 'PASS x\r\n' >&$client_fd && answer 230
}

answer() { # NUMBER
	local line
	while IFS= read -t $patience -r line <&$client_fd; do
		[[ $line != "$1 "* ]] || return 0
	done
	echo "$line"
	return 1
}

vsftpd_() { # [YES]: with its own filter
	local filter=0
	mkdir -p "$dir/root" "$dir/empty"
	chmod 755 "$dir" "$dir/root" "$dir/empty"
	cat > "$dir/vsftpd.conf" <<-END
		listen=YES
		listen_address=127.0.0.1
		listen_port=7001
		background=NO
		anonymous_enable=YES
		anon_root=$dir/root
		no_anon_password=NO
		local_enable=NO
		nopriv_user=nobody
		isolate=YES
		isolate_network=YES
		secure_chroot_dir=$dir/empty
		seccomp_sandbox=${1:-NO}
	END
	start vsftpd $server vsftpd "$dir/vsftpd.conf"
	up 7001 || return
	same "vsftpd${1:+ with its filter}: a session" session 7001
	[ "${1:-}" ] && filter=2
	try "vsftpd${1:+ with its filter}: both processes have confined themselves" \
		until_true are 2 $pid "CapPrm: 0* .* NoNewPrivs: 1 Seccomp: $filter"
	same "vsftpd${1:+ with its filter}: every thread" facts $pid
	exec {client_fd}>&-
	stop $pid
}

vsftpd_filter_() {
	vsftpd_ YES
}

# Before a session has logged in, its process is in a sandbox of seccomp and a chroot.
sshd_() {
	local line
	ssh-keygen -q -t ed25519 -N '' -f "$dir/host"
	mkdir -p /run/sshd
	printf '%s\n' "Port 7001" "ListenAddress 127.0.0.1" "HostKey $dir/host" "PidFile $dir/sshd.pid" "StrictModes no" "UsePAM no" > "$dir/sshd.conf"
	start sshd $server "$(type -P sshd)" -D -e -f "$dir/sshd.conf"
	up 7001 || return
	exec {client_fd}<> /dev/tcp/127.0.0.1/7001
	printf 'SSH-2.0-test\r\n' >&$client_fd
	IFS= read -t $patience -r line <&$client_fd
	try "sshd: its session has a filter" until_true are 1 $pid "$(is_only sshd).* Seccomp: 2"
	same "sshd: every thread" facts $pid
	exec {client_fd}>&-
	stop $pid
}

# --- all of them ---

declare -A commands=([apache]=apache2 [redis]=redis-server [postgresql]=postgres [vsftpd_filter]=vsftpd)

drive() {
	local one command
	for one in $programs; do
		command=${commands[$one]:-$one}
		PATH=$PATH:/usr/sbin:/sbin type -P "$command" > /dev/null || { skip "$configuration: $one" "$command is not installed"; continue; }
		"${one}_"
	done
}

matrix drive
