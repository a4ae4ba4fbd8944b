#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt monitor: what clients see of it (monitor_client.py): its pages, whom it refuses, crowds, tokens, other users, its end;
# and what it shows of other hosts (monitor_hosts.py).
set -u
. "${top_srcdir:?}/tests/lib.sh"
trap scratch_remove EXIT

expect 0 "$shunt" monitor --help
case $err in *"built without libmicrohttpd"*)
	echo "it is built without libmicrohttpd"
	exit 77
	;;
esac
has "$out" '^Usage: shunt monitor'
narrow "$out"
expect 0 timeout 300 python3 "$top_srcdir/tests/monitor_client.py" "$shunt" "$top_srcdir/tests/stat_fake.py"
echo "$out"
expect 0 timeout 300 python3 "$top_srcdir/tests/monitor_hosts.py" "$shunt" "$top_srcdir/tests/stat_fake.py"
echo "$out"
expect 0 timeout 300 python3 "$top_srcdir/tests/fuzz/monitor.py" 1 1 "$shunt" monitor --json --listen 127.0.0.1:0
echo "$out"
finish
