#!/bin/bash
# SPDX-License-Identifier: MIT
# The cost of threads of one process to each other: counts per thousand operations of memcached with 1, 2, 4 and 8 threads.
#
#	THREADS="1 2 4 8" CONNECTIONS="16 256" WINDOW=2 threads.sh
#
# sleeps and kicks: threads that fell asleep, and that another thread of the process has woken; arms, events: of the
# completion channel; polls; switches: of the server's threads, that waited or were displaced. Operations are TPS of
# the same run; beside them is how many times TCP's they are, measured just before. Counts need no quiet machine, rates do.
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

shunt=${shunt_run% run}
threads=${THREADS:-1 2 4 8}
connections=${CONNECTIONS:-16 256}
window=${WINDOW:-2}
need memcached memcaslap python3
need_shunt

counters() { # PID
	"$shunt" stat --json "$1" | python3 -c '
import json, sys
c = json.load(sys.stdin)[0]["counters"]
print(*(c[k] for k in ("sleeps", "kicks", "arms", "events", "polls")))'
}

switches() { # PID
	cat /proc/"$1"/task/*/status | awk '/^voluntary/ { a += $2 } /^nonvoluntary/ { b += $2 } END { print a, b }'
}

look() { # PID FILE
	echo "$(date +%s.%N) $(counters "$1") $(switches "$1")" > "$2"
}

# as many operations a second as a client says
ask() { # CONNECTIONS SECONDS FILE WRAP...
	"${@:4}" memcaslap -s 127.0.0.1:"$server_port" -T 2 -c "$1" -t "$2"s -X 100 > "$3" 2>&1
}

tps() { # FILE
	awk '/TPS:/ { for (i = 1; i < NF; i++) if ($i == "TPS:") print $(i + 1) }' "$1"
}

printf '| threads | connections | operations/s | of TCP | sleeps | kicks | arms | events | polls | waited | displaced |\n'
printf '| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n'
for t in $threads; do
	for c in $connections; do
		start_server env memcached -u nobody -t "$t" -c 2000 -l 127.0.0.1 -p
		ask "$c" "$window" "$work/plain" env
		kill "$server_pid"
		wait "$server_pid" 2> /dev/null
		start_server $shunt_run memcached -u nobody -t "$t" -c 2000 -l 127.0.0.1 -p
		ask "$c" $((window + 2)) "$work/said" $shunt_run &
		client=$!
		children+=("$client")
		sleep 1
		look "$server_pid" "$work/a"
		sleep "$window"
		look "$server_pid" "$work/b"
		wait "$client"
		paste -d ' ' "$work/a" "$work/b" | awk -v t="$t" -v c="$c" -v rate="$(tps "$work/said")" -v tcp="$(tps "$work/plain")" '{
			n = NF / 2
			operations = rate * ($(n + 1) - $1)
			printf "| %d | %d | %d | %.2f |", t, c, rate, tcp ? rate / tcp : 0
			for (i = 2; i <= n; i++) printf " %.0f |", operations ? ($(n + i) - $i) / operations * 1000 : 0
			print "" }'
		kill "$server_pid"
		wait "$server_pid" 2> /dev/null
	done
done
