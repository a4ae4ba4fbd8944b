#!/bin/bash
# SPDX-License-Identifier: MIT
# Plain programs over each card of tests/fake: transcripts as bare, by the link where the profile says so. TAP.
#
#	CARDS="mlx5 mana" cards.sh	these; default all
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

library=$builddir/tests/fake
profiles=$here/../fake/profile.c
need "$library/libibverbs.so.1"
need "$transfer"
need_shunt
# What differs most between cards: small and large sends, several parts, ends, waits, many connections, a fork.
cases='^(stream_(zero|fill|big|duplex|rounds)|vector_.*|epoll_edge_(in|out|end)|shut_(eof|both|lingering)|half_close|many_at_once|process_fork.*)$'

# expected NAME: "linked", or why not.
expected() {
	sed -n "/\.name = \"$1\"/{n;s/.*\.expect = \"\(.*\)\",/\1/p}" "$profiles"
}

# most_inline NAME: bytes; 0 where its row has none, or they are a lie.
most_inline() {
	sed -n "/\.name = \"$1\"/,/^\t},/s/.*\.in_line = { \.most = \([0-9]*\).*/\1/p" "$profiles" | grep . || echo 0
}

# Inline at most what the row has, and at least half of that or of what is asked for.
has_sizes() { # NAME FILE...
	jq -se --argjson most "$(most_inline "$1")" 'all(.[].devices[];
		([$most, 256] | min) as $most | .inline_bytes <= $most and .inline_bytes * 2 >= $most and
		.send_queue >= 16 and .receive_queue >= 16)' "${@:2}" > "$work/sizes"
}

export SHUNT_DEVICE=verbs LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
for FAKE_VERBS in ${CARDS:-$(sed -n 's/.*\.name = "\(.*\)",/\1/p' "$profiles")}; do
	export FAKE_VERBS
	rm -f "$work"/*.stat.*
	pair "$work/bare" "" "" -m epoll-et -n 2M -s 1 -c 3
	TEST_WARM=60 pair "$work/both" "$shunt_run" "$shunt_run" -m epoll-et -n 2M -s 1 -c 3
	check "$FAKE_VERBS: each byte arrives" cmp -s "$work/bare" "$work/both"
	if [ "$(expected "$FAKE_VERBS")" = linked ]; then
		check "$FAKE_VERBS: by the link" [ "$(counter upgrades "$work"/both.stat.*)" -gt 0 ]
		check "$FAKE_VERBS: and the device is this one" grep -q '"name":"fake0"' "$work"/both.stat.*
		check "$FAKE_VERBS: its statistics have the sizes that it gives" has_sizes "$FAKE_VERBS" "$work"/both.stat.*
		SAMPLE=1 PASSES=warm "$here/diff.sh" "$cases" > "$work/cases" 2>&1
		check "$FAKE_VERBS: cases agree with their bare transcripts ($(grep -c '^ok' "$work/cases"))" \
			[ "$(grep -c '^ok' "$work/cases")" -gt 5 -a "$(grep -c '^not ok' "$work/cases")" = 0 ]
		grep '^not ok' "$work/cases" | sed 's/^/# /'
	else
		check "$FAKE_VERBS: on TCP" [ "$(counter upgrades "$work"/both.stat.*)" = 0 ]
		check "$FAKE_VERBS: and the device says why" grep -qF "$(expected "$FAKE_VERBS")" "$work"/both.stat.*
	fi
done
plan
