# SPDX-License-Identifier: MIT
# limit: 7200
# Connections from another host whose process is not the owner of the rendezvous: those of PostgreSQL, nginx, Apache
# prefork, a server that forks for each connection, one with inherited listeners, one with SO_REUSEPORT. The link carries
# nearly all of their bytes, and the device's counters agree. A worker is killed, nginx is reloaded, the owner of the
# rendezvous is killed: what other workers have goes on.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
crew=${BASH_SOURCE%/*}/crew.py
many=8		# connections
enough=8000000	# bytes that the link carries before a load is ended
logs=/tmp/lab/workers	# what both say stays there
mkdir -p $logs
ulimit -l unlimited	# some workers have users of their own
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=info
need python3 jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# --- servers, on machine one ---

crew_serves() {
	$shunt_run python3 "$crew" $load "$mine" $port >$logs/$load 2>$logs/$load.err
}

nginx_serves() {
	mkdir -p "$work/www"
	head -c 20000 /dev/urandom >"$work/www/file"
	cat >"$work/nginx.conf" <<-END
		user root;
		worker_processes 4;
		daemon off;
		pid $work/nginx.pid;
		error_log $logs/nginx.errors;
		events { worker_connections 512; }
		http {
			access_log off;
			client_body_temp_path $work/body;
			proxy_temp_path $work/proxy;
			fastcgi_temp_path $work/fastcgi;
			uwsgi_temp_path $work/uwsgi;
			scgi_temp_path $work/scgi;
			keepalive_requests 100000000;
			server { listen $mine:$port; root $work/www; }
		}
	END
	exec $shunt_run nginx -c "$work/nginx.conf" >/dev/null 2>$logs/nginx.err
}

apache_serves() {
	local modules=/usr/lib/apache2/modules
	mkdir -p "$work/www"
	head -c 20000 /dev/urandom >"$work/www/file"
	chmod 755 "$work" "$work/www"
	cat >"$work/apache.conf" <<-END
		ServerName one
		Listen $mine:$port
		DefaultRuntimeDir $work
		PidFile $work/apache.pid
		ErrorLog $logs/apache.errors
		DocumentRoot $work/www
		User www-data
		Group www-data
		LoadModule mpm_prefork_module $modules/mod_mpm_prefork.so
		LoadModule authz_core_module $modules/mod_authz_core.so
		StartServers 4
		MinSpareServers 4
		MaxRequestWorkers 8
		MaxKeepAliveRequests 0
		KeepAlive On
		KeepAliveTimeout 300
	END
	exec $shunt_run setsid apache2 -f "$work/apache.conf" -DFOREGROUND >/dev/null 2>$logs/apache.err
}

as_postgres() {
	setpriv --reuid postgres --regid postgres --init-groups "$@"
}

postgresql_makes() {
	mkdir -p "$work/data" && chmod 755 "$work" && chown postgres "$work/data" &&
		as_postgres initdb -D "$work/data" -A trust -N -U postgres >$logs/initdb 2>&1 &&
		echo "host all all all trust" >>"$work/data/pg_hba.conf"
}

postgresql_serves() {
	as_postgres $shunt_run postgres -D "$work/data" -h "$mine" -p $port -c unix_socket_directories= -c fsync=off \
		>/dev/null 2>$logs/postgresql.err
}

# --- clients, on machine two ---

crew_asks() {
	exec $shunt_run python3 "$crew" asks "$theirs" $port $many
}

nginx_asks() {
	exec $shunt_run wrk -t 1 -c $many -d 100000 --timeout 20 "http://$theirs:$port/file"
}

apache_asks() {
	exec $shunt_run wrk -t 1 -c 4 -d 100000 --timeout 20 "http://$theirs:$port/file"
}

postgresql_asks() {
	echo "select repeat('x', 20000)" >"$work/question.sql"
	exec $shunt_run pgbench -n -f "$work/question.sql" -h "$theirs" -p $port -U postgres -c 20 -T 100000 postgres
}

# --- what is seen of them ---

moved() {
	number=$("$shunt" stat --json "$client" 2>/dev/null | jq '.[0].totals | .tx.link + .rx.link')
	[[ $number =~ ^[0-9]+$ ]]
}

has_moved() { # AT-LEAST
	moved && [ "$number" -ge $1 ]
}

all_linked() { # COUNT: both directions
	local count
	count=$("$shunt" stat --json "$client" 2>/dev/null |
		jq '[.[0].streams[] | select(.state == "linked" and .tx.track == "link" and .rx.track == "link")] | length')
	[ "${count:-0}" -ge $1 ]
}

# The client's bytes so far: of both directions by TCP and by the link, and those that it has sent by the link.
mark() {
	marked=$("$shunt" stat --json "$client" 2>/dev/null |
		jq -r '.[0].totals | "\(.tx.tcp + .rx.tcp) \(.tx.link + .rx.link) \(.tx.link)"')
	[[ $marked =~ ^[0-9]+\ [0-9]+\ [0-9]+$ ]]
}

links() {
	"$shunt" stat --json "$client" 2>/dev/null | jq '.[0].links | length'
}

has_links() { # AT-LEAST
	local count
	count=$(links)
	[ "${count:-0}" -ge $1 ]
}

has_grown() { # FROM BY
	within has_moved $(($1 + $2))
}

grows() { # BY
	within moved && has_grown "$number" $1
}

# Of the bytes since all connections were on links: until then they go by TCP.
share() {
	local tcp linked
	tcp=$((last[0] - first[0])) linked=$((last[1] - first[1]))
	echo "# $load: $linked bytes by $count links, $tcp by TCP; before, ${first[1]} and ${first[0]}"
	[ $linked -gt $enough ] && [ $((100 * linked)) -ge $((95 * (linked + tcp))) ]
}

packets_agree() { # BEFORE
	[ $((($(hw_counter sent_pkts) - $1) * 1024)) -ge "${last[2]}" ]
}

begin() { # LOAD SERVE ASK
	load=$1 port=$((port + 1))	# connections of the last one may linger
	if [ "$lab_self" = one ]; then
		[ $load != postgresql ] || check "$load: its data" postgresql_makes
		"$2" &
		server=$!
		children+=("$server")
		within somebody_listens $port || echo "nobody listens" >&2
	fi
	meet "$load listens"
	before=$(hw_counter sent_pkts)
	[ "$lab_self" = one ] || {
		"$3" >$logs/$load.asks 2>$logs/$load.asks.err &
		client=$!
		children+=("$client")
	}
}

judge() {
	if [ "$lab_self" = two ]; then
		count=$(links)
		within mark
		read -ra last <<<"$marked"
		check "$load: at least 95 % of the bytes by the link" share
		check "$load: the device has sent packets enough for them" packets_agree "$before"
	fi
	meet "$load was judged"
}

# The processes of the server are children of the one that was started.
end() {
	[ "$lab_self" = one ] || { kill -"${stop_client:-TERM}" "$client"; wait "$client"; }
	meet "$load is over"
	[ "$lab_self" = two ] || { pkill -P "$server"; kill "$server"; wait "$server"; } 2>/dev/null
	meet "$load has ended"
}

# --- the tests ---

one_load() { # LOAD SERVE ASK CONNECTIONS LINKS
	begin "$1" "$2" "$3"
	if [ "$lab_self" = two ]; then
		check "$1: every connection is on a link" within all_linked $4
		check "$1: to $5 processes at least" within has_links $5
		within mark
		read -ra first <<<"$marked"
		check "$1: the links carry it" has_grown "${first[1]}" $((2 * enough))
	fi
	meet "$1 runs"
}

is_whole() { # COUNT
	grep -q "^whole $1 " $logs/$load.asks || ! cat $logs/$load.asks >&2
}

# All that broke was of this process.
others_are_whole() { # PID
	cat $logs/$load.asks >&2
	! grep "^wrong\|^broken" $logs/$load.asks | grep -v " $1$" && grep -q "^whole [1-9]" $logs/$load.asks
}

# One that has connections: machine two says which.
kill_worker() { # WHICH, of those that have been told
	local pid
	if [ "$lab_self" = one ]; then
		pid=$(grep ^worker $logs/$load | sed -n "$1p" | cut -d ' ' -f 2)
		kill -9 "$pid"
		tell "killed $pid"
	else
		hear
		killed=${heard#killed }
		check "$load: the others go on" grows $enough
	fi
	meet "$load: it was killed"
}

# A new client is linked by the process that owns the rendezvous now.
again() {
	local client
	[ "$lab_self" = one ] || {
		crew_asks >$logs/$load.again 2>$logs/$load.again.err &
		client=$!
		children+=("$client")
		check "$load: a new client is linked, too" within all_linked $many
		kill "$client"
		wait "$client"
		check "$load: and has lost nothing" grep -q "^whole $many " $logs/$load.again
	}
	meet "$load: again"
}

one_load fork crew_serves crew_asks $many $many
judge
end
[ "$lab_self" = one ] || check "fork: nothing is lost" is_whole $many

one_load workers crew_serves crew_asks $many 2
kill_worker 2
judge
end
[ "$lab_self" = one ] || check "workers: only what the killed one had has ended" others_are_whole "$killed"

one_load reuseport crew_serves crew_asks $many 2
kill_worker 1
[ "$lab_self" = two ] || check "reuseport: another process owns the rendezvous now" within grep -q "took over the rendezvous" $logs/reuseport.err
meet "there is another owner"
again
judge
end
[ "$lab_self" = one ] || check "reuseport: only what the killed one had has ended" others_are_whole "$killed"

# One connection of wrk may be reset with the worker that has it, as without Shunt.
wrk_is_content() {
	grep -q "requests in" $logs/$load.asks && ! grep "Non-2xx" $logs/$load.asks
}

if command -v nginx >/dev/null && command -v wrk >/dev/null; then
	stop_client=INT
	one_load nginx nginx_serves nginx_asks $many 2
	judge
	[ "$lab_self" = two ] || kill -HUP "$server"
	meet "nginx was told to begin anew"
	if [ "$lab_self" = two ]; then
		check "nginx: it goes on behind a reload" grows $enough
		check "nginx: and every connection is on a link again" within all_linked $many
	fi
	end
	[ "$lab_self" = one ] || check "nginx: no answer was an error" wrk_is_content
fi
if command -v apache2 >/dev/null && command -v wrk >/dev/null; then
	stop_client=INT
	one_load apache apache_serves apache_asks 4 2
	judge
	end
	[ "$lab_self" = one ] || check "apache: no answer was an error" wrk_is_content
fi
if command -v postgres >/dev/null && command -v pgbench >/dev/null; then
	stop_client=INT
	one_load postgresql postgresql_serves postgresql_asks 20 20
	judge
	end
fi
plan
