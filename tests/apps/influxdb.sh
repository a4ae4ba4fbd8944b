#!/bin/bash
# SPDX-License-Identifier: MIT
# influxdb: points written and queried by HTTP.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires influxd curl
version=$(influxd version | awk '{ print substr($2, 2) }')

write() { # FROM: 5,000 points in each of 20 requests over one connection
	local urls=() i
	for ((i = 0; i < 20; i++)); do
		seq $((i * 5000 + 1)) $((i * 5000 + 5000)) | awk '{ print "load,host=h" $1 % 7 " value=" $1 " " $1 "000000" }' > "$dir/points.$i"
		urls+=(--next -sS --fail --noproxy '*' --data-binary "@$dir/points.$i" http://127.0.0.1:7001/write?db=some)
	done
	timeout $patience $client curl "${urls[@]:1}"
}

ask() { # QUERY
	fetch -G http://127.0.0.1:7001/query --data-urlencode db=some --data-urlencode "q=$1"
}

all_points() {
	ask 'select value from load' | sha256sum
}

drive() {
	mkdir -p "$dir/influx"
	cat > "$dir/conf" <<-END
		reporting-disabled = true
		bind-address = "127.0.0.1:7002"
		[meta]
		dir = "$dir/influx/meta"
		[data]
		dir = "$dir/influx/data"
		wal-dir = "$dir/influx/wal"
		[http]
		bind-address = "127.0.0.1:7001"
		log-enabled = false
		max-row-limit = 0
		[logging]
		level = "error"
		suppress-logo = true
	END
	start influxdb $server influxd -config "$dir/conf"
	up 7001 || return
	same "a database" fetch -X POST http://127.0.0.1:7001/query --data-urlencode 'q=create database some'
	try "100,000 points" write
	same "their sums" ask 'select count(value), sum(value) from load group by host'
	same "all of them" all_points
	stop $pid
}

matrix drive
