#!/bin/bash
# SPDX-License-Identifier: MIT
# Rings of io_uring that use a connection (SHUNT_URING=watch, the default): a program that does so says the same bare and
# shunted, and its connection stays on the link, or goes back to TCP, as it must. TAP.
# usage: rings.sh [SEEDS]	# so many programs that mix all ways by chance (12)
# shellcheck disable=SC2086,SC2317	# the command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

seeds=${1:-12}
rings=$builddir/tests/calls/rings
turns=$builddir/tests/calls/turns
need "$rings" "$turns" jq
need_shunt
unset SHUNT_URING
export SHUNT_LOG=warn

# Bytes by the link: those of the first 6,000 messages are below 250,000, all are above 400,000, even if the link comes late.
stays() { [ "$bytes" -gt 400000 ]; }
linked() { [ "$bytes" -gt 5000 ]; }
leaves() { [ "$bytes" -gt 5000 ] && [ "$bytes" -lt 250000 ]; }

run() { # WAY [SEED]
	both "$rings" "$@"
}

both() { # PROGRAM WAY [SEED]: bare and shunted, the same words. Sets bytes, uring and reason of the ring's process.
	rm -f "$work/stat."*
	timeout 70 "$@" > "$work/bare" 2>&1
	SHUNT_STATS=$work/stat.%p timeout 70 $shunt_run "$@" > "$work/shunted" 2> "$work/log"
	bytes=$(jq -s 'map(.totals.tx.link) | min' "$work"/stat.*)
	uring=$(jq -sr 'map(.uring) | sort | last' "$work"/stat.*)
	cmp -s "$work/bare" "$work/shunted" && [ -s "$work/bare" ] && return
	sed 's/^/# /' "$work/bare" "$work/shunted" "$work/log"
	return 1
}

# may WAY: the kernel lets us have such a ring, else it is a skip.
may() {
	timeout 70 "$rings" "$1" > "$work/bare" 2>&1 && return
	skip "$1" "bare: $(head -n 1 "$work/bare")"
	return 1
}

# look WAY WORD VERB: the statistics have WORD, and the connection VERB.
look() {
	[ "$uring" = "$2" ] && "$3" && return
	echo "# $bytes bytes by the link, io_uring: $uring"
	sed 's/^/# /' "$work/log"
	return 1
}

each() { # VERB WORD WAY...
	local verb=$1 word=$2 way
	shift 2
	for way in "$@"; do
		may "$way" || continue
		check "$way: as bare" run "$way"
		check "$way: the connection $verb" look "$way" "$word" "$verb"
	done
}

warned() { # WORDS: once
	[ "$(grep -c "$1" "$work/log")" = 1 ] && return
	sed 's/^/# /' "$work/log"
	return 1
}

# What a ring does elsewhere, or the engine does for it, leaves the connection on the link.
each stays watched calls file set results many forkedset threads close closelate
# What a ring does with a connection is the kernel's.
each leaves watched recv read recv128 noarray sendmsg poll chain fixed updated splice cancelled forked nowhere rights
# Kernel aio, which needs no ring.
each leaves watched aio
# What cannot be watched.
each leaves tcp unknown
check "unknown: it is said" warned "unknown operation"
each leaves tcp sqpoll
check "sqpoll: it is said" warned "a thread of the kernel"
each leaves tcp instruction
check "instruction: it is said" warned "do not come by libc"

# Both ends turn to rings while bytes are unread.
for way in late latesend crossing unmapped; do
	check "$way: as bare" both "$turns" "$way"
	check "$way: it was on the link" linked
done

mixed() {
	local seed
	for ((seed = 1; seed <= seeds; seed++)); do
		run mix "$seed" && leaves && continue
		echo "# rings mix $seed: $bytes bytes by the link"
		return 1
	done
}
check "$seeds programs that mix all ways" mixed
plan
