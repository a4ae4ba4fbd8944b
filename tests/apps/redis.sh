#!/bin/bash
# SPDX-License-Identifier: MIT
# Redis: data types, MULTI, Lua, pub/sub, blocking pops, replication, BGSAVE, I/O threads, load.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires redis-server redis-cli redis-benchmark
version=$(redis-server --version | sed 's/.* v=\([^ ]*\).*/\1/')

cli() {
	timeout $patience $client redis-cli -p 7001 "$@"
}

replica() {
	timeout $patience $client redis-cli -p 7002 "$@"
}

# prints WANTED COMMAND...
prints() {
	local wanted=$1 got
	shift
	got=$("$@")
	[ "$got" = "$wanted" ] || { echo "$got, not $wanted"; return 1; }
}

commands() {
	cli set a 1
	cli incrby a 41
	cli lpush l a b c
	cli lrange l 0 -1
	cli hset h f v
	cli eval 'for i = 1, 100 do redis.call("zadd", KEYS[1], i, "m" .. i) end return redis.call("zcard", KEYS[1])' 1 z
	cli -x setrange big 1000000 < /dev/null
	cli strlen big
	printf 'multi\nincr a\nget a\nexec\n' | cli
	printf 'multi\nincr a\ndiscard\nget a\nnosuch\n' | cli
}

# A megabyte there and back.
large_value() {
	head -c 5000000 /dev/urandom | base64 -w 0 > "$dir/value"
	cli -x set value < "$dir/value" && cli get value | head -c -1 | cmp - "$dir/value"
}

subscribed() {
	[ "$(cli pubsub numsub news | tail -1)" = 2 ]
}

pubsub() {
	local i pids=()
	for i in 1 2; do
		timeout $patience $client redis-cli -p 7001 subscribe news > "$dir/news.$i" &
		pids+=($!)
	done
	until_true subscribed || return
	for i in $(seq 200); do echo "publish news item-$i"; done | cli > "$dir/published"
	until_true grep -q item-200 "$dir/news.1" && until_true grep -q item-200 "$dir/news.2"
	kill "${pids[@]}"
	wait "${pids[@]}" 2> /dev/null
	[ "$(grep -c '^2$' "$dir/published")" = 200 ] && [ "$(grep -c '^item' "$dir/news.1")" = 200 ] &&
		[ "$(grep -c '^item' "$dir/news.2")" = 200 ]
}

blocked() {
	cli info clients | grep -q "blocked_clients:$1"
}

blocking_pops() {
	local i pids=() pid
	for i in 1 2 3 4; do
		timeout $patience $client redis-cli -p 7001 blpop queue 30 > "$dir/pop.$i" &
		pids+=($!)
	done
	until_true blocked 4 || return
	cli rpush queue one two three four
	for pid in "${pids[@]}"; do wait "$pid" || return; done
	cat "$dir"/pop.? | grep -v queue | sort
	cli blpop queue 0.2
	cli llen queue
}

saved() {
	cli info persistence | grep -q 'rdb_bgsave_in_progress:0'
}

# Clients go on while a child saves.
bgsave() {
	cli debug populate 200000 key 64 && cli bgsave || return
	bench -n 20000 -t set,get || return
	until_true saved && cli info persistence | grep -q 'rdb_last_bgsave_status:ok' && cli save
}

linked_replica() {
	replica info replication | grep -q 'master_link_status:up'
}

caught_up() {
	[ "$(cli info replication | tr -d '\r' | sed -n 's/^master_repl_offset://p')" = \
	  "$(replica info replication | tr -d '\r' | sed -n 's/^slave_repl_offset://p')" ]
}

# The whole data set to a replica, and what is written then.
replication() {
	until_true linked_replica || return
	bench -n "${1:-20000}" -r 1000 -t set,lpush,incr || return
	until_true caught_up && prints "$(cli dbsize)" replica dbsize &&
		prints "$(cli debug digest)" replica debug digest
}

# The link between the two is cut, and comes back.
partial_sync() {
	cli client kill type replica && cli set after cut && until_true linked_replica && until_true caught_up &&
		prints "$(cli debug digest)" replica debug digest
}

bench() {
	timeout $patience $client redis-benchmark -p 7001 -q "$@" > "$dir/bench" 2>&1 ||
		{ cat "$dir/bench"; return 1; }
	! grep -i error "$dir/bench"
}

# --- for long: I/O threads, a child that saves, a replica that comes and goes; now and then all of it anew ---

start_all() {
	start replica $server redis-server --port 7002 --dir "$dir/2" --save '' --replicaof 127.0.0.1 7001 \
		--enable-debug-command yes
	slave=$pid
	start master $server redis-server --port 7001 --dir "$dir/1" --save '' --io-threads 4 --io-threads-do-reads yes \
		--enable-debug-command yes --repl-diskless-sync-delay 0
	up 7001
}

# What is written while it saves is there afterwards.
restart() {
	local before after
	before=$(cli debug digest)
	stop $slave
	left $pid
	cli shutdown save
	until_true gone $pid && start_all || return
	after=$(until_true cli ping && cli debug digest)
	marks $pid
	[ "$before" = "$after" ] || { echo "$before before, $after after"; return 1; }
}

# Few commands: redis's I/O threads spin, and share their cores with the rest.
round() {
	bench -n 3000 -c 50 -P 4 -d 500 -r 1000 -t set,get,lpush,lpop,incr & load=$!
	until_true saved && cli bgsave && large_value && wait $load && until_true saved &&
		cli info persistence | grep -q 'rdb_last_bgsave_status:ok' && replication 2000 && partial_sync || return
	[ $(($1 % 5)) != 0 ] || cli debug reload || return
	[ $(($1 % 10)) = 0 ] || return 0
	restart
}

drive() {
	local master slave load
	mkdir -p "$dir/1" "$dir/2" "$dir/3"
	if [ "${ENDURE:-}" ]; then
		start_all || return
		marks $pid
		endure round
		stop $slave
		left $pid
		stop $pid
		return
	fi
	start master $server redis-server --port 7001 --dir "$dir/1" --save '' \
		--enable-debug-command yes --repl-diskless-sync-delay 0
	master=$pid
	up 7001 || return
	try "a first client" cli ping
	marks $master
	same "commands, MULTI, Lua, errors" commands
	try "a value of 5 MB" large_value
	try "pub/sub, two subscribers" pubsub
	same "blocking pops" blocking_pops
	try "50 clients" bench -n 30000 -t set,get,lpush,lpop,mset
	try "50 clients, pipelines of 16" bench -n 100000 -P 16 -t set,get
	try "300 clients" bench -n 10000 -c 300 -t set,get
	try "BGSAVE under load" bgsave
	left $master
	start replica $server redis-server --port 7002 --dir "$dir/2" --save '' --replicaof 127.0.0.1 7001 \
		--enable-debug-command yes
	slave=$pid
	up 7002 || return
	try "replication" replication
	try "a replica that was cut off" partial_sync
	stop $slave
	left $master
	stop $master
	start threads $server redis-server --port 7001 --dir "$dir/3" --save "" --io-threads 2 --io-threads-do-reads yes
	up 7001 || return
	try "I/O threads" bench -n 20000 -c 20 -P 4 -d 2000 -t set,get
	stop $pid
}

matrix drive
