#!/bin/bash
# SPDX-License-Identifier: MIT
# Limits by class between real processes (docs/QOS.md). Counts are compared with tokens and limits, never with time. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"
need python3
need_shunt
shunt=${shunt_run% run}
limit=30517578	# 1Gbit, in thousandths of a token a second

# A server that swallows, and tells of each connection that has ended how much came.
cat > "$work/sink.py" << 'END'
import socket, sys, threading
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(16)
print("port", listener.getsockname()[1], flush=True)
def swallow(c):
    n = 0
    while (got := c.recv(1 << 20)):
        n += len(got)
    c.sendall(b"%d\n" % n)
    c.close()
while True:
    threading.Thread(target=swallow, args=(listener.accept()[0],), daemon=True).start()
END
# Sends until a line comes in, and tells how much the server has got of how much.
cat > "$work/source.py" << 'END'
import select, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
n, block = 0, b"x" * 100000
while not select.select([sys.stdin], [], [], 0)[0]:
    s.sendall(block)
    n += len(block)
    if n == 30 * len(block):
        print("begun", flush=True)
s.shutdown(socket.SHUT_WR)
got = int(s.makefile().readline())
print("sent", n, "got", got, flush=True)
END

# start_source WRAP NAME [COMMAND]: a client in the background; its numbers are in $source, $to and $from.
start_source() {
	local fifo=$work/$2
	mkfifo "$fifo.in" "$fifo.out"
	$1 ${3:-python3 "$work/source.py"} "$server_port" < "$fifo.in" > "$fifo.out" 2> "$fifo.err" &
	source=$!
	children+=("$source")
	exec {to}> "$fifo.in" {from}< "$fifo.out"
	read -r _ <&"$from"
}

# end_source TO FROM: all that it has sent has arrived.
end_source() {
	local sent got
	(echo >&"$1")	# a client that has gone is no end of this script
	read -r _ sent _ got <&"$2" && [ "$sent" = "$got" ] && [ "$sent" -gt 0 ] && return
	sed 's/^/# /' "$work"/*err
	return 1
}

# json PID EXPRESSION: of the statistics of a process, as `q`.
json() {
	$shunt stat --json "$1" | python3 -c "
import json, sys
process = json.load(sys.stdin)[0]
q = process.get('qos')
print($2)"
}

is() {
	[ "$(json "$1" "$2")" = "$3" ]
}

# becomes PID EXPRESSION VALUE: the same, as soon as the process has heard of it.
becomes() {
	local until=$((SECONDS + 120))
	until is "$@" 2> /dev/null; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.02
	done
}

SHUNT_QOS='class bulk program=python3 limit=1Gbit; class rest' start_telling $shunt_run python3 "$work/sink.py"
start_source "$shunt_run" one
one=$source one_to=$to one_from=$from
check "the client knows its class" becomes "$one" "q['links'][0]['class'], q['links'][0]['told'], q['links'][0]['limit']" "bulk True $limit"
check "so does the node" is "$server_pid" "q['classes'][0]['clients'], q['links'][0]['told']" "1 False"
check "what it posts has tokens" is "$one" "q['links'][0]['bytes'] <= 4096 * q['links'][0]['tokens']" True
check "the tokens are no more than the limit has by now" is "$one" \
	"q['links'][0]['tokens'] <= process['uptime_ms'] * $limit / 1e6 + 20e-6 * $limit + 16" True
start_source "$shunt_run" two
two=$source two_to=$to two_from=$from
check "two share it" becomes "$server_pid" "q['classes'][0]['clients']" 2
becomes "$one" "q['links'][0]['limit'] < $limit" True	# the first has less then
check "what both may send is no more than the limit" test \
	$(($(json "$one" "q['links'][0]['limit']") + $(json "$two" "q['links'][0]['limit']"))) -le $limit
check "the table names the class" grep -q "bulk .* 2 " <($shunt stat "$server_pid")
check "bad rules are refused, with their place" grep -q "rules:1:20: to reserve needs a capacity" \
	<($shunt adm "$server_pid" qos class bulk reserve=50% 2>&1)
check "and the former stay" is "$server_pid" "[c['limit'] for c in q['classes']]" "[$limit, 0]"
check "other rules, under load" $shunt adm "$server_pid" qos 'class slow limit=10Mbit; class rest'
check "a client is of another class" becomes "$two" "q['links'][0]['class']" slow
check "nobody was held who keeps the limit" is "$server_pid" "any(l['held'] for l in q['links']), any(c['cheats'] for c in q['classes'])" "False False"
check "and what arrives is counted" is "$server_pid" "all(l['arrived'] > 0 for l in q['links'])" True
check "none, under load" $shunt adm "$server_pid" qos off
check "a client is of none" becomes "$two" "q" None
check "all of the first client's bytes arrive" end_source "$one_to" "$one_from"
check "all of the second client's bytes arrive" end_source "$two_to" "$two_from"
echo "class all limit=10Mbit # slow" > "$work/rules"
check "rules of a file" $shunt adm "$server_pid" qos "$work/rules"
start_source "" plain
check "a plain client is not limited" is "$server_pid" "q['classes'][0]['clients']" 0
check "all of the plain client's bytes arrive" end_source "$to" "$from"
check "rules with a capacity" $shunt adm "$server_pid" qos 'capacity 10Gbit; class db reserve=60%; class rest limit=1Gbit'
check "are in the statistics" is "$server_pid" \
	"q['capacity']['kind'], q['capacity']['rate'], [c['reserve_share'] for c in q['classes']], type(q['periods'])" \
	"fixed 305175781 [600, 0] <class 'list'>"
check "and in the table" grep -q "capacity fixed: " <($shunt stat "$server_pid")
check "the last periods of both classes" grep -q "^period  capacity  db  rest" <($shunt adm "$server_pid" qos periods)
$shunt adm "$server_pid" qos rules > "$work/said"
check "the rules are said again" grep -q "^class db reserve=60.0%" "$work/said"
check "and can be put in force" $shunt adm "$server_pid" qos "$work/said"
check "they are the same" diff "$work/said" <($shunt adm "$server_pid" qos rules)
check "a class that a user declares" $shunt adm "$server_pid" qos 'class gold declared=gold; class rest limit=1Gbit'
SHUNT_QOS_CLASS=gold start_source "$shunt_run" gold
check "is a client's that does" becomes "$source" "q['links'][0]['class'], q['links'][0]['limit']" "gold 0"
check "all of its bytes arrive" end_source "$to" "$from"
check "a client that has gone is of no class" becomes "$server_pid" "q['classes'][0]['clients']" 0
SHUNT_LOG=warn SHUNT_QOS='class x limit=fast' start_telling $shunt_run python3 "$work/sink.py" 2> "$work/err"
start_source "$shunt_run" last
check "bad rules at the start are said once" test "$(grep -c "SHUNT_QOS: no rules are in force: rules:1:15: limit is none, or" "$work/err")" = 1
check "and nobody is limited" is "$server_pid" "q" None
check "all bytes arrive without rules" end_source "$to" "$from"

# A client that cheats: its engine's clock goes 50 times as fast as the node's.
SHUNT_LOG=warn SHUNT_QOS='class bulk limit=100Mbit' start_telling $shunt_run python3 "$work/sink.py" 2> "$work/err"
start_source "" cheat "$builddir/tests/calls/cheat"
cheat=$source cheat_to=$to cheat_from=$from
start_source "$shunt_run" honest
check "a client that cheats is held" becomes "$server_pid" "any(l['held'] for l in q['links'] if l['peer'] == $cheat)" True
check "and counted" becomes "$server_pid" "q['classes'][0]['cheats'] > 0" True
check "and named" grep -q "process $cheat breaks its limit: .* it is held" "$work/err"
check "and shown" grep -q "process $cheat breaks the limit of class bulk" <($shunt adm "$server_pid" qos)
becomes "$server_pid" "any(l['arrived'] > 5000 for l in q['links'] if l['peer'] == $cheat)" True
check "it sends no more than the limit has by now, and two rings" is "$server_pid" \
	"[l['arrived'] <= process['uptime_ms'] * 3051757 / 1e6 * 1.02 + 2048 + 256 for l in q['links'] if l['peer'] == $cheat]" "[True]"
check "the client beside it is not held" is "$server_pid" "[l['held'] for l in q['links'] if l['peer'] == $source]" "[0]"
check "all of the cheat's bytes arrive" end_source "$cheat_to" "$cheat_from"
check "all of the honest client's bytes arrive" end_source "$to" "$from"
plan
