#!/bin/bash
# SPDX-License-Identifier: MIT
# A connection for each request, by tests/bench/born: plain TCP, Shunt without spares and Shunt with them, in turns. A line
# for each: microseconds a connection, and CPU time of both ends; medians.
#
#	born.sh		in the build tree, like all of tests/bench
#	ROUNDS=5 COUNT=20000	turns, and connections in each
#	FIRST=1		the server closes first
set -u
# shellcheck source-path=SCRIPTDIR source=../scratch.sh
. "$(dirname "$0")/../scratch.sh"
builddir=${top_builddir:-.}
born=$builddir/tests/bench/born
shunt=$builddir/tools/shunt
scratch born ''

# one WORD...: a server and a client, both with these words before them.
one() {
	local port server line cpu
	coproc serving { exec "$@" "$born" serve "$COUNT" ${FIRST:+first}; }
	# shellcheck disable=SC2154 # of the coprocess
	server=$serving_PID
	read -r _ port <&"${serving[0]}" || return 1
	line=$("$@" "$born" ask "$port" "$COUNT") || return 1
	read -r cpu <&"${serving[0]}" || return 1
	wait "$server"
	echo "$line $cpu" | awk '{ print $1, $2 + $3 }'
}

median() { # COLUMN FILE
	awk -v c="$1" '{ print $c }' "$2" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

: "${ROUNDS:=5}" "${COUNT:=20000}"
for ((i = 0; i < ROUNDS; i++)); do
	one env >> "$scratch/tcp" || exit 1
	one env SHUNT_TUNE=born=off "$shunt" run >> "$scratch/off" || exit 1
	one env SHUNT_TUNE=born=auto "$shunt" run >> "$scratch/auto" || exit 1
done
for kind in tcp off auto; do
	printf '%-5s %8s us a connection, %8s us of CPU\n' "$kind" "$(median 1 "$scratch/$kind")" "$(median 2 "$scratch/$kind")"
done
