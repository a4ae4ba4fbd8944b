#!/bin/bash
# SPDX-License-Identifier: MIT
# The benchmarks that programs bring, over plain TCP and with both ends shunted, in turns: two servers of each program are
# up, and its client asks one and then the other.
#
#	ROUNDS=7 programs.sh [PROGRAM...]	medians, the ratio of the two, and the smallest and largest of a round's.
#						After all of them the table goes into docs/SPEED.md, unless TABLE=
#	ROWS=REGEX programs.sh [PROGRAM...]	only the workloads whose names match
# shellcheck disable=SC2086,SC2317,SC2034	# commands to put before others are several words; what each program has is called by name
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
# Ports are fixed, so the network is our own where that can be.
[ "${ALONE:-}" ] || exec "$(dirname "$0")/../alone.sh" bash "$0" "$@"
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"
PATH=$PATH:/usr/sbin:/sbin:$(find /usr/lib/postgresql -maxdepth 2 -name bin 2> /dev/null | sort -V | tail -1)

rounds=${ROUNDS:-7}
top=$(cd "$(dirname "$0")/../.." && pwd)
table=${TABLE-$top/docs/SPEED.md}
all="redis memcached nginx haproxy postgresql mariadb node iperf qperf rsync ssh"
chosen=${*:-$all}
user=$(id -un)	# both ends run as one user: others have no link
export LC_ALL=C.UTF-8 HOME=$work
chmod 755 "$work"
need_shunt

# --- what each needs, how it serves on a port, and its workloads: a name, what is asked, and who asks it ---
# Of the servers, $1 stands before the command, $2 is the port and $3 a folder of its own; of those who ask, $1 and $2, and
# the rest is the workload's. They print a figure of which more is better.

redis_needs="redis-server redis-benchmark"
redis_serve() { start $1 redis-server --port $2 --save "" --appendonly no --dir "$3"; }
redis_ask() {
	$1 redis-benchmark -p $2 --csv "${@:3}" 2> /dev/null | tail -n 1 | cut -d '"' -f 4
}
redis_workloads="GET, 50 clients|-t get -n 100000
SET of 1 KB, 50 clients|-t set -d 1024 -n 100000
GET, one client|-t get -c 1 -n 20000
GET, pipelines of 16|-t get -P 16 -n 500000
LRANGE of 300|-t lrange_300 -n 10000
PING, a connection each|-t ping_mbulk -k 0 -n 20000"

memcached_needs="memcached memcslap memcaslap"
memcached_serve() { start $1 memcached -u "$user" -l 127.0.0.1 -p $2; }
memcached_ask() {
	$1 memcslap --servers=127.0.0.1:$2 --concurrency=8 --execute-number=5000 "${@:3}" 2> /dev/null |
		awk '/^Time to get|^Time to set/ && /threads:/ { print 1 / $(NF - 1) }'
}
# The server has four threads, and the client two.
memcached_caslap() {
	$1 memcaslap -s 127.0.0.1:$2 -T 2 -t 2s "${@:3}" 2> /dev/null | sed -n 's/.*TPS: \([0-9]*\).*/\1/p' | tail -n 1
}
memcached_16() { memcached_caslap "$1" "$2" -c 16; }
memcached_256() { memcached_caslap "$1" "$2" -c 256; }
memcached_workloads="get, 8 clients|--test=get
set, 8 clients|--test=set
4 threads, 16 connections|memcached_16
4 threads, 256 connections|memcached_256"

wrk_ask() {
	$1 wrk -t 2 -c 16 -d 2 "${@:3}" http://127.0.0.1:$2/small 2> /dev/null | awk '/Requests\/sec/ { print $2 }'
}
wrk_64() {
	$1 wrk -t 2 -c 64 -d 2 http://127.0.0.1:$2/small 2> /dev/null | awk '/Requests\/sec/ { print $2 }'
}
wrk_close() { wrk_ask "$1" "$2" -H "Connection: close"; }
wrk_large() {
	$1 wrk -t 2 -c 4 -d 2 http://127.0.0.1:$2/large 2> /dev/null | awk '/Requests\/sec/ { print $2 }'
}

nginx_needs="nginx wrk"
# PORT FOLDER: its configuration.
nginx_files() {
	mkdir -p "$2/www"
	echo small > "$2/www/small"
	head -c 1000000 /dev/urandom > "$2/www/large"
	chmod -R a+rX "$2"
	cat > "$2/nginx.conf" <<-END
		$([ "$user" = root ] && echo "user root;")
		worker_processes 2;
		daemon off;
		pid $2/pid;
		error_log $2/errors;
		events { worker_connections 500; }
		http {
			access_log off;
			client_body_temp_path $2/a; proxy_temp_path $2/b; fastcgi_temp_path $2/c; uwsgi_temp_path $2/d; scgi_temp_path $2/e;
			server { listen 127.0.0.1:$1 backlog=500; root $2/www; sendfile on; keepalive_requests 1000000; }
		}
	END
}
nginx_serve() {
	nginx_files $2 "$3"
	start $1 nginx -c "$3/nginx.conf" -e "$3/errors"
}
nginx_ask() { wrk_ask "$@"; }
nginx_workloads="6 bytes, 16 connections|
6 bytes, 64 connections|wrk_64
1 MB, 4 connections|wrk_large
6 bytes, a connection each|wrk_close"

haproxy_needs="haproxy nginx wrk"
haproxy_serve() {
	nginx_serve "$1" $(($2 + 1)) "$3"
	cat > "$3/haproxy.conf" <<-END
		global
			nbthread 2
		defaults
			mode http
			timeout connect 10s
			timeout client 60s
			timeout server 60s
		listen web
			bind 127.0.0.1:$2
			http-reuse always
			server a 127.0.0.1:$(($2 + 1))
	END
	start $1 haproxy -db -f "$3/haproxy.conf"
}
haproxy_ask() { wrk_ask "$@"; }
haproxy_workloads="6 bytes, 16 connections|
1 MB, 4 connections|wrk_large"

postgresql_needs="postgres pgbench initdb"
# It does not run as root.
[ "$(id -u)" != 0 ] || as="setpriv --reuid=postgres --regid=postgres --clear-groups"
as=${as:-}
postgresql_serve() {
	[ -z "$as" ] || chown postgres "$3"
	$as initdb -D "$3/data" -A trust -U postgres -N > "$3/initdb" 2>&1
	start $as $1 postgres -D "$3/data" -h 127.0.0.1 -p $2 -k "" -F
	wait_port $2 && $as pgbench -n -i -q -s 2 "$(database $2)" > "$3/filled" 2>&1
}
database() { echo "host=127.0.0.1 port=$1 dbname=postgres user=postgres"; }
postgresql_ask() {
	$as $1 pgbench -n -T 2 "${@:3}" "$(database $2)" 2> /dev/null | awk '/^tps/ { print $3 }'
}
postgresql_workloads="select only, 8 clients|-S -c 8 -j 2
TPC-B, 8 clients|-c 8 -j 2
select only, a connection each|-S -C -c 4 -j 2"

mariadb_needs="mariadbd mariadb-install-db mariadb-slap"
mariadb_serve() {
	local user=()
	[ "$(id -u)" != 0 ] || user=(--user=root)
	mariadb-install-db --no-defaults "${user[@]}" --datadir="$3/data" --auth-root-authentication-method=normal \
		--skip-test-db > "$3/install" 2>&1
	printf '%s;\n' "create user tester@'%' identified by 'secret'" "grant all on *.* to tester@'%'" > "$3/init.sql"
	start $1 mariadbd --no-defaults "${user[@]}" --datadir="$3/data" --port=$2 --bind-address=127.0.0.1 --socket="$3/socket" \
		--skip-name-resolve --init-file="$3/init.sql" --innodb-flush-log-at-trx-commit=0
}
mariadb_ask() {
	$1 mariadb-slap --no-defaults --protocol=tcp -h 127.0.0.1 -P $2 -u tester --password=secret --auto-generate-sql \
		"${@:3}" 2> /dev/null | awk '/Average/ { print 1 / $(NF - 1) }'
}
mariadb_workloads="mixed, 8 clients|--concurrency=8 --number-of-queries=4000
reads, 8 clients|--concurrency=8 --number-of-queries=40000 --auto-generate-sql-load-type=read"

node_needs="node wrk"
node_serve() {
	start $1 node -e 'require("http").createServer((q, s) => s.end(q.url === "/large" ? "x".repeat(1000000) : "small\n")).listen(+process.argv[1], "127.0.0.1")' $2
}
node_ask() { wrk_ask "$@"; }
node_workloads="6 bytes, 16 connections|
1 MB, 4 connections|wrk_large"

iperf_needs="iperf3 iperf"
iperf_serve() {
	start $1 iperf3 -s -p $2
	start $1 iperf -s -p $(($2 + 1))
}
iperf_ask() {
	$1 iperf3 -c 127.0.0.1 -p $2 -t 2 -J "${@:3}" 2> /dev/null | awk '/"sum_received"/ { sum = 1 } sum && /bits_per_second/ { print $2 / 1e9; exit }'
}
iperf_two() {
	$1 iperf -c 127.0.0.1 -p $(($2 + 1)) -t 2 -y C 2> /dev/null | awk -F , '{ print $9 / 1e9 }'
}
iperf_workloads="iperf3|
iperf3, 4 streams|-P 4
iperf3, blocks of 4 KiB|-l 4K
iperf 2|iperf_two"

qperf_needs="qperf"
qperf_serve() { start $1 qperf --listen_port $2; }
qperf_ask() {
	$1 qperf 127.0.0.1 --listen_port $2 -t 2 --unify_units "$3" 2> /dev/null |
		awk '/latency/ { print 1 / $3 } /bw *=/ { print $3 }'
}
qperf_workloads="latency|tcp_lat
bandwidth|tcp_bw"

rsync_needs="rsync"
rsync_serve() {
	mkdir -p "$3/files"
	head -c 200000000 /dev/urandom > "$3/files/large"
	chmod -R a+rX "$3"
	printf '%s\n' "use chroot = no" "[files]" "path = $3/files" > "$3/rsyncd.conf"
	start $1 rsync --daemon --no-detach --config="$3/rsyncd.conf" --address=127.0.0.1 --port=$2
}
rsync_ask() {
	rm -f "$work/copy"
	rate $1 rsync --whole-file "rsync://127.0.0.1:$2/files/large" "$work/copy"
}
rsync_workloads="200 MB|"

ssh_needs="sshd ssh ssh-keygen"
ssh_serve() {
	mkdir -p /run/sshd
	ssh-keygen -q -t ed25519 -N "" -f "$3/host"
	[ -e "$work/key" ] || ssh-keygen -q -t ed25519 -N "" -f "$work/key"
	printf '%s\n' "HostKey $3/host" "AuthorizedKeysFile $work/key.pub" "StrictModes no" "PidFile $3/pid" "UsePAM no" > "$3/sshd.conf"
	start $1 "$(command -v sshd)" -D -f "$3/sshd.conf" -o ListenAddress=127.0.0.1 -p $2
}
ssh_ask() {
	rate $1 ssh -i "$work/key" -p $2 -o StrictHostKeyChecking=no -o UserKnownHostsFile="$work/known" -o LogLevel=ERROR \
		127.0.0.1 "head -c 200000000 /dev/zero" > /dev/null
	cat "$work/rate"
}
ssh_workloads="200 MB|"

# --- measuring ---

# rate COMMAND...: how often it could be done in a second.
rate() {
	local begun=$EPOCHREALTIME
	"$@" > /dev/null 2>&1 || return
	awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print 1 / (b - a) }' | tee "$work/rate"
}

start() { # COMMAND...: a server
	"$@" > "$folder/said" 2>&1 < /dev/null &
	servers+=($!)
	children+=($!)
}

has() { # COMMAND...
	local f
	for f; do command -v "$f" > /dev/null || return; done
}

# measure PROGRAM NUMBER OPTIONS WHO: one figure; asked by a function that the options name, or the program's own.
measure() {
	local wrap='' port=7100 ask=${1}_ask options=$3
	[ "$4" = tcp ] || { wrap=$shunt_run port=7200; }
	if [ "$(type -t -- "${options%% *}")" = function ]; then
		ask=$options options=
	fi
	record $1.$2 $4 "$(timeout -k 1 60 true && $ask "$wrap" $port $options)"
}

# report PROGRAM NUMBER WHAT: its row.
report() {
	paste "$work/r.$1.$2.tcp" "$work/r.$1.$2.shunt" |
		awk -v row="| $1 | $3" -v t="$(get_median $1.$2 tcp)" -v s="$(get_median $1.$2 shunt)" '
			$1 > 0 && $2 > 0 { n++; r = $2 / $1; if (n == 1 || r < low) low = r; if (n == 1 || r > high) high = r }
			END { if (n) printf "%s | %.2f | %.2f–%.2f |\n", row, s / t, low, high; else printf "%s | failed | |\n", row }'
}

program() {
	local who wrap port folder servers=() needs=${1}_needs workloads=${1}_workloads round number what options pid wanted
	wanted=$(grep -E "^[^|]*(${ROWS:-})[^|]*\|" <<< "${!workloads}") || return 0
	if ! has ${!needs}; then
		echo "$1: not measured: one of ${!needs} is not installed" >&2
		return
	fi
	for who in tcp shunt; do
		wrap='' port=7100
		[ $who = tcp ] || { wrap=$shunt_run port=7200; }
		folder=$work/$1.$who
		mkdir -p "$folder"
		${1}_serve "$wrap" $port "$folder"
		wait_port $port || { echo "$1: not measured: its server does not come up" >&2; return; }
	done
	for ((round = 0; round <= rounds; round++)); do	# the first is not counted
		[ $round != 1 ] || rm -f "$work"/r.$1.*
		number=0
		while IFS='|' read -r what options; do
			echo "$1, $what: $round of $rounds" >&2
			for who in tcp shunt; do measure $1 $number "$options" $who; done
			number=$((number + 1))
		done <<< "$wanted"
	done
	number=0
	while IFS='|' read -r what options; do
		report $1 $number "$what" | tee -a "$work/rows"
		number=$((number + 1))
	done <<< "$wanted"
	for pid in "${servers[@]}"; do kill -INT $pid 2> /dev/null; done
	for pid in "${servers[@]}"; do
		for ((round = 0; round < 100; round++)); do
			kill -0 $pid 2> /dev/null || break
			sleep 0.05
		done
		kill -KILL $pid 2> /dev/null
		wait $pid 2> /dev/null
	done
}

for each in $chosen; do program $each; done
say_stolen
[ -z "$table" ] || [ "$chosen" != "$all" ] || python3 "$top/tests/bench/speeds.py" "$table" "$work/rows"
