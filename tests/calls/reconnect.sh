#!/bin/bash
# SPDX-License-Identifier: MIT
# Queue pairs of a checksumming pair die under load; its streams go over to TCP and come back to the link. TAP.
#
#	ROUNDS=500 reconnect.sh	so many deaths for each way; default 20
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-20}
need "$transfer" jq
need_shunt
export TEST_LIMIT=${TEST_LIMIT:-600}	# a run is as long as it takes; what hangs ends all the same
export SHUNT_TUNE=${SHUNT_TUNE-},retain=always,return_ms=5,return_max_ms=20 SHUNT_LOG=${SHUNT_LOG:-error}

total() {
	"$builddir/tools/shunt" stat --json "$1" 2> /dev/null | jq ".[0].$2 // 0"
}

# By the link, of all streams: it goes on growing.
grows() {
	[ "$(total $1 totals.tx.link)" -gt $(($2 + 100000)) ]
}

# One death: the queue pairs of one end, while bytes move. True: bytes move by a link again.
death() {
	local before made
	made=$(total $server counters.comebacks)
	adm $1 failover || return 1
	within eval "[ \"\$(total $server counters.comebacks)\" != $made ]" || return 1
	before=$(total $server totals.tx.link)
	within grows $server "$before"
} 2> /dev/null

torture() {
	local i ends
	start_pair -n 1000G "$@"
	ends=("$client" "$server")
	within grows $server 0 || return 1
	for ((i = 0; i < rounds; i++)); do
		death "${ends[i % 2]}" || { echo "# round $i"; return 1; }
	done
	echo "# $(total $client counters.failovers) failovers, $(total $client counters.comebacks) new links, $(total $client counters.streams_returned) streams returned"
	[ "$(total $client counters.failovers)" -ge "$rounds" ] && [ "$(total $server counters.comebacks)" -ge "$rounds" ] &&
		[ "$(total $client counters.streams_returned)" -ge "$rounds" ]
}

# The same until the end: every byte is in its place.
to_the_end() {
	local seen=0 i=0
	while [ $seen -lt "$rounds" ] && [ $i -lt 40 ]; do
		i=$((i + 1))
		start_pair -s $i "$@"
		while adm $client failover || [ -d /proc/$client ]; do
			sleep 0.0$((RANDOM % 10))
		done 2> /dev/null
		end_pair || return 1
		seen=$((seen + $(counter failovers "$work"/stat.*)))
	done
	echo "# $seen failovers in $i runs; in the last one $(counter streams_returned "$work"/stat.*) streams returned"
	[ $seen -ge "$rounds" ]
}

ways() {
	check "$1: $rounds times the link's share grows again" torture $2
	leave_pair
	check "$1: every byte in its place" to_the_end $2 -n $3
}

ways "one stream, blocking" "-m blocking" ${BYTES:-300M}
ways "20 streams, edges" "-m epoll-et -c 20 --chunk-max 20000" ${BYTES:-10M}
SHUNT_TUNE=${SHUNT_TUNE-},proof=nonce ways "nonces, one-shots" "-m epoll-oneshot -c 3" ${BYTES:-50M}
export SHUNT_TUNE=${SHUNT_TUNE-},return_ms=0
check "return_ms=0: they do not" eval "! WITHIN=3 torture -m poll"
leave_pair

SHUNT_TUNE+=,retain=auto
start_pair -n 1000G
within grows $server 0
check "without retain=always an operator may not" eval "! adm $client failover 2> /dev/null"
check "and the link carries on" within grows $server "$(total $server totals.tx.link)"
leave_pair
plan
