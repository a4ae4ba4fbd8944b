#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt perf programs: its options, that it measures, and that it leaves nothing behind.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 2 "$shunt" perf programs --only nothing
has "$err" "no workload.*'nothing'"
expect 2 "$shunt" perf programs --rounds 0
expect 2 "$shunt" perf programs --seconds abc
expect 2 "$shunt" perf programs more
expect 2 env SHUNT_TUNE=spin_us=abc "$shunt" perf programs --quick
has "$err" 'spin_us=abc'
expect 0 "$shunt" perf programs --list
has "$out" '^c1 '

# Where the programs are missing: skipped, and said.
expect 0 env PATH=/nonexistent "$shunt" perf programs --only c1,i4K
has "$out" 'skipped: redis-server is not installed'
has "$out" 'skipped: iperf3 is not installed'
expect 1 env PATH=/nonexistent "$shunt" perf programs --only c1,i4K --svg "$work/none.svg"
has "$err" 'none.svg, because nothing was measured'
expect 1 "$shunt" perf programs --only c1 --svg "$work/no folder/a.svg"
has "$err" 'no folder/a.svg: No such file'

if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	export TMPDIR=$work
	expect 0 "$shunt" perf programs --only c50P16 --rounds 1 --json
	has "$out" '"schema": 1,'
	has "$out" '"name": "c50P16"'
	has "$out" '"median": [1-9]'
	has "$out" '"cpus_allowed": [1-9]'
	has "$out" '"system_call_ns": [0-9.]*[1-9]'
	has "$out" '"wakeup_same_cpu_ns": [0-9.]*[1-9]'
	lacks "$out" 'failed'
	expect 0 "$shunt" perf programs --only c500P16 --rounds 1 --svg "$work/picture.svg"
	picture=$(cat "$work/picture.svg")
	has "$picture" '>plain TCP</text>$'
	has "$picture" '>redis, clients 500, pipeline 16</text>$'
	has "$picture" '>x [0-9.]+</text>$'
	python3 "$top_srcdir/tests/page.py" "$work/picture.svg" || problem "the picture is wrong"
	has "$out" '^redis, clients 500, pipeline 16 requests/s .*x .*%'
	has "$out" '^redis, clients 500, pipeline 16 us/request '
	has "$out" '^  Measured: a wake-up of '
	narrow "$out"

	# Interrupted: the servers end with it, and its directory is gone.
	"$shunt" perf programs --only c1 --seconds 60 >/dev/null 2>&1 &
	compare=$!
	server=
	until [ -n "$server" ] || ! kill -0 "$compare"; do
		read -r server _ <"/proc/$compare/task/$compare/children"
	done
	kill -TERM "$compare"
	wait "$compare"
	status=$?
	[ "$status" = 130 ] || problem "interrupted: exit status $status"
	! kill -0 "$server" 2>/dev/null || problem "redis-server is still there"
	[ -z "$(find "$work" -name 'shunt-compare-*')" ] || problem "it left $(ls "$work")"
fi

finish
