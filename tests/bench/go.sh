#!/bin/bash
# SPDX-License-Identifier: MIT
# Go: round trips of 64 bytes on 1, 16 and 64 connections, and net/http with wrk where that is installed. TCP and Shunt at
# both ends in turns, medians of the rounds.
#
#	ROUNDS=5 SECONDS_EACH=2 go.sh
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

rounds=${ROUNDS:-5}
each=${SECONDS_EACH:-2}
need go gcc
need_shunt
program=$work/program
HOME=$work GOCACHE=${GOCACHE:-$work/cache} GOFLAGS=-mod=mod go build -o "$program" "$here/go/main.go" || exit 99

# measure WRAP COMMAND...: PORT and WEB in the command are the server's.
measure() {
	local wrap=$1 port web words
	shift
	start_telling $wrap "$program" server
	read -r port web <<< "$server_port"
	words=$*
	words=${words//PORT/$port}
	timeout 120 $wrap ${words//WEB/$web}
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
	exec {in}<&-
}

requests() { # WRAP CONNECTIONS: of 512 bytes
	measure "$1" wrk -t 1 -c "$2" -d "$each" http://127.0.0.1:WEB/512 | awk '/^Requests\/sec/ { print $2 }'
}

names="pings1 pings16 pings64"
! command -v wrk > /dev/null || names="$names http1 http16"
for ((round = 1; round <= rounds; round++)); do
	for who in tcp shunt; do
		wrap=
		[ $who = tcp ] || wrap=$shunt_run
		echo "round $round of $rounds: $who" >&2
		for name in $names; do
			case $name in
			pings*) record $name $who "$(measure "$wrap" "$program" pings 127.0.0.1:PORT "${name#pings}" "$each")" ;;
			http*) record $name $who "$(requests "$wrap" "${name#http}")" ;;
			esac
		done
	done
done

printf '%-9s %12s %12s %9s\n' workload tcp shunt times
for name in $names; do
	t=$(get_median $name tcp) s=$(get_median $name shunt)
	printf '%-9s %12s %12s %9s\n' $name "$t" "$s" "$(ratio "$s" "$t")"
done
echo "round trips or requests a second; times: how much better Shunt is"
say_stolen
