#!/bin/bash
# SPDX-License-Identifier: MIT
# Mixed load for an hour (issue: nothing grows): connections come and go, streams change their tracks, and memory,
# descriptors, threads and links of both processes are the same at the end as at the start. Not part of make check-all.
#
#	SECONDS_LONG=3600 CONNECTIONS=500 PACE=3000 soak.sh
#
# PACE: exchanges a second at most. Prints a line a minute; TAP.
# shellcheck disable=SC2086 # what is put before a command is several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

long=${SECONDS_LONG:-3600}
connections=${CONNECTIONS:-500}
pace=${PACE:-3000}
soak=$builddir/tests/soak/soak
need "$soak"
need_shunt
export SHUNT_TUNE=flip=1M,${SHUNT_TUNE-}

# of PID WHAT: a number of a process now.
of() {
	case $2 in
	rss) awk '/^VmRSS/ { print $2 }' "/proc/$1/status" ;;
	threads) awk '/^Threads/ { print $2 }' "/proc/$1/status" ;;
	fds) find "/proc/$1/fd" -mindepth 1 -maxdepth 1 | wc -l ;;
	maps) wc -l < "/proc/$1/maps" ;;
	*) "$builddir/tools/shunt" stat --json "$1" | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p" | head -n 1 ;;
	esac
}

kinds="rss threads fds maps links"
look() { # FILE
	local pid kind line=
	for pid in $server $client; do
		for kind in $kinds; do
			line+="$(of "$pid" "$kind") "
		done
	done
	echo "$line" >> "$1"
}

# Another order now and then, to both: everything to TCP, and back. Sent by who may.
disturb() {
	"$builddir/tools/shunt" adm "$server" mock tcp > /dev/null 2>&1
	"$builddir/tools/shunt" adm "$client" mock auto > /dev/null 2>&1
	"$builddir/tools/shunt" adm "$server" mock auto > /dev/null 2>&1
}

start_telling $shunt_run "$soak" server
exec {in}<&-
server=$server_pid
$shunt_run "$soak" client "$server_port" "$long" "$connections" "$pace" "${SEED:-1}" > "$work/said" &
client=$!
children+=("$client")

echo "# of the server, then of the client: $kinds"
# Until rings and stages have grown to what the load needs, which are kept: a few minutes with 500 connections.
end=$((SECONDS + long)) settled=$((long < 300 ? long / 4 : long < 3600 ? 60 : 300))
sleep "$settled"
look "$work/seen"
sed 's/^/# at the start: /' "$work/seen"
while [ $SECONDS -lt $((end - 5)) ] && kill -0 "$client" 2> /dev/null; do
	left=$((end - 5 - SECONDS))
	sleep $((left < 60 ? left : 60))
	disturb
	look "$work/seen"
	tail -n 1 "$work/seen" | sed 's/^/# /'
done
wait "$client"
check "every byte and every end was right: $(cat "$work/said")" [ -s "$work/said" ]

# grew N ALLOWED: the median of the last fifth of column N against that of the first fifth.
grew() {
	awk -v n="$1" '{ v[NR] = $n } END { k = int((NR + 4) / 5)
		for (i = 1; i <= k; i++) { a += v[i]; b += v[NR + 1 - i] }
		print int((b - a) / k) }' "$work/seen"
}
column=0
for who in server client; do
	for kind in $kinds; do
		column=$((column + 1))
		case $kind in
		rss) allowed=8192 ;;		# KiB
		fds | maps) allowed=$((connections / 10 + 20)) ;;
		*) allowed=1 ;;
		esac
		more=$(grew $column)
		check "$who, $kind: grew by $more, at most $allowed" [ "$more" -le $allowed ]
	done
done
plan
