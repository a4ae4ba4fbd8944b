#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 11: queue pairs and memory over an online upgrade: new processes come and connect, then the old ones go.
#
#	OLD=8 NEW=8 CONNECTIONS=16 EVERY=0.25 xr_e7.sh
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
need_shunt
need redis-server redis-benchmark jq
old=${OLD:-8} new=${NEW:-8} connections=${CONNECTIONS:-16} every=${EVERY:-0.25}

heading "XR-E7 (X-RDMA, Figure 11): queue pairs and memory over an online upgrade" \
	"queue pairs rise quickly while processes are replaced, without jitter; the memory follows the bandwidth"

start_redis "$shunt_run"
server=$server_pid

# shellcheck disable=SC2154 # start_redis'
$shunt stat --json --watch "$every" "$server" > "$work/looks" &
sampler=$!
children+=("$sampler")

# come COUNT: so many client processes, one after the other.
crowd=()
come() {
	local i
	for ((i = 0; i < $1; i++)); do
		$shunt_run redis-benchmark -p "$server_port" -t set,get -d 512 -c "$connections" -n 100000000 -l \
			> /dev/null 2>&1 &
		crowd+=($!)
		children+=($!)
		sleep "$every"
	done
}

# go COUNT: the oldest ones end, one after the other.
go() {
	local i
	for ((i = 0; i < $1; i++)); do
		kill "${crowd[i]}"
		sleep "$every"
	done
	crowd=("${crowd[@]:$1}")
}

sleep 1
come "$old"
sleep 2
come "$new"
sleep 2
go "$old"
sleep 2
go "$new"
sleep 2
kill "$sampler"
wait "$sampler" 2> /dev/null

# A line a look: seconds, queue pairs, MiB registered, links, streams linked, MB by the link. The last look may be cut off.
jq -r '.[] | select(.counters) | [.uptime_ms / 1000, .counters.lanes, .counters.memory_registered / 1048576,
	.counters.links, ([.streams[] | select(.state == "linked")] | length),
	(.totals.tx.link + .totals.rx.link) / 1e6] | map(tostring) | join(" ")' "$work/looks" > "$out/xr_e7.samples" 2> /dev/null
awk 'NR > 1 { print $1, $2, $3, $4, $5, ($6 - last) / ($1 - at > 0 ? $1 - at : 1) } { at = $1; last = $6 }' \
	"$out/xr_e7.samples" > "$out/xr_e7.dat"
[ -s "$out/xr_e7.dat" ] || {
	echo "no samples"
	exit 1
}
printf '%8s %8s %12s %8s %9s %10s\n' seconds lanes "MiB memory" links streams MB/s
awk '{ printf "%8.1f %8d %12.1f %8d %9d %10.1f\n", $1, $2, $3, $4, $5, $6 }' "$out/xr_e7.dat"
awk 'NR == 1 { low = $3 } { if ($2 > lanes) lanes = $2; if ($3 > memory) memory = $3; end = $2; left = $3 }
	END { printf "\nmost: %d queue pairs, %.1f MiB; at the end: %d queue pairs, %.1f MiB\n", lanes, memory, end, left }' \
	"$out/xr_e7.dat"
draw xr_e7 << END
set title "XR-E7: queue pairs and memory over an upgrade" noenhanced
set xlabel "seconds"; set ylabel "queue pairs"; set y2label "MiB registered, MB/s / 10"; set y2tics
set yrange [0:*]; set y2range [0:*]
plot '$out/xr_e7.dat' using 1:2 with steps lw 2 title "queue pairs", '' using 1:3 axes x1y2 with lines lw 2 title "MiB registered", \
	'' using 1:(\$6 / 10) axes x1y2 with lines title "MB/s / 10"
END
not_here "thousands of processes: all of them share two cores, so the rate falls as they come."
