#!/bin/bash
# SPDX-License-Identifier: MIT
# MariaDB: SQL, large results, LOAD DATA over the connection, many threads at once, TLS, a killed query.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires mariadbd mariadb mariadb-install-db mariadb-slap openssl
version=$(mariadbd --version | sed 's/.*Ver \([^ ]*\).*/\1/')

sql() {
	timeout $patience $client mariadb --no-defaults --protocol=tcp -h 127.0.0.1 -P 7001 -u tester --password=secret -D test -N -B "$@"
}

basics() {
	sql -e 'create or replace table test.t (i int primary key, s text) engine=innodb' &&
		sql -e 'insert into test.t select seq, repeat(md5(seq), 20) from seq_1_to_20000' &&
		sql -e 'select count(*), sum(length(s)), md5(sum(crc32(s))) from test.t' &&
		sql -e 'begin; delete from test.t where i < 100; rollback; select count(*) from test.t' &&
		! sql -e 'select nosuch' 2>&1
}

# 13 MB out, in again by LOAD DATA LOCAL, and out again: the same.
copies() {
	sql --quick -e 'select * from test.t order by i' > "$dir/out1" && sql -e 'create or replace table test.u like test.t' &&
		sql --local-infile=1 -e "load data local infile '$dir/out1' into table test.u" &&
		sql -e 'select * from test.u order by i' > "$dir/out2" && [ "$(wc -l < "$dir/out1")" = 20000 ] && cmp "$dir/out1" "$dir/out2"
}

slap() {
	timeout $patience $client mariadb-slap --no-defaults --protocol=tcp -h 127.0.0.1 -P 7001 -u tester --password=secret \
		--auto-generate-sql --auto-generate-sql-load-type=mixed --create-schema=slap "$@"
}

tls() {
	sql --ssl --ssl-ca="$dir/cert" -e "show status like 'Ssl_version'; select md5(sum(crc32(s))) from test.t"
}

sleeps() {
	sql -e "select id from information_schema.processlist where info like 'select sleep%'" | grep .
}

drive() {
	local user=()
	[ "$(id -u)" = 0 ] && user=(--user=root)
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout "$dir/key" -out "$dir/cert" 2> /dev/null
	mariadb-install-db --no-defaults "${user[@]}" --datadir="$dir/data" --auth-root-authentication-method=normal \
		--skip-test-db > "$dir/install" 2>&1 || { not_ok "$configuration: mariadb-install-db"; said "$dir/install"; return; }
	printf '%s;\n' "create database test" "create user tester@'%' identified by 'secret'" "grant all on *.* to tester@'%'" > "$dir/init.sql"
	start mariadb $server mariadbd --no-defaults "${user[@]}" --datadir="$dir/data" --port=7001 --bind-address=127.0.0.1 \
		--socket="$dir/socket" --skip-name-resolve --local-infile=1 --init-file="$dir/init.sql" --ssl-cert="$dir/cert" --ssl-key="$dir/key" \
		--thread-cache-size=0 --innodb-flush-log-at-trx-commit=0
	up 7001 || return
	try "a first client" until_true sql -e 'select 1'
	marks $pid
	same "SQL" basics
	try "LOAD DATA both ways" copies
	same "TLS" tls
	same "a connection is killed" cut_off 'select sleep(50)' 'kill %s' 'ERROR [0-9]*'
	try "20 threads" slap --concurrency=20 --number-of-queries=2000
	left $pid
	stop $pid
}

matrix drive
