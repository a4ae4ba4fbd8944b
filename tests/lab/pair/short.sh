# SPDX-License-Identifier: MIT
# limit: 3600
# Short processes on machine two, in a row: each connects to a server on machine one, asks for 64 bytes and ends, in turns
# with plain ones at a plain server. They cost the server next to no queue pairs. A connection that lasts is then linked.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

count=100 # of each kind; 1000 take about five minutes
most=8	  # queue pairs that the server may make for all of them
short=$builddir/tests/bench/short
shunt=$builddir/tools/shunt
library=$builddir/.libs/libshunt.so
port=7900 plain=7901 # of its own: connections of its servers may linger there
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,refused_ms=0,slow_ms=0,dead_ms=10000
need "$short" jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

count_of() { # PID COUNTER
	"$shunt" stat --json "$1" | jq ".[0].counters.$2"
}

has_made() { # PID: queue pairs, and a stream is on them
	[ "$(count_of "$1" queue_pairs_created)" -gt "$made" ] && [ "$(count_of "$1" claims_accepted)" -gt "$accepted" ]
}

ask_all() {
	"$short" turns "$count" "$library" "$theirs" $port $plain >"$work/turns"
}

median_of() { # KIND COLUMN
	awk -v kind="$1" -v column="$2" '$1 == kind { print $column }' "$work/turns" | median
}

say_median() { # COLUMN TEXT
	awk -v s="$(median_of shunted "$1")" -v p="$(median_of plain "$1")" -v text="$2" \
		'BEGIN { printf "# %s: shunted %.0f, plain %.0f microseconds, ratio %.3f\n", text, s, p, s / p }'
}

if [ "$lab_self" = one ]; then
	$shunt_run "$short" serve $port >"$work/served" 2>"$work/err" &
	server=$!
	"$short" serve $plain >"$work/plain" &
	children+=("$server" $!)
	check "somebody listens" within somebody_listens $port
	within somebody_listens $plain
	within test -n "$(count_of "$server" queue_pairs_created)"
	resident=$(grep VmRSS "/proc/$server/status" | tr -s '\t ' ' ')
fi
meet listens
if [ "$lab_self" = two ]; then
	check "$count short processes of each kind are answered" ask_all
	say_median 2 "to the first byte"
	say_median 3 "to the end of the process"
fi
meet asked
if [ "$lab_self" = one ]; then
	made=$(count_of "$server" queue_pairs_created)
	accepted=$(count_of "$server" claims_accepted)
	echo "# $made queue pairs were made for $count processes, $accepted claims accepted"
	check "at most $most queue pairs were made for them" [ "$made" -le $most ]
fi
meet counted
if [ "$lab_self" = two ]; then
	SHUNT_TUNE=${SHUNT_TUNE-},brief=0 "$short" turns $((count / 5)) "$library" "$theirs" $port $plain >"$work/turns"
	echo "# $((count / 5)) more with brief=0, claimed at their first use"
	say_median 2 "to the first byte"
	say_median 3 "to the end of the process"
fi
meet claimed
if [ "$lab_self" = one ]; then
	echo "# $(($(count_of "$server" queue_pairs_created) - made)) queue pairs were made for these"
	made=$(count_of "$server" queue_pairs_created)
	accepted=$(count_of "$server" claims_accepted)
fi
meet seen
if [ "$lab_self" = two ]; then
	mkfifo "$work/stay"
	exec {stay}<>"$work/stay"
	$shunt_run "$short" stay 2 "$theirs" $port <"$work/stay" {stay}<&- 2>>"$work/err" &
	stays=$!
	children+=("$stays")
fi
meet stays
if [ "$lab_self" = one ]; then
	check "connections that last are on a link" within has_made "$server"
	"$shunt" stat --json "$server" | jq -r '.[0] | "# a link has \(.counters.lanes) queue pairs, \(.counters.memory_registered) bytes are registered"'
	echo "# $(grep VmRSS /proc/$server/status | tr -s '\t ' ' '), before $resident; $(find /proc/$server/fd -mindepth 1 | wc -l) descriptors"
fi
meet linked
if [ "$lab_self" = two ]; then
	exec {stay}>&-
	check "every answer was right" wait "$stays"
fi
meet over
cat "$work/err" >&2
plan
