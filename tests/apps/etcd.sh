#!/bin/bash
# SPDX-License-Identifier: MIT
# etcd: keys put and got by gRPC and by its JSON gateway, a watch, transactions, its own load.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires etcd etcdctl curl
version=$(etcd --version | awk 'NR == 1 { print $3 }')
export ETCDCTL_API=3

ctl() {
	timeout $patience $client etcdctl --endpoints=127.0.0.1:7001 "$@"
}

# Values of many sizes, in one process: its transactions are lines of its input, one to a blank line.
put_and_get() {
	local i
	for i in 1 100 4000 60000 1000000; do
		head -c $i /dev/zero | tr '\0' x | ctl put "key$i" > /dev/null || return
	done
	ctl get --prefix key | sha256sum
}

transactions() {
	printf 'mod("key1") > "0"\n\nput key2 two\nget key1\n\nput key2 none\n\n' | ctl txn --interactive=false
}

watched() {
	timeout 60 $client etcdctl --endpoints=127.0.0.1:7001 watch seen --rev=1 > "$dir/watched" & local watcher=$! i
	for i in 1 2 3 4 5; do ctl put seen $i > /dev/null || return; done
	until_true grep -qx 5 "$dir/watched"
	kill $watcher
	cat "$dir/watched"
}

gateway() { # NUMBER: requests over one connection
	local urls=() i
	for ((i = 0; i < $1; i++)); do urls+=(http://127.0.0.1:7001/v3/kv/range); done
	fetch -X POST -d '{"key": "a2V5MQ=="}' "${urls[@]}" | grep -o '"value":"[^"]*"' | sort | uniq -c
}

drive() {
	start etcd $server etcd --data-dir "$dir/data" --listen-client-urls http://127.0.0.1:7001 --advertise-client-urls \
		http://127.0.0.1:7001 --listen-peer-urls http://127.0.0.1:7002 --initial-advertise-peer-urls \
		http://127.0.0.1:7002 --initial-cluster default=http://127.0.0.1:7002 --log-level error
	up 7001 || return
	try "it is healthy" until_true ctl endpoint health
	same "values from 1 byte to 1 MB" put_and_get
	same "a transaction" transactions
	same "a watch" watched
	same "2,000 requests to the gateway" gateway 2000
	stop $pid
}

matrix drive
