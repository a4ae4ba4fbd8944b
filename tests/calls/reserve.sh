#!/bin/bash
# SPDX-License-Identifier: MIT
# Reservations between real processes (docs/QOS.md). The node's own count of each period is judged, never time. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"
need python3
need_shunt
shunt=${shunt_run% run}
program=$here/reserve.py
classes='class a declared=a reserve=60%; class b declared=b reserve=30%; class c declared=c limit=20Mbit'
rules="period 200ms; capacity 400Mbit; $classes"
declare -A source to from

# serve RULES: a node; $server_pid, $server_port.
serve() {
	SHUNT_QOS=$1 SHUNT_LOG=warn start_telling $shunt_run python3 -W ignore "$program" sink 2> "$work/err"
	read -r _ _ <&"$in"
	said=$in
}

# come NAME [CLASS]: a client that sends; its numbers are in $source, $to and $from.
come() {
	local name=$1 fifo read_end write_end
	fifo=$(mktemp -u "$work/client.XXXXXX")
	mkfifo "$fifo.in" "$fifo.out"
	SHUNT_QOS_CLASS=${2-$name} $shunt_run python3 "$program" source "$server_port" < "$fifo.in" > "$fifo.out" 2>> "$work/clients" &
	source[$name]=$!
	children+=("$!")
	exec {write_end}> "$fifo.in" {read_end}< "$fifo.out"
	to[$name]=$write_end from[$name]=$read_end
	read -r _ <&"$read_end"
}

say() {
	echo "$2" >&"${to[$1]}"
}

# leaves NAME: all that it has sent has arrived.
leaves() {
	local words
	say "$1" end
	read -r words <&"${from[$1]}"
	[ "$words" = "all True" ]
}

# dies NAME: by kill -9.
dies() {
	kill -9 "${source[$1]}"
	wait "${source[$1]}" 2> /dev/null
}

judge() {
	python3 "$program" judge "$shunt" "$server_pid" "$@"
}

# json PID EXPRESSION: of the statistics of a process, as `q`.
json() {
	$shunt stat --json "$1" | python3 -c "
import json, sys
q = json.load(sys.stdin)[0].get('qos')
print($2)"
}

# becomes PID EXPRESSION VALUE
becomes() {
	local until=$((SECONDS + 120))
	until [ "$(json "$1" "$2" 2> /dev/null)" = "$3" ]; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.02
	done
}

descriptors() {
	local all=(/proc/"$1"/fd/*)
	echo ${#all[@]}
}

# as_many PID COUNT: the process comes to have so many descriptors again.
as_many() {
	local until=$((SECONDS + 60))
	until [ "$(descriptors "$1")" = "$2" ]; do
		[ $SECONDS -lt $until ] || {
			ls -l "/proc/$1/fd"
			return 1
		}
		sleep 0.02
	done
}

# more_arrives: of each client that is there.
more_arrives() {
	local before
	before=$(json "$server_pid" "{l['peer']: l['arrived'] for l in q['links']}")
	becomes "$server_pid" "all(l['arrived'] > $before.get(l['peer'], 0) for l in q['links'])" True
}

set_rules() {
	$shunt adm "$server_pid" qos "$1" > /dev/null
}

serve "$rules"
come a
come b
come c
check "the classes have what they reserved, and all is used" judge 10 a,b
check "the periods are shown" grep -q "^period  capacity  a  b  c" <($shunt adm "$server_pid" qos periods)
say b rest
check "what a class leaves others have" judge 5 a b
say b go
check "and it has its own again" judge 5 a,b
dies b
dies c
check "clients that were killed are no clients" becomes "$server_pid" "[c['clients'] for c in q['classes']]" "[1, 0, 0]"
come b
come c
check "those that come after them have their own" judge 5 a,b
check "a class that nobody is of reserves nothing" set_rules "$rules; class d user=nobody reserve=10%"
check "the others have theirs beside it" judge 5 a,b d
check "it has reserved nothing" test "$(json "$server_pid" "[c['reserved'] for c in q['classes'] if c['name'] == 'd']")" = "[0]"

# --- rules change ---

check "no rules, under load" set_rules off
check "limits alone" set_rules "period 200ms; class a declared=a limit=50Mbit; class rest limit=100Mbit"
check "their bytes go on" more_arrives
check "a capacity again" set_rules "$rules"
check "with which all is in order" judge 5 a,b
check "reservations that do not fit" set_rules "period 200ms; capacity 400Mbit; class a declared=a reserve=300Mbit; class b declared=b reserve=300Mbit; class c declared=c limit=20Mbit"
check "the second is served as best effort" judge 5 a
check "and counted" test "$(json "$server_pid" "[(c['reserved'] > 0, c['refused'] > 0) for c in q['classes']]")" = "[(True, False), (False, True), (False, False)]"
check "and named once" test "$(grep -c "class 'b' does not fit the capacity: it is served as best effort" "$work/err")" = 1
check "a capacity again" set_rules "$rules"
before=$(descriptors "$server_pid")
for ((i = 0; i < 10; i++)); do
	set_rules off
	set_rules "$rules"
done
check "rules that change leave no descriptors" as_many "$server_pid" "$before"
check "after that all is in order" judge 5 a,b

# --- a node that stands still, and one that dies ---

kill -STOP "$server_pid"
sleep 1	# five periods, in which nothing is awaited
kill -CONT "$server_pid"
check "a node that stood still goes on" judge 5 a,b
check "none of its clients is taken for a cheat" test "$(json "$server_pid" "sum(c['cheats'] for c in q['classes'])")" = 0

# AddressSanitizer takes the stacks of the parent's threads, which a child uses anew, for those of functions still.
if grep -q __asan_init "$builddir/.libs/libshunt.so" 2> /dev/null; then
	skip "a fork's child has its own periods" "AddressSanitizer does not know what fork leaves of threads"
else
	kill -USR1 "$server_pid"
	read -r _ port <&"$said"
	read -r _ child <&"$said"
	children+=("$child")
	parent=$server_pid parent_port=$server_port
	server_pid=$child server_port=$port
	come other a
	check "a fork's child has its own periods" judge 5 a
	check "all bytes arrive at the child" leaves other
	server_pid=$parent server_port=$parent_port
	check "the parent goes on beside it" judge 5 a,b
	kill -9 "$child"
fi

check "all bytes of a arrive" leaves a
check "all bytes of c arrive" leaves c
kill -9 "$server_pid"
read -r word how <&"${from[b]}"
check "a node's death ends a connection as without Shunt: $how" grep -qE "^end (ConnectionResetError|BrokenPipeError)$" <<< "$word $how"

# --- without conversion, and without pacing ---

SHUNT_TUNE=${SHUNT_TUNE-},qos_convert=0 serve "$rules"
come a
come b
say a rest
check "without conversion the rest is wasted" python3 "$program" wasted "$shunt" "$server_pid" 20 a
say a go
check "and reservations hold" judge 5 a,b
check "all bytes of a arrive without conversion" leaves a
check "all bytes of b arrive without conversion" leaves b
kill "$server_pid"

SHUNT_TUNE=${SHUNT_TUNE-},qos_pace=0 serve "$rules"
come a
come b
come c
check "without pacing reservations hold" judge 5 a,b
for name in a b c; do
	check "all bytes of $name arrive without pacing" leaves $name
done
check "who has gone is no client" becomes "$server_pid" "[c['clients'] for c in q['classes']]" "[0, 0, 0]"
plan
