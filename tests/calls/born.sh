#!/bin/bash
# SPDX-License-Identifier: MIT
# A connection for each request: most of them use one on that both programs have closed (core/stream/spare.h), and neither
# end can tell. TAP.
#
#	QUICK=yes born.sh		no cases of diff.sh
#	SAMPLE=1 born.sh [PATTERN]	all cases of diff.sh (with that name); default every fortieth
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

py=$(dirname "$0")/born.py
need python3
need_shunt

# end NAME COMMAND...: one of them in the background, with pipes NAME.in and NAME.out on descriptors of its own.
end() {
	local name=$1
	shift
	rm -f "$work/$name.in" "$work/$name.out"
	mkfifo "$work/$name.in" "$work/$name.out"
	SHUNT_STATS=$work/$name "$@" < "$work/$name.in" > "$work/$name.out" 2>&1 &
}

# await NAME FD WORD: until it says so. Else: what it says.
await() {
	local line
	while read -r line <&"$2"; do
		[ "$line" != "$3" ] || return 0
		[ "$line" != late ] || late=yes
		echo "# $1: $line"
	done
	[ -z "$3" ]
}

# some NAME COUNTER END: of the crowd before, unless it came too late to be born. How many depends on who runs when.
some() {
	if [ -n "$late" ]; then
		skip "$1" "it took a second: the machine is full"
	else
		check "$1 ($(count "$2" "$3"))" test "$(count "$2" "$3")" -gt 0
	fi
}

# pair SERVER COMMAND...: both ends behind these words.
pair() {
	local how=$1 port server client status=0 born=''
	shift
	[ $# = 0 ] || [ "${SHUNT_TUNE:-}" != born=auto ] || born=born
	end server "$@" python3 "$py" "$how"
	server=$!
	exec 5> "$work/server.in" 6< "$work/server.out"
	read -r _ port <&6 || return 1
	end client "$@" python3 "$py" client "$port" $born
	client=$!
	exec 7> "$work/client.in" 8< "$work/client.out"
	await client 8 through && echo >&5 && await server 6 closed && echo >&7 || status=1
	await client 8 ''
	exec 5>&- 7>&-
	wait "$client" || status=1
	wait "$server" || status=1
	return $status
}

# crowd SERVER MIXED COMMAND...: a crowd behind these words waits to be accepted, with one that is bare at a queue.
crowd() {
	local how=$1 mixed=$2 port pids=() pid status=0
	late=''
	shift 2
	end server "$@" python3 "$py" "$how" $mixed
	mixed=''
	pids+=($!)
	exec 5> "$work/server.in" 6< "$work/server.out"
	read -r _ port <&6 || return 1
	if [ "$how" = queue ]; then
		end plain python3 "$py" plain "$port"
		pids+=($!)
		exec 9> "$work/plain.in" 10< "$work/plain.out"
		await plain 10 begun || status=1
	fi
	[ "$how" != reset ] || mixed=reset
	end client "$@" python3 "$py" crowd "$port" $mixed
	pids+=($!)
	exec 7> "$work/client.in" 8< "$work/client.out"
	await client 8 warm && await server 6 served || status=1
	if [ "$how" = queue ]; then	# within the second for which the kernel's yes holds
		echo >&9 && await plain 10 there || status=1
	fi
	echo >&7 && await client 8 there && echo >&5 || status=1
	await server 6 ''
	await client 8 ''
	[ "$how" != queue ] || await plain 10 ''
	exec 5>&- 7>&- 9>&-
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	return $status
}

count() { # NAME FILE
	sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$work/$2"
}

are_born() {
	local connected accepted
	connected=$(count births_connected client)
	accepted=$(count births_accepted server)
	echo "# $connected connected, $accepted accepted"
	[ "$connected" -gt 10 ] && [ "$connected" = "$accepted" ]
}

are_equal() { # PATTERN
	PASSES=born SAMPLE=${SAMPLE:-40} "$here/diff.sh" "$1" > "$work/diff" 2>&1 && return
	sed 's/^/# /' "$work/diff"
	return 1
}

for how in server threads; do
	unset SHUNT_TUNE
	check "$how: bare" pair $how
	export SHUNT_TUNE=born=auto
	check "$how: shunted" pair $how $shunt_run
	check "$how: connections were used again" are_born
	export SHUNT_TUNE=born=off
	check "$how: shunted, without" pair $how $shunt_run
	check "$how: there was none" test "$(count births_connected client)" = 0
done
unset SHUNT_TUNE
check "two listeners at a port: bare" pair port
export SHUNT_TUNE=born=auto
check "two listeners at a port: shunted" pair port $shunt_run
unset SHUNT_TUNE
check "a crowd waits to be accepted: bare" crowd queue ''
check "another process joins: bare" crowd joined ''
check "a crowd is reset before it is accepted: bare" crowd reset ''
export SHUNT_TUNE=born=auto
check "a crowd waits to be accepted: shunted" crowd queue mixed $shunt_run
some "connections of the crowd are born" births_accepted server
check "another process joins: shunted" crowd joined '' $shunt_run
check "a crowd is reset before it is accepted: shunted" crowd reset '' $shunt_run
some "connections of that crowd are born" births_connected client
[ -z "${QUICK:-}" ] || plan	# stage long has the rest
export SHUNT_TUNE=born=off
check "every fortieth case of diff.sh, on such a connection" are_equal "${1:-.}"
plan
