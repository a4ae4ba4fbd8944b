#!/bin/bash
# SPDX-License-Identifier: MIT
# A class's limit on TCP (docs/QOS.md): what the kernel has, as ss shows it, and that the program does not see it. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"
need python3 ss
need_shunt
shunt=${shunt_run% run}
limit=125000000	# 1Gbit, in bytes a second

# start WRAP WHAT: a client in the background; its numbers are in $client, $to and $from.
start() {
	local fifo
	fifo=$(mktemp -u "$work/fifo.XXXXXX")
	mkfifo "$fifo.in" "$fifo.out"
	$1 python3 "$here/pacing.py" $2 "$server_port" < "$fifo.in" > "$fifo.out" 2> "$fifo.err" &
	client=$!
	children+=("$client")
	exec {to}> "$fifo.in" {from}< "$fifo.out"
}

end() {
	echo >&"$to"
	wait "$client"
	exec {to}>&- {from}<&-
}

# rates accepted|connected: SO_MAX_PACING_RATE of the kernel's sockets there, in bytes a second, where it is not none.
rates() {
	local at=sport
	[ "$1" = accepted ] || at=dport
	ss -Htin state established "$at = :$server_port" |
		sed -n 's/.*pacing_rate [0-9]*bps\/\([0-9]*\)bps.*/\1/p; s/.*pacing_rate [0-9]*bps *[a-z].*/0/p' |
		while read -r bits; do echo $((bits / 8)); done
}

# paced WHERE LEAST MOST: one connection, whose kernel has a rate from LEAST to MOST.
paced() {
	local found
	found=$(rates "$1")
	[ "$found" ] && [ "$(wc -l <<< "$found")" = 1 ] && [ "$found" -ge "$2" ] && [ "$found" -le "$3" ]
}

# shares WHERE COUNT LIMIT: there are so many connections, and all together have no more.
shares() {
	rates "$1" | awk -v count="$2" -v limit="$3" '$1 { n++; sum += $1 } END { exit !(n == count && sum <= limit && sum > limit / 2) }'
}

set_rules() {
	$shunt adm "$server_pid" qos "$1" > /dev/null
}

# says PATTERN COMMAND...: it says so.
says() {
	local pattern=$1
	shift
	"$@" | tr -d ' \n' | grep -q "$pattern"
}

# --- what the program sees ---

start_telling python3 "$here/pacing.py" server
start "" option
while read -r line <&"$from" && [ "$line" != ready ]; do echo "$line"; done > "$work/bare"
echo >&"$to"
cat <&"$from" >> "$work/bare"
wait "$client"
check "a bare program sees what it sets" test "$(grep -c accepted "$work/bare") $(grep -c connected "$work/bare")" = "22 22"
export SHUNT_MOCK=tcp SHUNT_QOS="class all limit=1Gbit"
start_telling $shunt_run python3 "$here/pacing.py" server
start "$shunt_run" option
while read -r line <&"$from" && [ "$line" != ready ]; do echo "$line"; done > "$work/shunted"
check "the kernel has the smaller at the node" within paced accepted 1000000 1000000
check "and at the client" within paced connected 1000000 1000000
check "the client's is paced by the limit, too" within says '"paced":' $shunt stat --json "$client"
echo >&"$to"
cat <&"$from" >> "$work/shunted"
wait "$client"
check "a shunted program sees the same" diff "$work/bare" "$work/shunted"

# --- what the kernel has ---

start "$shunt_run" send
check "a node's connection that stays on TCP is paced" within paced accepted $((limit * 9 / 10)) $limit
check "other rules are obeyed at once" set_rules 'class slow limit=100Mbit'
check "by the kernel, too" within paced accepted $((limit / 11)) $((limit / 10))
check "rules that do not concern it lift it" set_rules 'class other port=1 limit=100Mbit'
check "which the kernel is told" within paced accepted 0 0
check "a limit again" set_rules 'class all limit=1Gbit'
within paced accepted $((limit * 9 / 10)) $limit
check "none" set_rules off
check "leaves nothing at the node" within paced accepted 0 0
check "and nothing at the client" within paced connected 0 0
end
set_rules 'class all limit=1Gbit'
start "$shunt_run" take
check "a client's connection that stays on TCP is paced" within paced connected $((limit * 9 / 10)) $limit
check "statistics say where limits hold" says '"holds_on":"link,tcp"' $shunt stat --json "$client"
check "off, under load" set_rules off
check "lifts it" within paced connected 0 0
end
set_rules 'class all limit=1Gbit'
start "" send
one=$client one_to=$to
check "a plain client's connection is paced" within paced accepted $((limit * 9 / 10)) $limit
start "" send
two=$client two_to=$to
check "two share the limit" within shares accepted 2 $limit
check "the table has them" within says "2connectionsonTCPmaybesent" $shunt adm "$server_pid" qos
echo >&"$one_to"
wait "$one"
check "the one that is left has all" within paced accepted $((limit * 9 / 10)) $limit
echo >&"$two_to"
wait "$two"
check "nothing has come" says '"tcp":{[^}]*"arrived":0' $shunt stat --json "$server_pid"
start "" take
check "the node counts what a plain client sends" within says '"tcp":{[^}]*"arrived":[1-9][0-9]' $shunt stat --json "$server_pid"
end
start_telling $shunt_run python3 "$here/pacing.py" forking
start "" send
check "a fork's child paces its own" within paced accepted $((limit * 9 / 10)) $limit
end
unset SHUNT_MOCK
start_telling $shunt_run python3 "$here/pacing.py" server
start "$shunt_run" send
check "a connection on the link leaves all to its lanes" within says '"clients":1,.*"connections":0' $shunt stat --json "$server_pid"
end
plan
