#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt config, and the manual page that is made from it.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 0 "$shunt" config
rows=$(grep -c '^[* ][+ ]SHUNT_' <<<"$out")
wide=$(awk 'length > 100' <<<"$out")
[ -z "$wide" ] || problem "wider than 100 columns: $wide"
has "$out" '^ \+SHUNT_SPIN_US +25 +25 '
lacks "$out" '^\*.SHUNT_([^C]|C[^O])'

has "$out" '^  SHUNT_DEVICE +auto +auto '
expect 0 env SHUNT_DEVICE=auto "$shunt" config
lacks "$out" '^\*.SHUNT_([^C]|C[^O])'

expect 0 env SHUNT_SPIN_US=7 SHUNT_RING_MIN=5000 SHUNT_STATS=/tmp/x "$shunt" config
has "$out" '^\*\+SHUNT_SPIN_US +7 +25 '
has "$out" '^\* SHUNT_RING_MIN +8K +16K '
has "$out" '^\* SHUNT_STATS +/tmp/x +- '

expect 2 env SHUNT_SPIN_US=1001 "$shunt" config
has "$err" 'SHUNT_SPIN_US=1001'
has "$out" '^ \+SHUNT_SPIN_US +25 +25 '

# Names that are no variables, and settings that contradict each other: said, and no error.
expect 0 env SHUNT_SPINUS=7 "$shunt" config
has "$err" '^shunt config: warning: there is no variable SHUNT_SPINUS; is it SHUNT_SPIN_US that is meant\?$'
expect 0 env SHUNT_DEVICE=none SHUNT_RING_MIN=8K SHUNT_FRAG=8K "$shunt" config --json
has "$err" '^shunt config: warning: SHUNT_RING_MIN, SHUNT_FRAG have no effect: SHUNT_DEVICE=none$'
expect 0 env SHUNT_ENABLE=0 SHUNT_STATS=/tmp/x "$shunt" config
has "$err" 'SHUNT_STATS has no effect: SHUNT_ENABLE=0'
expect 2 env SHUNT_RING_MIN=64K SHUNT_RING_MAX=8K "$shunt" config
has "$err" 'SHUNT_RING_MIN=64K is invalid: allowed is at most SHUNT_RING_MAX, here 8K'
expect 0 "$shunt" config
[ -z "$err" ] || problem "said: $err"

expect 0 env SHUNT_SPIN_US=7 "$shunt" config --json
[ "$(grep -c '"name": "SHUNT_' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
[ "$(python3 -c 'import json, sys; said = json.load(sys.stdin); print(said["schema"], len(said["variables"]))' <<<"$out")" = "1 $rows" ] ||
	problem "no schema: $out"
has "$out" '"value": 7,'

expect 2 env SHUNT_DEVICE=hard "$shunt" config
has "$err" 'the default is used: auto$'

expect 0 "$shunt" config --man
grep -A2 '^\.B SHUNT_DEVICE$' <<<"$out" | grep -q 'default: auto\.$' || problem "SHUNT_DEVICE has no default in the manual"
[ "$(grep -c '^\.B SHUNT_[A-Z]' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
expect 2 "$shunt" config --wrong

page=$top_builddir/man/shunt.1
[ "$(grep -c '^\.B SHUNT_[A-Z]' "$page")" = "$rows" ] || problem "the manual has not $rows variables"
for page in "$top_builddir"/man/shunt.1 "$top_builddir"/man/shunt.conf.5 "$top_builddir"/man/shunt-qos.5 "$top_builddir"/man/libshunt.7; do
	! grep -n '@[A-Z]*@' "$page" || problem "the manual has holes"
	if command -v man >/dev/null; then
		warnings=$(MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
		[ -z "$warnings" ] || problem "$warnings"
	fi
done

finish
