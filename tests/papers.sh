#!/bin/bash
# SPDX-License-Identifier: MIT
# The scripts of tests/bench/paper with settings so small that their figures mean nothing: each ends well, names its
# machine, its tables have the rows that were asked for, and numbers in them.
set -u
. "${top_srcdir:?}/tests/lib.sh"
paper=$top_srcdir/tests/bench/paper
export OUT=$work/figures ROUNDS=1 LENGTH=0.02 TMPDIR=$work
mkdir "$OUT"

# tiny NAME ROWS PATTERN SETTING...: so many lines of what the script says match the pattern.
tiny() {
	local name=$1 rows=$2 pattern=$3 status=0 found
	shift 3
	env "$@" bash "$paper/$name.sh" > "$work/said" 2>&1 || status=$?
	if [ $status = 77 ]; then
		echo "SKIP: $name: $(tail -1 "$work/said")"
		return
	fi
	[ $status = 0 ] || problem "$name: exit status $status: $(tail -5 "$work/said")"
	grep -qE '^machine: .+, [0-9]+ of them, [0-9]+ GB; Linux [0-9].*; TCP [a-z]+$' "$work/said" ||
		problem "$name: no machine: $(head -5 "$work/said")"
	found=$(grep -cE -- "$pattern" "$work/said")
	[ "$found" = "$rows" ] || problem "$name: $found rows, not $rows: $(cat "$work/said")"
	! grep -qiE '\bnan\b|\binf\b|no picture: gnuplot failed|[a-z_]+\.sh: line' "$work/said" ||
		problem "$name: $(grep -iE '\bnan\b|\binf\b|no picture|line' "$work/said")"
}

n='[0-9]+(\.[0-9]+)?'
tiny rb_e1 12 "^ +$n \| +$n +$n +$n +$n% \| +$n +$n$"
tiny rb_e3 4 "^ +(4096|65536)( +$n){4}( +($n|-))$" TIMES=3 SIZES="4096 65536"
grep -qE '^  as the engine measures it +(never|[0-9]+K)' "$work/said" || problem "rb_e3: no crossover of the engine"
tiny rb_e4 8 "^ +(1024|65536) (single|merge|chain|hybrid) .*\|( +$n){4} \|( +$n){4}$" PARTS=mr SIZES="1024 65536" MR_BYTES=4194304
tiny rb_e5 12 "^(inline|preMR|   1024) +(single|merge|chain|hybrid) .*$n" PARTS="sim mr" SIZES=1024 MR_BYTES=1048576
tiny rb_e7 12 "^ +$n \| +$n \|( +$n){3} \|.*%$"
tiny rb_e9 2 "^(redis|memcached) +50:64 +95% \|( +$n){4} \|( +$n){4} \|( +$n){3}$" SETS=50:64 MIXES=95 CONNECTIONS=2
tiny rb_e11 2 "^(write|read) +128K +$n +$n +$n " LENGTH=1 BLOCKS=128K
tiny xr_e1 2 "^ +(8|4096)( +$n){4} \|" SIZES="8 4096" TRIPS=200 TCP_TRIPS=50
tiny xr_22 2 "^128K +(64K|1M)( +$n){2}$" FRAGS="64K 1M" WINDOWS=128K GBIT=8 TRIPS=20
tiny ln_t2 2 "^ +(4096|65536) +$n +$n$" SETS="4096 65536" MS=3
tiny ln_e1 1 "^ +4K +$n \( *$n %\) +$n \( *$n %\) +[-+]$n %$" SIZES=4K LENGTH=0.2 PIN=none
tiny ln_t3 4 "^(tcp|shunt) +(write|read) +$n \( *$n %\) +$n \( *$n %\) +[-+]$n % +-?$n$" SIZE=4K LENGTH=0.2 PIN=none
tiny ln_e5 1 "^ +4K( \| +$n \( *$n %\) +$n \( *$n %\) +[-+]$n %){2}$" SIZES=4K SCANS=write LENGTH=0.2 PIN=none
tiny ln_e6 1 "^ +4K( \|( +$n){3} +[-+]$n % +[-+]$n %){2}$" SIZES=4K SIDES=client BUFFERS=reused LENGTH=0.2 PIN=none
tiny ln_e4 1 "^not measurable here:$|^shunt write tx +LLC hits" SIZE=4K LENGTH=0.2

# all.sh knows papers and names.
expect 2 bash "$paper/all.sh" nothing
has "$out" 'no script or paper of that name: nothing'
finish
