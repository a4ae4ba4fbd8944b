#!/bin/bash
# shunt config, and the manual page that is made from it.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 0 "$shunt" config
rows=$(grep -c SHUNT_ <<<"$out")
has "$out" '^ \+SHUNT_SPIN_US +25 +25 '
lacks "$out" '^\*'

expect 0 env SHUNT_SPIN_US=7 SHUNT_RING_MIN=5000 SHUNT_STATS=/tmp/x "$shunt" config
has "$out" '^\*\+SHUNT_SPIN_US +7 +25 '
has "$out" '^\* SHUNT_RING_MIN +8K +16K '
has "$out" '^\* SHUNT_STATS +/tmp/x +- '

expect 2 env SHUNT_SPIN_US=1001 "$shunt" config
has "$err" 'SHUNT_SPIN_US=1001'
has "$out" '^ \+SHUNT_SPIN_US +25 +25 '

expect 0 env SHUNT_SPIN_US=7 "$shunt" config --json
[ "$(grep -c '"name": "SHUNT_' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
has "$out" '"value": 7,'

expect 0 "$shunt" config --man
[ "$(grep -c '^\.B SHUNT_[A-Z]' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
expect 2 "$shunt" config --wrong

page=$top_builddir/man/shunt.1
[ "$(grep -c '^\.B SHUNT_[A-Z]' "$page")" = "$rows" ] || problem "the manual has not $rows variables"
! grep -n '@[A-Z]*@' "$page" || problem "the manual has holes"
if command -v man >/dev/null; then
	warnings=$(MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
	[ -z "$warnings" ] || problem "$warnings"
fi

finish
