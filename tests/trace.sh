#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt trace: a delay of 50 ms is shown in the stage where it was put, counts are exact, the file for Perfetto is one,
# and SHUNT_TRACE is put back. Exact times are tests/engine/trace.
# shellcheck disable=SC2317	# functions are called by name
set -u
. "${top_srcdir:?}/tests/lib.sh"
plain=$top_srcdir/tests/trace.py
command -v jq >/dev/null || exit 77
trap 'kill ${client-} ${server-} 2>/dev/null; scratch_remove' EXIT

# start WHERE COUNT [K]: a server, and a client with SHUNT_TRACE=K; waits until all is answered.
start() {
	local where=$1 count=$2 k=${3-off}
	rm -f "$work/pipe" "$work/port" "$work/done" "$work/ask"
	mkfifo "$work/pipe" "$work/port" "$work/done" "$work/ask"
	exec {pipe}<>"$work/pipe"
	"$shunt" run python3 "$plain" server "$where" 50 9<&"$pipe" >"$work/port" {pipe}>&- &
	server=$!
	read -r port <"$work/port"
	SHUNT_TRACE=$k "$shunt" run python3 "$plain" client "$port" "$count" 9>&"$pipe" <"$work/ask" >"$work/done" {pipe}>&- &
	client=$!
	exec {ask}>"$work/ask" {answered}<"$work/done" {pipe}>&-
	read -r _ <&"$answered"
}

stop() {
	exec {ask}>&- {answered}<&-
	wait "$client"
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
}

# The client asks so many times more.
again() {
	for ((i = 0; i < $1; i++)); do
		echo >&"$ask"
		read -r _ <&"$answered"
	done
}

# The client asks until a link carries what it asks. On a busy machine all of COUNT may have gone by TCP.
until_followed() {
	until [ "$("$shunt" trace --json "$server" | jq '.sends | length')" != 0 ]; do
		again 5
	done
}

# json FILTER: of what `shunt trace --json` has last said.
json() {
	jq -r "$1" "$work/json"
}

ask() {
	"$shunt" trace --json "$@" >"$work/json" || problem "shunt trace $*: exit status $?"
}

# in_stage STAGE: the last requests of the client have been there for 50 ms, and for less in each other.
in_stage() {
	ask "$server"
	jq -e --arg stage "$1" '
		def median($name): [ .sends[] | select(.answer | not) | .[$name + "_ns"] // 0 ][-15:] | sort | .[length / 2 | floor];
		. as $all | [ "credit", "link", "poll", "program" ] | map({ key: ., value: (. as $name | $all | median($name)) }) |
		from_entries | (.[$stage] >= 49000000) and ([ to_entries[] | select(.key != $stage).value ] | all(. < 25000000))' \
		"$work/json" >/dev/null || problem "the delay of $1 is not there: $(json ".stages | tojson")"
}

for where in poll program; do
	start "$where" 40 0
	in_stage "$where"
	stop
done
start none 40 0
until_followed
"$shunt" adm "$server" fault delay:ms=50 >/dev/null
again 20
in_stage link
stop

# One in four, and the answers to them, once there is a link.
start none 400 2
sends=400
while [ "$("$shunt" trace --json "$client" | jq '.sends | length')" -lt 8 ]; do
	again 20
	sends=$((sends + 20))
done
ask "$client"
[ "$(json ".processes[] | select(.pid == $client).counts | .chosen - (.sends / 4 | floor)")" = 0 ] ||
	problem "not one in four: $(json '.processes | tojson')"
[ "$(json ".processes[] | select(.pid == $client).counts | .sends")" = "$sends" ] || problem "not all sends are counted"
[ "$(json '.sends | map(.id) | group_by(.) | map(length) | max')" = 2 ] || problem "no request has its answer"
[ "$(json ".sends[] | select(.answer) | .reader" | sort -u)" = "$client" ] || problem "the answers are not the client's"
expect 0 "$shunt" trace "$client" "$server"
has "$out" "^python3 \(pid $client\): follows one send in 4; of $sends sends $((sends / 4)) followed"
has "$out" '^waited for the reader.s poll '
has "$out" '^The slowest:'
narrow "$(grep -v '(pid' <<<"$out")"

# Both processes in one time line.
expect 0 "$shunt" trace --perfetto "$work/perfetto.json" "$client"
jq -e --argjson client "$client" --argjson server "$server" '
	.traceEvents |
	(map(select(.ph == "X" and .dur >= 0 and .ts > 0 and .tid >= 0)) | map(.pid) | unique | sort) == ([ $client, $server ] | sort) and
	(map(select(.ph == "s").id) | sort) == (map(select(.ph == "f").id) | sort) and
	(map(select(.ph == "M" and .name == "process_name").args.name) | unique) == [ "python3" ] and
	([ group_by([ .pid, .tid ])[] | map(select(.ph == "X")) | sort_by(.ts) | . as $s | range(1; length) |
	   $s[.].ts >= $s[. - 1].ts + $s[. - 1].dur - 0.001 ] | all)' "$work/perfetto.json" >/dev/null ||
	problem "no trace events: $(head -c 1000 "$work/perfetto.json")"
expect 1 "$shunt" trace --perfetto "$work/none/file" "$client"
stop

# For a while; then as before.
start none 40
ask "$client"
[ "$(json '.sends | length')" = 0 ] || problem "sends are followed that were not to be"
"$shunt" trace --seconds 2 --every 0 --json "$client" >"$work/json" &
tool=$!
while [ "$("$shunt" trace --json "$client" | jq ".processes[] | select(.pid == $client).every")" != 1 ]; do :; done
# The first asks for rings: what is sent then is followed as soon as they are there.
while [ "$("$shunt" trace --json "$client" | jq '.sends | length')" = 0 ]; do
	again 1
done
wait "$tool" || problem "exit status $?"
[ "$(json '.sends | length > 0')" = true ] || problem "nothing was followed"
ask "$client"
[ "$(json "[ .processes[].every ] | unique | tojson")" = "[0]" ] || problem "SHUNT_TRACE is not as before"

# Another user's are nobody's business.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	expect 1 setpriv --reuid 65534 --regid 65534 --clear-groups "$shunt" trace "$client"
	lacks "$out" 'waited for'
fi
stop

expect 0 "$shunt" trace --help
has "$out" '^Usage: shunt trace '
narrow "$out"
expect 2 "$shunt" trace abc
expect 2 "$shunt" trace --every 17 1
expect 2 "$shunt" trace --seconds 0 1
expect 2 "$shunt" trace --wrong
expect 1 "$shunt" trace $$
finish
