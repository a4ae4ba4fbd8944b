# SPDX-License-Identifier: MIT
# limit: 3600
# A host that is gone without a word: machine two stands still until it is told to go on. Machine one finds out, though
# nothing is under way, and nothing of the link is left (XR-07, XR-08).
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

gone=$builddir/tests/calls/gone
shunt=$builddir/tools/shunt
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},keepalive_ms=2000,dead_ms=2000,silence_s=20,claim_ms=60000 SHUNT_LOG=info
export SHUNT_TUNE=${SHUNT_TUNE-},slow_ms=0 TEST_LINK=600000
need "$gone" jq rdma
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

stat_of() { # FIELD
	"$shunt" stat --json "$stayer" | jq "[.. | objects | .$1? | numbers] | first"
}

queue_pairs() {
	rdma resource show qp | grep -c 'type RC'
}

is_empty() {
	[ "$(stat_of links)" = 0 ] && [ "$(stat_of memory_regions)" = 0 ] && [ "$(queue_pairs)" = 0 ]
}

has_links() {
	[ "$(stat_of links)" = "$1" ]
}

has_probed() { # more often than COUNT
	[ "$(stat_of keepalive_probes)" -gt "$1" ]
}

level() {
	echo "$(queue_pairs) queue pairs, $(find /proc/$stayer/fd -mindepth 1 | wc -l) descriptors," \
		"$(find /proc/$stayer/task -mindepth 1 -maxdepth 1 | wc -l) threads, $(wc -l <"/proc/$stayer/maps") mappings"
}

# The level that stays: what has ended is let go of in a moment.
steady_level() {
	local now before=
	for ((now = 0; now < 10; now++)); do
		[ "$before" = "$(level)" ] || now=0
		before=$(level)
		sleep 0.2
	done
	echo "$before"
}

is_at() { # LEVEL
	[ "$1" = "$(level)" ]
}

has_failed() {
	[ "$(stat_of failovers)" -gt "$failed" ]
}

has_ended() {
	[ "$(grep -c ^end "$work/stay")" -gt "$ended" ]
}

# The link has failed first, and its streams have gone on until the channel ended, too.
is_in_order() {
	tail -n +$((said + 1)) "$work/stay" | awk '/go on over TCP/ { failed = 1 } /^end / { exit !(failed && /ETIMEDOUT/) }'
}

# A peer on machine two comes and talks.
come() {
	if [ "$lab_self" = two ]; then
		$shunt_run "$gone" go $theirs:$port >"$work/go" 2>&1 &
		goer=$!
		children+=("$goer")
		check "a peer talks" within grep -q talked "$work/go"
		cat "$work/go" >&2
	fi
	meet talked
}

if [ "$lab_self" = one ]; then
	mkfifo "$work/orders"
	$shunt_run "$gone" stay $mine:$port <"$work/orders" >"$work/stay" 2>&1 &	# one file: in order
	stayer=$!
	children+=("$stayer")
	exec {orders}>"$work/orders"
	check "somebody listens" within grep -q port "$work/stay"
fi
meet listens

# One that is killed, so that all is there that stays once the first link has come.
come
[ "$lab_self" = one ] || { kill -KILL "$goer" && wait "$goer" 2>/dev/null; }
meet killed
if [ "$lab_self" = one ]; then
	check "a peer that is killed: nothing of its link is left" within is_empty
	before=$(steady_level)
	ended=$(grep -c ^end "$work/stay")
fi
meet looked

come
if [ "$lab_self" = one ]; then
	check "the second peer is on a link" within has_links 1
	check "which is idle, but for what is asked" within has_probed "$(stat_of keepalive_probes)"
	echo "# $(stat_of keepalive_probes) probes so far, $before"
	failed=$(stat_of failovers) said=$(wc -l <"$work/stay")
	echo "lab: freeze two"
	start=$(date +%s%N)
	check "that machine two is gone is noticed" within has_failed
	took=$((($(date +%s%N) - start) / 1000000))
	echo "# after $took ms"
	check "the connection ends with the channel" within has_ended
	check "with ETIMEDOUT, after the link" is_in_order
	cat "$work/stay" >&2
	check "nothing of the link is left" within is_empty
	check "as before it" within is_at "$before"
	echo "# $(level)"
	echo "lab: thaw two"
	exec {orders}>&-
fi
meet "two is there again"
plan
