#!/bin/bash
# SPDX-License-Identifier: MIT
# Threads of a process that wait in a set each have a lane each, without a setting, and do not share what a send or a
# receive writes: as many locks as one thread takes, and no cache line that another thread uses. Counts of
# tests/bench/lines.sh, which do not depend on time.
set -u
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "${top_srcdir:?}/tests/lib.sh"

grep -q '^counted:' "${top_builddir:?}/Makefile" || { echo "built with a sanitizer of its own"; exit 77; }

# The peer's thread answers when it has been scheduled. A wait that falls asleep writes more, so waits are not asked about.
# The end of a run is another thread's, and counts once in 32 uses: the run is longer than that.
count() { # LANES THREADS
	SHUNT_TUNE=lanes=$1 THREADS=$2 MODES=epoll COUNT=1000 "$top_srcdir/tests/bench/lines.sh" | tr -d '|' ||
		problem "nothing was counted for $2 threads"
}

# field TABLE CALL COLUMN
field() {
	awk -v call="$2" -v n="$3" '$3 == call { print $n }' <<<"$1"
}

# at_most WHAT VALUE MOST
at_most() {
	awk -v v="${2:-none}" -v most="$3" 'BEGIN { exit !(v ~ /^[0-9.]+$/ && v <= most) }' ||
		problem "$1: ${2:-none}, not $3 at most"
}

alone=$(count auto 1)
four=$(count auto 4)
shared=$(count 1 4)
printf '%s\n' "$alone" "$four" "$shared"
for call in send receive; do
	locks=$(field "$alone" $call 5)
	at_most "locks of one thread per $call" "$locks" 3.2
	at_most "locks of four threads per $call" "$(field "$four" $call 5)" "$(awk -v n="${locks:-0}" 'BEGIN { print n + 0.3 }')"
	at_most "lines of four threads written per $call" "$(field "$four" $call 10)" 0.2
	at_most "lines of one thread written per $call" "$(field "$alone" $call 10)" 0.2
done
# A lane for all: another lock where the lane was busy, and the lane's own lines.
at_most "locks per send where the lane is shared" "$(field "$shared" send 5)" 4.5
at_most "locks per receive where the lane is shared" "$(field "$shared" receive 5)" 1.3
finish
