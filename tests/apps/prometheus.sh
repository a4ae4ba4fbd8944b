#!/bin/bash
# SPDX-License-Identifier: MIT
# prometheus: it scrapes itself and a second one, and answers queries and federation.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires prometheus curl
version=$(prometheus --version 2>&1 | awk 'NR == 1 { print $3 }')

run_one() { # NAME PORT TARGETS
	mkdir -p "$dir/$1"
	printf 'global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n  - { job_name: all, static_configs: [{ targets: [%s] }] }\n' "$3" > "$dir/$1/conf"
	start $1 $server prometheus --config.file="$dir/$1/conf" --storage.tsdb.path="$dir/$1/data" --web.listen-address=127.0.0.1:$2 --log.level=error
	up $2
}

query() { # PORT EXPRESSION
	fetch "http://127.0.0.1:$1/api/v1/query" --data-urlencode "query=$2"
}

scraped() {
	query 7001 'min(min_over_time(up[3s])) * count(up)' | grep -q '"2"\]'
}

queries() { # NUMBER: over one connection
	local urls=() i
	for ((i = 0; i < $1; i++)); do urls+=("http://127.0.0.1:7001/api/v1/query?query=vector($i)"); done
	fetch "${urls[@]}" | grep -o '"[0-9]*"\]' | sort | uniq -c | awk '{ n += $1 } END { print n }'
}

drive() {
	local first
	run_one second 7002 "'127.0.0.1:7002'" || return
	first=$pid
	run_one first 7001 "'127.0.0.1:7001', '127.0.0.1:7002'" || return
	try "both are scraped" until_true scraped
	same "2,000 queries" queries 2000
	try "federation" fetch -G -o "$dir/federation" http://127.0.0.1:7001/federate --data-urlencode 'match[]={job="all"}'
	try "it has the metrics of both" [ "$(grep -c '^go_goroutines' "$dir/federation")" = 2 ]
	stop $pid
	stop $first
}

matrix drive
