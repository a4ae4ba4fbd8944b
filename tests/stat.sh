#!/bin/bash
# shunt stat where there is nothing to show, the ways to ask wrongly, and what it says of plain streams.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 1 "$shunt" stat $$
has "$err" "process $$: .*runs without Shunt|may not be examined"
expect 1 "$shunt" stat 2147483647
has "$err" 'no such process'
expect 2 "$shunt" stat abc
expect 2 "$shunt" stat 0
expect 2 "$shunt" stat --watch never
expect 2 "$shunt" stat --wrong
expect 0 "$shunt" stat --help
expect 0 "$shunt" stat
expect 0 "$shunt" stat --json
has "$out" '^\['

# A plain peer, at either end.
for shunted in client server; do
	expect 0 env SHUNT_CLAIM_MS=10 python3 "$top_srcdir/tests/stat_plain.py" "$shunt" "$shunted"
done

finish
