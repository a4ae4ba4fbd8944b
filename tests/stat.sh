#!/bin/bash
# shunt stat where there is nothing to show, and the ways to ask wrongly.
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

finish
