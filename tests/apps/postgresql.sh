#!/bin/bash
# SPDX-License-Identifier: MIT
# PostgreSQL: pgbench, COPY, LISTEN and NOTIFY, TLS, 50 backends, a killed query.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
PATH=$PATH:$(find /usr/lib/postgresql -maxdepth 2 -name bin 2> /dev/null | sort -V | tail -1)
requires postgres psql pgbench initdb openssl
version=$(postgres --version | awk '{ print $3 }')
why="short connections of children: each is on TCP until its claim has been sent on to who has it"

# It does not run as root; and root's clients do not ask another user's rendezvous.
[ "$(id -u)" != 0 ] || as="setpriv --reuid=postgres --regid=postgres --clear-groups"
as=${as:-}
export HOME=$work
connection="host=127.0.0.1 port=7001 dbname=postgres user=postgres"

sql() {
	timeout $patience $as $client psql -X -q -t -A -d "$connection" "$@"
}

basics() {
	sql -c 'create table t (i int primary key, s text)' &&
		sql -c "insert into t select i, repeat(md5(i::text), 20) from generate_series(1, 20000) i" &&
		sql -c "select count(*), sum(length(s)), md5(string_agg(s, '' order by i)) from t" &&
		sql -c "begin" -c "delete from t where i < 100" -c "rollback" -c "select count(*) from t" &&
		! sql -c "select 1 / 0" 2>&1
}

# 13 MB out, in again, and out again: the same.
copies() {
	sql -c "copy t to stdout" > "$dir/out1" && sql -c "create table u (like t)" &&
		sql -c "copy u from stdin" < "$dir/out1" && sql -c "copy (select * from u order by i) to stdout" > "$dir/out2" &&
		[ "$(wc -l < "$dir/out1")" = 20000 ] && cmp <(sort "$dir/out1") <(sort "$dir/out2")
}

listens() {
	[ "$(sql -c "select count(*) from pg_stat_activity where query like 'listen%'")" -gt 0 ]
}

# A waiting client is told of what others say, in order.
notify() {
	local i
	mkfifo "$dir/fifo"
	sql < "$dir/fifo" > "$dir/heard" 2>&1 &
	exec {to}> "$dir/fifo"
	echo "listen news;" >&"$to"
	until_true listens || return
	for i in 1 2 3; do sql -c "notify news, 'item $i'" || return; done
	echo "select 'end';" >&"$to"
	exec {to}>&-
	wait $!
	rm "$dir/fifo"
	grep -c 'item' "$dir/heard"
	grep -o 'payload "[^"]*"' "$dir/heard"
}

bench_tables() {
	timeout $patience $as $client pgbench -n -i -s 1 "$connection"
}

bench() {
	timeout $patience $as $client pgbench -n "$@" "$connection" > "$dir/bench" 2>&1 &&
		grep -q 'number of failed transactions: 0 ' "$dir/bench" && ! grep -i 'abort\|error' "$dir/bench" && return
	cat "$dir/bench"
	return 1
}

balanced() {
	[ "$(sql -c 'select (select sum(abalance) from pgbench_accounts) = (select sum(tbalance) from pgbench_tellers)
		and (select sum(bbalance) from pgbench_branches) = (select sum(delta) from pgbench_history)')" = t ]
}

tls() {
	connection="$connection sslmode=require" sql -c "select version from pg_stat_ssl where pid = pg_backend_pid()" \
		-c "select md5(string_agg(s, '' order by i)) from t"
}

sleeps() {
	sql -c "select pid from pg_stat_activity where query like 'select pg_sleep%'" | grep .
}

alone() {
	[ "$(sql -c "select count(*) from pg_stat_activity where backend_type = 'client backend'")" = 1 ]
}

start_postgres() {
	start postgres $as $server postgres -D "$data" -c port=7001 -c listen_addresses=127.0.0.1 -c fsync=off \
		-c unix_socket_directories= -c max_connections=80 -c ssl=on -c ssl_cert_file="$dir/cert" -c ssl_key_file="$dir/key"
	up 7001 && until_true sql -c 'select 1'
}

# Every fifth time it is started anew under load, which is told so, and loses nothing that was committed.
round() {
	local load
	bench -c 50 -j 2 -T 4 & load=$!
	until_true busy && sql -c 'select pg_reload_conf()' && wait $load && balanced && bench -S -M prepared -c 8 -j 2 -T 1 &&
		bench -C -c 4 -t 20 && until_true alone && no_deaths || return
	[ $(($1 % 5)) = 0 ] || return 0
	left $pid
	bench -c 50 -j 2 -T 30 & load=$!
	until_true busy && kill -INT $pid && until_true gone $pid || return
	wait $load && echo "who was cut off has not heard of it" && return 1
	start_postgres && balanced || return
	marks $pid
	return 0
}

busy() {
	[ "$(sql -c "select count(*) from pg_stat_activity where backend_type = 'client backend'")" -gt 50 ]
}

drive() {
	local data=$dir/data
	mkdir -p "$data"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	[ -z "$as" ] || chown -R postgres "$dir"
	$as initdb -D "$data" -A trust -N -U postgres > "$dir/initdb" 2>&1 || { not_ok "$configuration: initdb"; said "$dir/initdb"; return; }
	chmod 600 "$dir/key"
	start_postgres || return
	if [ "${ENDURE:-}" ]; then
		marks $pid
		try "pgbench: its tables" bench_tables
		endure round
		stop $pid INT
		return
	fi
	marks $pid
	same "SQL" basics
	try "COPY both ways" copies
	same "LISTEN and NOTIFY" notify
	same "TLS" tls
	same "a backend is ended" cut_off 'select pg_sleep(50)' 'select pg_terminate_backend(%s)' 'terminating connection'
	try "pgbench: its tables" bench_tables
	try "pgbench: 4 clients" bench -c 4 -j 2 -t 200
	try "pgbench: 50 clients" bench -c 50 -j 2 -t 20
	try "the accounts balance" balanced
	try "pgbench: reading, prepared" bench -S -M prepared -c 8 -j 2 -T 2
	try "no backend is left" until_true alone
	left $pid
	stop $pid INT
	try "no backend has died" no_deaths
}

no_deaths() {
	! grep 'terminated by signal\|PANIC' "$dir/postgres.out"
}

matrix drive
