#!/bin/bash
# SPDX-License-Identifier: MIT
# Instructions of a call on a link, by valgrind's callgrind: the same number in each run, on a busy machine, too.
#
#	TURNS=2000 BYTES=64 instructions.sh [LIBSHUNT.SO ...]
#
# One column for each library; without any, that of this build. The program: instructions.c.
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

turns=${TURNS:-2000}
need valgrind "$builddir/tests/bench/instructions"
[ $# -gt 0 ] || set -- "$builddir/.libs/libshunt.so"

# count FUNCTION CALLS LIBRARY
count() {
	local out=$work/callgrind

	SHUNT_CONF=none LD_PRELOAD=$3 valgrind -q --tool=callgrind --callgrind-out-file="$out" --toggle-collect="$1" \
		"$builddir/tests/bench/instructions" "$turns" "${BYTES:-64}" > "$work/says" 2> "$work/errors"
	if ! grep -q link "$work/says"; then
		cat "$work/errors" >&2
		echo "instructions.sh: with $3 the connection is not on a link" >&2
		return 1
	fi
	awk -v calls="$2" '/^(summary|totals):/ { all = $2 } END { printf "%d\n", all / calls }' "$out"
}

for row in send:2 recv:2 nothing:2 epoll_wait:2 epoll_add:1 epoll_del:1; do
	printf '%-12s' "${row%:*}"
	for library; do
		counted=$(count "count_${row%:*}" $((turns * ${row#*:})) "$library") || exit 1
		printf '%8d' "$counted"
	done
	echo
done
