# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2015,SC2034,SC2086,SC2154,SC2317
# For reach.sh: a layout's programs, plain and shunted, and the row of each. Sourced. A layout says
# where and as who:
#
#	server, client		arrays of what is put before the commands of either end
#	address			where servers listen
#	translated		what is added to a server's port to get the port that clients connect to
#	client_net		a command after which the client's counters of the kernel can be read, if its network is another
#
# and then `programs NAME...`, or `unavailable WHY`. A program has functions: NAME_serve PORT
# FOLDER, NAME_ask PORT, which prints a figure of which more is better, and NAME_right PORT, which
# succeeds if every byte is in its place. NAME_talks is what talk.py is told for `reach.sh
# --quick`; a program without it is left out there.

# The whole script has namespaces of its own already: apps/lib.sh shall not ask for others.
APPS_ALONE=asked
# shellcheck source-path=SCRIPTDIR source=../apps/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../apps/lib.sh"
reach=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/sbin:/sbin:$(find /usr/lib/postgresql -maxdepth 2 -name bin 2> /dev/null | sort -V | tail -1)
patience=100	# seconds until a command is taken to hang
turns=$REACH_TURNS
export TMPDIR=$work	# of programs, whoever runs them
chmod 1777 "$work"
address=127.0.0.1
translated=0
server=() client=() client_net=()
tcp_port=7100 shunt_port=7200	# and the next one, for what is behind a proxy
one=(setpriv --reuid=1234 --regid=1234 --clear-groups)
other=(setpriv --reuid=1235 --regid=1235 --clear-groups)

# --- both ends ---

# shunted SIDE: sets $wrap, which makes it so if $how is.
shunted() {
	wrap=()
	[ "$how" = shunt ] || return 0
	wrap=(env SHUNT_STATS="$dir/$1/%p" SHUNT_LOG_FILE="$dir/said.$1/%p" "${settings[@]}" "$REACH_TOOL" run)
	[ -d "$dir/$1" ] || mkdir -m 777 "$dir/$1" "$dir/said.$1"
}
settings=()

serve() { # NAME COMMAND...
	local name=$1 wrap
	shift
	shunted server
	start "$name.$how" "${server[@]}" "${wrap[@]}" "$@"
}

ask() { # COMMAND...
	local wrap
	shunted client.$turn
	timeout -k 5 $patience "${client[@]}" "${wrap[@]}" "$@" 2>> "$dir/errors"
}

listens() { # PORT
	ss -Hltn "sport = :$1" | grep -q .
}

# A daemon's first process ends when the second one listens, or somewhat later or earlier.
listens_or_ends() {
	listens $1 && return
	{ gone $pid && ! wait $pid; } 2> /dev/null
}

# The first process that listens there: masters come before their workers.
listener() { # PORT
	ss -Hltnp "sport = :$1" | grep -o 'pid=[0-9]*' | cut -d = -f 2 | sort -n | head -n 1
}

came_up() { # PORT
	WITHIN=60 within listens_or_ends $1 && listens $1 && return
	echo "# $layout, $program: its server does not come up"
	for said in "$dir"/*.out; do said "$said"; done
	return 1
}

carried() {
	local bytes
	bytes=$(tcp_bytes)
	[ ${#client_net[@]} = 0 ] || bytes=$((bytes + $("${client_net[@]}" bash -c "$(declare -f tcp_bytes); tcp_bytes")))
	echo $bytes
}

# --- programs ---

iperf3_needs="iperf3"
iperf3_serve() { serve iperf3 iperf3 -s -B $address -p $1; }
iperf3_ask() {
	ask iperf3 -c $address -p $1 -t $seconds -J | jq '.end.sum_received.bits_per_second / 1e9'
}
# It counts bytes and does not look at them, and its server leaves the last ones unread, bare too.
iperf3_right() {
	ask iperf3 -c $address -p $1 -n 20M -J |
		jq -e '.end | .sum_received.bytes > 0 and .sum_received.bytes <= .sum_sent.bytes'
}

redis_needs="redis-server redis-benchmark redis-cli"
redis_talks=redis
redis_serve() {
	serve redis redis-server --bind $address --port $1 --save '' --appendonly no --dir "$2" --protected-mode no
}
redis_ask() {
	ask redis-benchmark -h $address -p $1 -t set -d 4096 -c 8 -n $((40000 * seconds)) --csv | tail -n 1 | cut -d '"' -f 4
}
redis_right() {
	base64 -w 0 "$dir/www/large" > "$dir/value"
	ask redis-cli -h $address -p $1 -x set value < "$dir/value" &&
		ask redis-cli -h $address -p $1 get value | head -c -1 | cmp - "$dir/value"
}

host() {
	case $address in
	*:*) echo "[$address]" ;;
	*) echo $address ;;
	esac
}

http_ask() { # PORT
	ask wrk -t 1 -c 4 -d $seconds "http://$(host):$1/large" | awk '/Requests\/sec/ { print $2 }'
}
http_right() {
	ask curl -sS --fail --noproxy '*' "http://$(host):$1/large" | cmp - "$dir/www/large"
}

nginx_needs="nginx wrk curl"
nginx_talks=http
nginx_serve() {
	local user=
	[ "$("${server[@]}" id -u)" != 0 ] || user="user root;"
	nginx_files $1 "$2" "$user daemon off; worker_processes 2;"
	serve nginx nginx -e "$2/errors" -c "$2/nginx.conf"
}
nginx_ask() { http_ask "$@"; }
nginx_right() { http_right "$@"; }

nginx_files() { # PORT FOLDER DIRECTIVES
	cat > "$2/nginx.conf" <<-END
		$3
		pid $2/pid;
		error_log $2/errors;
		events { worker_connections 768; }
		http {
			access_log off; sendfile on; tcp_nopush on; types_hash_max_size 2048; keepalive_requests 1000000;
			client_body_temp_path $2/a; proxy_temp_path $2/b; fastcgi_temp_path $2/c; uwsgi_temp_path $2/d; scgi_temp_path $2/e;
			server { listen $(host):$1; root $dir/www; }
		}
	END
}

# --- services, as Debian's units start them ---

nginx_service_needs=$nginx_needs
nginx_service_talks=http
nginx_service_serve() {
	nginx_files $1 "$2" "user www-data; worker_processes auto;"
	serve nginx nginx -e "$2/errors" -c "$2/nginx.conf" -g 'daemon on; master_process on;'
}
nginx_service_ask() { http_ask "$@"; }
nginx_service_right() { http_right "$@"; }

apache_needs="apache2 wrk curl"
apache_talks=http
apache_serve() {
	cat > "$2/apache.conf" <<-END
		ServerRoot /etc/apache2
		DefaultRuntimeDir $2
		ServerName localhost
		PidFile $2/pid
		ErrorLog $2/errors
		User www-data
		Group www-data
		Listen $(host):$1
		Include mods-available/mpm_$mpm.load
		Include mods-available/mpm_$mpm.conf
		Include mods-available/authz_core.load
		Include mods-available/reqtimeout.load
		Include mods-available/reqtimeout.conf
		Timeout 300
		KeepAlive On
		MaxKeepAliveRequests 0
		KeepAliveTimeout 60
		DocumentRoot $dir/www
	END
	serve apache apache2 -f "$2/apache.conf" -k start
}
apache_ask() { http_ask "$@"; }
apache_right() { http_right "$@"; }

haproxy_needs="haproxy $nginx_needs"
haproxy_talks=http
haproxy_serve() {
	nginx_service_serve $(($1 + 1)) "$2"
	# The global section is the packaged file's, but for the log and the path of a socket.
	cat > "$2/haproxy.conf" <<-END
		global
			chroot /var/lib/haproxy
			stats socket $2/admin mode 660 level admin
			stats timeout 30s
			user haproxy
			group haproxy
			daemon
		defaults
			mode http
			option dontlognull
			timeout connect 5000
			timeout client 50000
			timeout server 50000
		listen web
			bind $address:$1
			server a $address:$(($1 + 1))
	END
	came_up $(($1 + 1)) || return
	leaders+=("$(listener $(($1 + 1)))")
	serve haproxy haproxy -Ws -f "$2/haproxy.conf" -p "$2/haproxy.pid" -S "$2/master"
	leaders+=("$pid")
}
haproxy_ask() { http_ask "$@"; }
haproxy_right() { http_right "$@"; }

memcached_needs="memcached"
memcached_talks=memcached
memcached_serve() { serve memcached memcached -u memcache -l $address -p $1 -m 64 -P "$2/pid"; }
memcached_ask() {
	local begun=$EPOCHREALTIME
	ask $python "$REACH_BIN/memcached.py" $1 4 $((200 * seconds)) 900000 > /dev/null || return
	awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { print 1 / (b - a) }'
}
memcached_right() { ask $python "$REACH_BIN/memcached.py" $1 2 50 900000; }

redis_service_needs=$redis_needs
redis_service_talks=redis
redis_service_serve() {
	chown redis "$2"
	redis_serve "$@"
}
redis_service_ask() { redis_ask "$@"; }
redis_service_right() { redis_right "$@"; }

postgresql_needs="postgres initdb psql pgbench"
postgresql_signal=INT
postgresql_serve() {
	chown postgres "$2"
	"${server[@]}" initdb -D "$2/data" -A trust -N -U postgres > "$2/initdb" 2>&1 || { said "$2/initdb"; return 1; }
	serve postgres postgres -D "$2/data" -c port=$1 -c listen_addresses=$address -c unix_socket_directories=
}
database() { echo "host=$address port=$1 dbname=postgres user=postgres"; }
accepts() { psql -X -d "$(database $1)" -c 'select 1'; }
postgresql_ask() {
	until_true accepts $1
	echo "select repeat('shunt', 2000);" > "$dir/select"
	ask pgbench -n -c 4 -j 2 -T $seconds -f "$dir/select" "$(database $1)" | awk '/^tps/ { print $3 }'
}
postgresql_right() {
	ask psql -X -q -t -A -d "$(database $1)" -c "select repeat('shunt', 1000000)" |
		cmp - <(python3 -c "print('shunt' * 1000000)")
}

# --- rows ---

row() { # KEY=VALUE...
	python3 "$reach/figures.py" row "$dir" layout="$layout" program="${program%_service}" expected="$expected" state="$state" "$@" >> "$REACH_ROWS"
}

unavailable() { # WHY: for the whole layout
	program=all dir=$work
	row skipped="$1"
}

has() { # COMMAND...
	for missing; do command -v "$missing" > /dev/null || return; done
}

# server_up HOW: sets $leaders, the processes that end it.
server_up() {
	local port=${1}_port folder=$dir/folder.$1
	how=$1
	mkdir -m 777 "$folder"
	leaders=()
	${program}_serve ${!port} "$folder" && came_up ${!port} || return
	[ ${#leaders[@]} -gt 0 ] || leaders=("$(listener ${!port})")
	all+=("${leaders[@]}")
}

# Statistics of what runs, and why there are none.
look() {
	"$REACH_TOOL" stat --json > "$dir/server/snapshot" 2> /dev/null
	"$REACH_TOOL" stat "${leaders[-1]}" 2>&1 | head -n 1 | sed 's/^shunt stat: process [0-9]*: //' > "$dir/absent"
}

servers_down() {
	local signal=${program}_signal leader child
	for leader in "${all[@]}"; do
		kill -${!signal-TERM} "$leader"
		until_true gone "$leader" || kill -KILL "$leader"
	done
	for child in "${children[@]}"; do
		until_true gone "$child" || kill -KILL "$child"
		wait "$child"
	done
	children=()
} 2> /dev/null

# turn NUMBER HOW: one figure of each way; what the kernel carried of the shunted one.
take_turn() {
	local before port=${2}_port
	turn=$1 how=$2
	before=$(carried)
	${program}_ask $((${!port} + translated)) > "$dir/figure"
	[ -s "$dir/figure" ] && cat "$dir/figure" >> "$dir/speed.$2"
	[ $2 = tcp ] || kernel=$((kernel + $(carried) - before))
}

check_bytes() {
	local before
	turn=right how=shunt right=no
	before=$(carried)
	${program}_right $((shunt_port + translated)) > "$dir/out" && right=yes
	kernel=$((kernel + $(carried) - before))
}

measure() {
	local kernel=0 right=no each
	server_up tcp && server_up shunt || { row kernel=0 right=no; return; }
	for ((each = 1; each <= turns; each++)); do
		take_turn $each tcp
		take_turn $each shunt
	done
	check_bytes
	look
	servers_down
	row kernel=$kernel right=$right
	[ ! -s "$dir/errors" ] || said "$dir/errors" 3
}

# --- the quick form: one connection of talk.py, which waits for the decision and then transfers ---

# What the log says: on a link, or why not; the client's words count first.
decided() {
	local side
	for side in client.1 server; do
		decision=$(cat "$dir/said.$side"/* 2> /dev/null |
			sed -n 's/.*: \(on a link\) to process .*/\1/p; s/.*: stays on TCP: \(.*\)/\1/p' | tail -n 1)
		[ -z "$decision" ] || return 0
	done
	return 1
}

says() { # LINE: the client has done what it says
	local line
	echo "$1" >&"$to" && read -r -t $patience line <&"$from" && [ "$line" = "$1" ]
}

said_and_decided() {
	says small || return 0
	decided
}

# Behind a proxy there are several connections, and a link that is there may carry one direction only.
settled() {
	"$REACH_TOOL" stat --json 2> /dev/null |
		jq -e '[.[].streams[] | select(.state != "plain" and
			(.state != "linked" or .tx.track != "link" or .rx.track != "link"))] == []' > /dev/null
}

said_and_settled() {
	says small || return 0
	settled
}

quick() {
	local to from talker kernel=0 right=no decision='' talks=${program}_talks
	# A slow machine is no reason to stay on TCP, or to go back to it.
	settings=(SHUNT_LOG=info "SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=20000,slow_ms=0")
	server_up shunt || { row kernel=0 right=no; return; }
	turn=1
	mkfifo "$dir/to" "$dir/from"
	ask $python "$REACH_BIN/talk.py" ${!talks} $address $((shunt_port + translated)) "$dir/www/large" \
		< "$dir/to" > "$dir/from" &
	talker=$!
	exec {to}> "$dir/to" {from}< "$dir/from"
	within said_and_decided
	within said_and_settled
	kernel=$(carried)
	says large && says large && right=yes
	kernel=$(($(carried) - kernel))
	exec {to}>&- {from}<&-
	wait $talker || right=no
	look
	servers_down
	row kernel=$kernel right=$right
	[ ! -s "$dir/errors" ] || said "$dir/errors" 3
}

programs() { # NAME...
	local needs missing all
	for program; do
		needs=${program}_needs talks=${program}_talks
		[ -z "${REACH_QUICK-}" ] || [ "${!talks-}" ] || continue
		dir=$work/$program all=()
		mkdir -m 777 "$dir"
		if ! has ${!needs}; then
			row skipped="$missing is not installed"
			continue
		fi
		mkdir "$dir/www"
		echo small > "$dir/www/small"
		head -c 3000000 /dev/urandom > "$dir/www/large"
		chmod -R a+rX "$dir/www"
		if [ "${REACH_QUICK-}" ]; then quick; else measure; fi
	done
}
