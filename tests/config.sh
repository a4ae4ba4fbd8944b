#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt config, and the manual page that is made from it.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 0 "$shunt" config
rows=$(grep -c '^[* ][+ ]SHUNT_' <<<"$out")
words=$(grep -c '^[* ][+ ][a-z_][a-z_]* ' <<<"$out")
wide=$(awk 'length > 100' <<<"$out")
[ -z "$wide" ] || problem "wider than 100 columns: $wide"
has "$out" '^ \+spin_us +25 +25 '
lacks "$out" '^\*.(SHUNT_([^C]|C[^O])|[a-z])'

has "$out" '^  SHUNT_DEVICE +auto +auto '
expect 0 env SHUNT_DEVICE=auto "$shunt" config
lacks "$out" '^\*.(SHUNT_([^C]|C[^O])|[a-z])'

expect 0 env SHUNT_TUNE=spin_us=7,ring_min=5000 SHUNT_STATS=/tmp/x "$shunt" config
has "$out" '^\*\+spin_us +7 +25 '
has "$out" '^\* ring_min +8K +16K '
has "$out" '^\* SHUNT_STATS +/tmp/x +- '
has "$out" '^\*.SHUNT_TUNE +spin_us=7,ring_min=8K +- '
# Words: blanks and commas, the later of two counts; each wrong one is said, and the rest counts.
expect 2 env SHUNT_TUNE=" spin_us=7,,chain=4	spin_us=8 chain=0 poll QWERTZ=1 SHUNT_LOG=info SHUNT_RQ=64" "$shunt" config
has "$out" '^\*.SHUNT_TUNE +spin_us=8,chain=4 +- '
has "$err" '^shunt config: SHUNT_TUNE: chain=0 is invalid: allowed is 1..64 requests; the value before is used: 4$'
has "$err" '^shunt config: SHUNT_TUNE: poll has no value: poll=VALUE$'
has "$err" '^shunt config: SHUNT_TUNE: there is no word QWERTZ; .shunt config. lists them$'
has "$err" '^shunt config: SHUNT_TUNE: SHUNT_LOG is a variable of its own$'
has "$err" '^shunt config: SHUNT_TUNE: there is no word SHUNT_RQ; it is rq$'
# A name that was a variable once does not count, and is said with the word.
expect 2 env SHUNT_SPIN_US=7 "$shunt" config
has "$err" '^shunt config: warning: SHUNT_SPIN_US does not count: it is a word of SHUNT_TUNE: SHUNT_TUNE=spin_us=VALUE$'
has "$out" '^ \+spin_us +25 +25 '
expect 2 env SHUNT_SPIN_US=7 "$shunt" run echo started
lacks "$out" started

expect 2 env SHUNT_TUNE=spin_us=1001 "$shunt" config
has "$err" 'spin_us=1001'
has "$out" '^ \+spin_us +25 +25 '

# Names that are no variables, and settings that contradict each other: said, and no error.
expect 0 env SHUNT_SPINUS=7 "$shunt" config
has "$err" '^shunt config: warning: there is no variable SHUNT_SPINUS; is it SHUNT_TUNE=spin_us that is meant\?$'
expect 0 env SHUNT_DEVICE=none SHUNT_TUNE=ring_min=8K,frag=8K "$shunt" config --json
has "$err" '^shunt config: warning: ring_min, frag have no effect: SHUNT_DEVICE=none$'
expect 0 env SHUNT_ENABLE=0 SHUNT_STATS=/tmp/x "$shunt" config
has "$err" 'SHUNT_STATS has no effect: SHUNT_ENABLE=0'
expect 2 env SHUNT_TUNE=ring_min=64K,ring_max=8K "$shunt" config
has "$err" 'ring_min=64K is invalid: allowed is at most ring_max, here 8K'
expect 0 "$shunt" config
[ -z "$err" ] || problem "said: $err"

expect 0 env SHUNT_TUNE=spin_us=7 "$shunt" config --json
[ "$(grep -c '"name": "SHUNT_' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
[ "$(python3 -c 'import json, sys; said = json.load(sys.stdin); print(said["schema"], len(said["variables"]))' <<<"$out")" = "1 $((rows + words))" ] ||
	problem "no schema: $out"
has "$out" '"value": 7,'

expect 2 env SHUNT_DEVICE=hard "$shunt" config
has "$err" 'the default is used: auto$'

expect 0 "$shunt" config --man
grep -A2 '^\.B SHUNT_DEVICE$' <<<"$out" | grep -q 'default: auto\.$' || problem "SHUNT_DEVICE has no default in the manual"
[ "$(grep -c '^\.B SHUNT_[A-Z]' <<<"$out")" = "$rows" ] || problem "not $rows rows: $out"
[ "$(grep -c '^\.B [a-z_]*$' <<<"$out")" = "$words" ] || problem "not $words words: $out"
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
