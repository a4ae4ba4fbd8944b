#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that make a connection for each request: plain TCP, Shunt without spares (SHUNT_TUNE=born=off) and Shunt, in turns.
# Requests a second, medians, and how many times that is of TCP.
#
#	requests.sh	in the build tree, like all of tests/bench
#	ROUNDS=5 COUNT=5000 CLIENTS=8	turns, requests in each, and how many at once
#
# Needs redis-server, nginx, haproxy, node, mariadb-server, php-mysql and ab (apache2-utils); what is missing is skipped.
# nginx runs without a master, and as "workers" with two: a listener at which several processes accept has no births. "node"
# is nginx before a server of node, "mariadb" processes of PHP that connect for each query.
set -u
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
builddir=${top_builddir:-.}
shunt=$builddir/tools/shunt
scratch requests ''
: "${ROUNDS:=5}" "${COUNT:=5000}" "${CLIENTS:=8}"
redis=7801 nginx=7802 haproxy=7803 workers=7804 node=7805 before_node=7806 mariadb=7807

cat > "$scratch/nginx.conf" <<EOF
master_process off; daemon off; worker_processes 1; pid $scratch/pid; error_log $scratch/errors;
events { }
http {
	access_log off;
	client_body_temp_path $scratch/1; proxy_temp_path $scratch/2; fastcgi_temp_path $scratch/3;
	uwsgi_temp_path $scratch/4; scgi_temp_path $scratch/5;
	server { listen 127.0.0.1:$nginx; location / { return 200 "$(printf 'x%.0s' {1..64})"; } }
	server { listen 127.0.0.1:$before_node; location / { proxy_pass http://127.0.0.1:$node; } }
}
EOF
sed "s|^master_process off; daemon off; worker_processes 1; pid [^;]*|daemon off; worker_processes 2; pid $scratch/master|; /:$before_node/d; s|:$nginx|:$workers|" "$scratch/nginx.conf" > "$scratch/workers.conf"
cat > "$scratch/haproxy.cfg" <<EOF
defaults
	mode http
	timeout connect 5s
	timeout client 5s
	timeout server 5s
	option httpclose
listen proxy
	bind 127.0.0.1:$haproxy
	server nginx 127.0.0.1:$nginx
EOF

cat > "$scratch/server.js" <<EOF
require("http").createServer((asked, answer) => { answer.setHeader("Connection", "close"); answer.end("x".repeat(64)); })
	.listen($node, "127.0.0.1");
EOF

cat > "$scratch/query.php" <<'EOF'
<?php
for ($i = 0; $i < (int)$argv[2]; $i++) {
	$server = new mysqli("127.0.0.1", "root", "", "", (int)$argv[1]);
	$server->query("select 1")->fetch_row();
	$server->close();
}
EOF

listens() { # PORT
	(: < "/dev/tcp/127.0.0.1/$1") 2> /dev/null
}

# begin PORT COMMAND...: a server in the background, which listens when this returns.
begin() {
	local port=$1
	shift
	"$@" > "$scratch/server" 2>&1 &
	servers+=($!)
	for ((i = 0; i < 100; i++)); do
		listens "$port" && return
		sleep 0.05	# nobody says when another program listens
	done
	echo "nothing listens at port $port: $(tail -1 "$scratch/server")" >&2
	return 1
}

of_ab() { # PORT WORD...
	local port=$1
	shift
	"$@" ab -q -n "$COUNT" -c "$CLIENTS" "http://127.0.0.1:$port/" 2> /dev/null |
		awk '/^Failed requests/ && $3 { exit 1 } /^Requests per second/ { print $4 }'
}

of_redis() { # WORD...
	"$@" redis-benchmark -p $redis -t ping_mbulk -k 0 -n "$COUNT" -c "$CLIENTS" -q 2> /dev/null |
		tr '\r' '\n' | awk '/requests per second/ { rate = $2 } END { print rate }'
}

# The clients are processes of their own.
of_mariadb() { # WORD...
	local begun clients=() i
	begun=$(date +%s.%N)
	for ((i = 0; i < CLIENTS; i++)); do
		"$@" php "$scratch/query.php" $mariadb $((COUNT / CLIENTS)) > /dev/null &
		clients+=($!)
	done
	wait "${clients[@]}" && awk -v a="$begun" -v b="$(date +%s.%N)" -v n="$COUNT" 'BEGIN { print n / (b - a) }'
}

has() {
	command -v "$1" > /dev/null
}

# one NAME WORD...: all servers and clients with these words before them; a line of the file of each workload.
one() {
	local name=$1
	shift
	servers=()
	if has redis-server; then
		begin $redis "$@" redis-server --port $redis --bind 127.0.0.1 --save "" &&
			of_redis "$@" >> "$scratch/redis.$name"
	fi
	if has nginx && has ab; then
		begin $nginx "$@" nginx -c "$scratch/nginx.conf" &&
			of_ab $nginx "$@" >> "$scratch/nginx.$name"
	fi
	if has nginx && has ab; then
		begin $workers "$@" nginx -c "$scratch/workers.conf" &&
			of_ab $workers "$@" >> "$scratch/workers.$name"
	fi
	if has nginx && has ab && has haproxy; then
		begin $haproxy "$@" haproxy -db -f "$scratch/haproxy.cfg" &&
			of_ab $haproxy "$@" >> "$scratch/haproxy.$name"
	fi
	if has nginx && has ab && has node; then
		begin $node "$@" node "$scratch/server.js" &&
			of_ab $before_node "$@" >> "$scratch/node.$name"
	fi
	if has mariadbd && php -m 2> /dev/null | grep -q mysqli; then
		begin $mariadb "$@" mariadbd --no-defaults "${user[@]}" --datadir="$scratch/data" --port=$mariadb \
			--bind-address=127.0.0.1 --socket="$scratch/mariadb" --skip-grant-tables --skip-name-resolve &&
			of_mariadb "$@" >> "$scratch/mariadb.$name"
	fi
	kill "${servers[@]}"
	wait "${servers[@]}" 2> /dev/null
}

median() { # FILE
	sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

user=()
[ "$(id -u)" != 0 ] || user=(--user=root)
if has mariadb-install-db; then
	mariadb-install-db --no-defaults "${user[@]}" --datadir="$scratch/data" --auth-root-authentication-method=normal \
		> "$scratch/install" 2>&1 || tail -1 "$scratch/install" >&2
fi
for ((round = 0; round < ROUNDS; round++)); do
	one tcp env
	SHUNT_TUNE=born=off one off "$shunt" run
	SHUNT_TUNE=born=auto one auto "$shunt" run
done
for workload in redis nginx workers haproxy node mariadb; do
	[ -s "$scratch/$workload.auto" ] || continue
	tcp=$(median "$scratch/$workload.tcp")
	for name in tcp off auto; do
		rate=$(median "$scratch/$workload.$name")
		awk -v w=$workload -v n=$name -v r="$rate" -v t="$tcp" 'BEGIN { printf "%-8s %-5s %9.0f requests/s  %5.2f\n", w, n, r, r / t }'
	done
done
