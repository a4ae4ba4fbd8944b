#!/bin/bash
# SPDX-License-Identifier: MIT
# `shunt adm PROCESS set`: variables that a running program follows, each by its effect; and what the others say.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 0 python3 "$top_srcdir/tests/live.py" "$shunt" "$top_builddir/.libs/libshunt.so"

# The others say why not, and change nothing.
coproc server { exec env LD_PRELOAD="$top_builddir/.libs/libshunt.so" "$(python3 -c 'import sys; print(sys.executable)')" -c '
import socket, sys
a = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
sys.stdin.read()'; }
read -r _ <&"${server[0]}"
# shellcheck disable=SC2154	# coproc sets it
pid=$server_PID
expect 1 "$shunt" adm "$pid" set rq 64
has "$err" 'rq is read when a link is made, and stays: restart the program with it$'
expect 1 "$shunt" adm "$pid" set SHUNT_STATS /tmp/x
has "$err" 'SHUNT_STATS is read when a program starts, and stays'
expect 1 "$shunt" adm "$pid" set window 2G
has "$err" 'window=2G is invalid'
for name in $("$shunt" config | sed -n 's/^.+\([A-Za-z_][A-Za-z_]*\) .*/\1/p'); do
	value=$("$shunt" config --json | python3 -c '
import json, sys
row = [row for row in json.load(sys.stdin)["variables"] if row["name"] == sys.argv[1]][0]
print(row["value"])' "$name")
	expect 0 "$shunt" adm "$pid" set "$name" "$value"
done
finish
