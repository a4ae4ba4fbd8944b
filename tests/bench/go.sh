#!/bin/bash
# SPDX-License-Identifier: MIT
# Go: round trips of 64 bytes on 1, 16 and 64 connections; where wrk is installed net/http, also with a connection for each
# request, and caddy with files of 512 bytes and 1 MB. TCP and Shunt at both ends in turns, medians of the rounds.
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

single() { # WRAP: a connection for each request
	measure "$1" ab -q -c 4 -n $((each * 2000)) http://127.0.0.1:WEB/512 | awk '/^Requests per second/ { print $4 }'
}

# files WRAP NAME CONNECTIONS: caddy's
files() {
	local wrap=$1
	start_caddy "$wrap"
	$wrap wrk -t 1 -c "$3" -d "$each" "http://127.0.0.1:$caddy/$2" | awk '/^Requests\/sec/ { print $2 }'
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
}

start_caddy() { # WRAP
	HOME=$work $1 caddy run --config "$work/Caddyfile" --adapter caddyfile > "$work/caddy.log" 2>&1 &
	server_pid=$!
	children+=("$server_pid")
	until (: < "/dev/tcp/127.0.0.1/$caddy") 2> /dev/null; do
		kill -0 "$server_pid" || exit 1
		sleep 0.05	# nobody says when another program listens
	done
}

names="pings1 pings16 pings64"
! command -v wrk > /dev/null || names="$names http1 http16"
! command -v ab > /dev/null || names="$names single"
if command -v wrk caddy > /dev/null; then
	caddy=7811
	names="$names caddy512 caddy1M"
	mkdir "$work/www"
	head -c 512 /dev/urandom > "$work/www/512"
	head -c 1048576 /dev/urandom > "$work/www/1M"
	printf '{\nadmin off\nauto_https off\n}\nhttp://127.0.0.1:%s {\nroot * %s/www\nfile_server\n}\n' "$caddy" "$work" > "$work/Caddyfile"
fi
for ((round = 1; round <= rounds; round++)); do
	for who in tcp shunt; do
		wrap=
		[ $who = tcp ] || wrap=$shunt_run
		echo "round $round of $rounds: $who" >&2
		for name in $names; do
			case $name in
			pings*) record $name $who "$(measure "$wrap" "$program" pings 127.0.0.1:PORT "${name#pings}" "$each")" ;;
			http*) record $name $who "$(requests "$wrap" "${name#http}")" ;;
			single) record $name $who "$(single "$wrap")" ;;
			caddy512) record $name $who "$(files "$wrap" 512 16)" ;;
			caddy1M) record $name $who "$(files "$wrap" 1M 4)" ;;
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
