#!/bin/bash
# SPDX-License-Identifier: MIT
# mosquitto: messages of all sizes to several subscribers, each level of service, retained messages, a session that comes back.
# shellcheck disable=SC2086,SC2317 # what is put before a command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
requires mosquitto mosquitto_pub mosquitto_sub
version=$(mosquitto -h | awk 'NR == 1 { print $3 }')

pub() {
	timeout $patience $client mosquitto_pub -h 127.0.0.1 -p 7001 "$@"
}

sub() {
	timeout $patience $client mosquitto_sub -h 127.0.0.1 -p 7001 "$@"
}

subscribers() {
	[ "$(grep -c 'Sending SUBACK' "$dir/mosquitto.out")" = "$1" ]
}

# 3000 lines to two subscribers, in order.
lines() { # QOS
	local one pids=() before
	before=$(grep -c 'Sending SUBACK' "$dir/mosquitto.out")
	for one in 1 2; do
		sub -q "$1" -t "lines/$1" -C 3000 > "$dir/lines.$one" &
		pids+=($!)
	done
	until_true subscribers $((before + 2)) || return
	seq 3000 | pub -q "$1" -t "lines/$1" -l || return
	for one in "${pids[@]}"; do wait "$one" || return; done
	cmp <(seq 3000) "$dir/lines.1" && cmp <(seq 3000) "$dir/lines.2"
}

large() {
	pub -r -q 1 -t large -f "$dir/large" && sub -t large -C 1 -N > "$dir/got" && cmp "$dir/got" "$dir/large"
}

# What was said while it was away.
session() {
	sub -i kept -c -q 1 -t session -E && pub -q 1 -t session -m "while away" && sub -i kept -c -q 1 -t session -C 1
}

drive() {
	head -c 3000000 /dev/urandom > "$dir/large"
	printf 'listener 7001 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\nlog_dest stderr\nlog_type all\n' > "$dir/conf"
	[ "$(id -u)" != 0 ] || echo "user root" >> "$dir/conf"
	start mosquitto $server mosquitto -c "$dir/conf"
	up 7001 || return
	try "a first message" pub -t first -m hello
	marks $pid
	try "in order, at most once" lines 0
	try "in order, at least once" lines 1
	try "in order, exactly once" lines 2
	try "3 MB, retained" large
	same "a session that comes back" session
	left $pid
	stop $pid
}

matrix drive
