#!/bin/bash
# SPDX-License-Identifier: MIT
# Brief connections cost the system calls that they cost without Shunt, at either end; one that lasts still gets to the
# link. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3
need_shunt
echo answer > "$work/answer"
young=$here/young.py
few=20 many=220

# start WRAP: a server that may be traced.
start() {
	start_telling $1 python3 "$young" server "$work/answer"
}

finish() {
	exec {in}<&-
	wait "$server_pid" 2> /dev/null
}

# count NAME WRAP CONNECTIONS: the calls of both ends in $work/NAME.{server,client}.
count() {
	start "strace -f -c -o $work/$1.server $2"
	timeout 300 strace -f -c -o "$work/$1.client" $2 python3 "$young" client "$server_port" "$3" 2> "$work/err"
	finish
}

# each END KIND: the calls of one connection, "NAME COUNT" sorted, waits in one row.
each() {
	awk -v n=$((many - few)) '/^ *[0-9]+\.[0-9]/ && $NF != "total" {
			name = $NF ~ /^epoll_p?wait/ ? "epoll_wait" : $NF
			calls[name] += (FNR == NR ? -1 : 1) * $4
		}
		END { for (name in calls) printf "%s %.2f\n", name, calls[name] / n }' \
		"$work/$2.few.$1" "$work/$2.many.$1" | sort
}

# same END: no call is made that is not made bare, but for a few of the service thread's and a wait.
same() {
	each $1 bare > "$work/bare.$1"
	each $1 shunted > "$work/shunted.$1"
	join -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$work/bare.$1" "$work/shunted.$1" | awk '
		$3 - $2 > ($1 == "epoll_wait" ? 0.6 : 0.15) { print "# " $1 ": " $3 " for " $2; bad = 1 }
		END { exit bad }'
}

# lasting NAME=VALUE...: one that lasts, after brief ones.
lasting() {
	start "env $* $shunt_run"
	env "$@" timeout 300 $shunt_run python3 "$young" lasts "$server_port" $many > "$work/lasts"
	finish
	grep -qx linked "$work/lasts"
}

if command -v strace > /dev/null; then
	for n in few many; do
		count bare.$n "" ${!n}
		count shunted.$n "env SHUNT_TUNE=${SHUNT_TUNE-},born=off,brief_first=1 $shunt_run" ${!n}
	done
	check "a server of brief connections makes the calls it makes bare" same server
	check "so does their client" same client
else
	skip "calls of brief connections" "strace is missing"
fi
check "one that lasts gets to the link after brief ones" lasting SHUNT_TUNE=brief=8
check "so does one whose like were expected to be brief from the start" lasting SHUNT_TUNE=brief_first=1
check "so does one where none is expected to be brief" lasting SHUNT_TUNE=brief=0
plan
