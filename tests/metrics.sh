#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt stat --openmetrics: both formats are what they should be, also where processes lie; promtool, where there is
# one, has nothing to say; the bytes are those that the programs have counted; the dashboard's metrics exist.
set -u
. "${top_srcdir:?}/tests/lib.sh"
fakes=()
trap 'kill "${fakes[@]}" 2>/dev/null; scratch_remove' EXIT
checker=$top_srcdir/tests/metrics_check.py

# fake KIND: starts one; its process id is $fake.
fake() {
	local in
	exec {in}< <(exec python3 "$top_srcdir/tests/stat_fake.py" "$1")
	read -r fake <&"$in"
	fakes+=("$fake")
}

# shows PATTERN: a line of the text does. It is long: it is kept where one is missing.
shows() {
	grep -qE -- "$1" "$work/text" || problem "no '$1' in $(grep -E -- "^${1:1:12}" "$work/text" | head -n 5)"
}

# well [ARGUMENT…]: both formats of what the arguments ask for.
well() {
	expect 0 "$shunt" stat --openmetrics "$@"
	cp "$work/out" "$work/text"
	expect 0 "$shunt" stat --openmetrics=strict "$@"
	cp "$work/out" "$work/strict"
	expect 0 python3 "$checker" text "$work/text" "$work/list"
	echo "$* $out"
	expect 0 python3 "$checker" strict "$work/strict" "$work/list"
	if command -v promtool >/dev/null; then
		expect 0 promtool check metrics <"$work/text"
		[ -z "$out$err" ] || problem "promtool: $out $err"
	fi
}

expect 0 "$shunt" stat --openmetrics=list
cp "$work/out" "$work/list"
has "$out" $'^shunt_bytes_total\tcounter\t'
expect 2 "$shunt" stat --openmetrics=xml
expect 2 "$shunt" stat --openmetrics --watch 1
expect 1 "$shunt" stat --openmetrics 2147483647
has "$out" '^shunt_processes 0$'
well

# What processes say may be anything, and each of them is one among others.
fake growing
growing=$fake
fake hostile
hostile=$fake
fake metrics
liar=$fake
well
well --streams
shows "^shunt_streams_made_total\{pid=\"$growing\",program=\"fake\"\} 3$"
shows "^shunt_stream_bytes\{pid=\"$growing\",.*fd=\"7\",local=\"127.0.0.1:40000\",.* 1048575$"
shows "^shunt_bytes_total\{pid=\"$hostile\",program=\"fake..x1b\]0;title"
# A program's name that would begin another line or label, counters that are negative, a reason too long for a label.
shows "^shunt_upgrades_total\{pid=\"$liar\",program=\".{9}x0a\"\} 5$"
! grep -q "^shunt_failovers_total{pid=\"$liar\"" "$work/text" || problem "a negative counter"
[ "$(grep -c "^shunt_stayed_on_tcp_total{pid=\"$liar\"" "$work/text")" = 256 ] || problem "not 256 reasons"
[ "$(grep -c "^shunt_lane_streams{pid=\"$liar\"" "$work/text")" = 1 ] || problem "a lane twice"
shows "^shunt_send_size_bytes_bucket\{pid=\"$liar\",.*le=\"3.0\"\} 3$"
shows "^shunt_send_size_bytes_bucket\{pid=\"$liar\",.*le=\"\+Inf\"\} 6$"
shows "^shunt_link_seconds_bucket\{pid=\"$liar\",.*le=\"0.000001023\"\} 10$"
shows "^shunt_device_events_total\{pid=\"$liar\",.*device=\"x\",port=\"\",event=\"rnr.*x0a\"\} 1$"
shows "^shunt_uptime_seconds\{pid=\"$liar\",.* 1.005$"
well "$growing"
! grep -q "pid=\"$liar\"" "$work/text" || problem "a process that was not asked for"

expect 0 python3 "$top_srcdir/tests/metrics_count.py" "$shunt"
echo "$out"

expect 0 python3 "$checker" dashboard "$top_srcdir/contrib/grafana/shunt.json" "$work/list"
echo "dashboard: $out"
finish
