#!/bin/bash
# SPDX-License-Identifier: MIT
# Random sequences of calls, bare and shunted. TAP.
#
#	gen.sh				as in make check-all: a few sequences
#	SEEDS=250 CALLS=1000 gen.sh	from seed FIRST (1) on; each is run once bare and in every way of WAYS, so this is
#					more than a million calls
#	WAYS="both flip" gen.sh		who is shunted: both ends, both with flips, only the one that leads or answers
#	STABLE=5 gen.sh			no Shunt: each seed so many times bare, all must agree
#
# A sequence that differs is cut down to the calls without which it does not, and printed.
set -u

# shellcheck source-path=SCRIPTDIR source=../where.sh
. "$(dirname "$0")/../where.sh"
# shellcheck source-path=SCRIPTDIR source=../../scratch.sh
. "$(dirname "$0")/../../scratch.sh"
gen=${GEN:-$builddir/tests/calls/gen/gen}
ways=${WAYS:-both lead answer flip}
calls=${CALLS:-150}
scratch gen
work=$scratch
export GEN_LIMIT=${GEN_LIMIT:-300}

# sequence WAY SEED [KEEP...]: the transcript.
sequence() {
	local way=$1 seed=$2
	shift 2
	case $way in
	careful) GEN_CAREFUL=1 "$gen" "$seed" "$calls" "$@" ;;
	bare) "$gen" "$seed" "$calls" "$@" ;;
	both) GEN_WRAP=$shunt_run $shunt_run "$gen" "$seed" "$calls" "$@" ;;
	flip) GEN_CAREFUL=1 SHUNT_TUNE=${SHUNT_TUNE-},flip=${FLIP:-1024} GEN_WRAP=$shunt_run $shunt_run "$gen" "$seed" "$calls" "$@" ;;
	lead) $shunt_run "$gen" "$seed" "$calls" "$@" ;;
	answer) GEN_WRAP=$shunt_run "$gen" "$seed" "$calls" "$@" ;;
	esac 2>> "$work/err"
}

# differs WAY SEED TIMES [KEEP...]: does it, in one of so many runs?
differs() {
	local way=$1 seed=$2 times=$3 i bare=bare
	shift 3
	[ "$way" = flip ] && bare=careful
	# Of a whole sequence the bare run is made once.
	if [ $# -gt 0 ] || [ "$had" != "$bare $seed" ]; then
		sequence "$bare" "$seed" "$@" > "$work/bare"
	fi
	had=$([ $# -gt 0 ] || echo "$bare $seed")
	for ((i = 0; i < times; i++)); do
		sequence "$way" "$seed" "$@" > "$work/other"
		cmp -s "$work/bare" "$work/other" || return 0
	done
	return 1
}

# Drops halves, quarters and so on of the calls, as long as what is left differs.
shrink() {
	local way=$1 seed=$2 keep size from shorter
	export GEN_LIMIT=5
	# Calls behind the first difference cannot matter.
	mapfile -t keep < <(sed -n 's/^\([0-9]*\):.*/\1/p' "$work/bare" |
		head -n "$(($(cmp "$work/bare" "$work/other" | sed 's/.*line //') + 1))")
	for ((size = ${#keep[@]} / 2; size > 0; size /= 2)); do
		for ((from = 0; from < ${#keep[@]}; )); do
			shorter=("${keep[@]:0:from}" "${keep[@]:from + size}")
			if [ ${#shorter[@]} -gt 0 ] && differs "$way" "$seed" 4 "${shorter[@]}"; then
				keep=("${shorter[@]}")
			else
				from=$((from + size))
			fi
		done
	done
	differs "$way" "$seed" 20 "${keep[@]}" || echo "# (seldom)"
	echo "# gen $seed $calls ${keep[*]}"
	diff -U100 "$work/bare" "$work/other" | sed 's/^/# /' | tail -n +3
}

[ -x "$gen" ] || { echo "Bail out! $gen is missing"; exit 99; }
[ -z "${STABLE:-}" ] || ways=bare
n=0 bad=0 made=0 had=
for ((seed = ${FIRST:-1}; seed < ${FIRST:-1} + ${SEEDS:-8}; seed++)); do
	for way in $ways; do
		n=$((n + 1))
		if differs "$way" "$seed" "${STABLE:-1}"; then
			bad=$((bad + 1))
			echo "not ok $n - seed $seed, $way"
			cp "$work/bare" "$work/$seed.bare"
			cp "$work/other" "$work/$seed.$way"
			[ "${SHRINK:-1}" = 0 ] || (shrink "$way" "$seed")
			[ $bad -lt "${MOST:-5}" ] || break 2
		else
			echo "ok $n - seed $seed, $way"
		fi
		made=$((made + calls * ${STABLE:-1}))
	done
done
echo "1..$n"
echo "# $made calls besides the bare ones, $bad of $n sequences differ"
if [ $bad -gt 0 ]; then
	scratch_keep "$work"
	echo "# transcripts in $work"
	exit 1
fi
