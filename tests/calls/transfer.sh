#!/bin/bash
# SPDX-License-Identifier: MIT
# The checksumming pair in all its modes: bare, shunted, and one end of each. The transcripts of a
# mode must be the same whoever is shunted. TAP.
#
#	BYTES=10G transfer.sh		the long run; default 8M in each direction
#	FLIPS=100000 transfer.sh	until the counters show so many changes of track; default 300
#	MODES="blocking epoll-et"	which
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

bytes=${BYTES:-8M}
flips=${FLIPS:-300}
modes=${MODES:-blocking poll select epoll-lt epoll-et epoll-oneshot}
need "$transfer"
need_shunt
# A transfer that hangs ends by SIGALRM; a long one needs more time.
export TEST_LIMIT=${TEST_LIMIT:-$([ "${BYTES:-}${FLIPS:-}" ] && echo 3600 || echo 300)}

# same NAME FILE REFERENCE: also shows what went wrong.
same() {
	if cmp -s "$2" "$3"; then
		ok "$1 ($(sed -n 's/^transfer client: //p' "$2.err"))"
	else
		not_ok "$1"
		diff "$3" "$2" | sed 's/^/# /' | head
		sed 's/^/# /' "$2.err" "$2.server.err" | head -5
	fi
}

seed=${SEED:-1}
matrix() {
	local mode=$1 who server client
	shift
	rm -f "$work"/*.stat.*
	if ! pair "$work/bare" "" "" -m "$mode" "$@"; then
		not_ok "$mode bare"
		return
	fi
	for who in both server client; do
		server=$shunt_run client=$shunt_run
		[ "$who" = server ] && client=
		[ "$who" = client ] && server=
		pair "$work/$who" "$server" "$client" -m "$mode" "$@" || echo "# $mode $who: failed"
		same "$mode, shunted: $who${*:+, $*}" "$work/$who" "$work/bare"
	done
	check "$mode: the streams of two shunted ends were upgraded" \
		[ "$(counter upgrades "$work"/both.stat.*)" -gt 0 ]
}

export TEST_WARM=60
for mode in $modes; do
	matrix "$mode" -n "$bytes" -s "$seed"
done
matrix blocking -n 100K -s "$seed" --chunk-max 16
matrix epoll-lt -n 1M -s "$seed" -c 8 --chunk-max 20000
matrix epoll-et -n 1M -s "$seed" -c 8 --chunk-max 20000
matrix blocking -n "$bytes" -s "$seed" --one-way
TEST_WARM=0	# upgraded in mid-stream
matrix epoll-lt -n 40M -s "$seed"
TEST_WARM=20
# A device that carries little inline: staged sends are fetched, and large blocking ones from their own buffers.
tune=${SHUNT_TUNE-}
export SHUNT_TUNE=$tune,inline=100,mr_threshold=8K
matrix blocking -n "$bytes" -s "$seed" --chunk-max 100000
check "the statistics of both ends have the size from which sends are registered" \
	[ "$(cat "$work"/both.stat.* | grep -o '"registering":{"measured":false,"from_bytes":8192}' | wc -l)" = 2 ]
matrix epoll-et -n "$bytes" -s "$seed" -c 3 --chunk-max 100000
SHUNT_TUNE=$tune

# Flips: every run takes another bound for the distance between two of them.
torture() {
	local done_flips=0 round=0 bound mode rc=0 all
	read -ra all <<< "$modes"
	while [ $round -lt 12 ] || { [ "$done_flips" -lt "$flips" ] && [ $round -lt $((flips + 20)) ]; }; do
		bound=$((1 << (round * 5 % 17)))
		mode=${all[round % ${#all[@]}]}
		pair "$work/bare" "" "" -m "$mode" -n 1M -s $round || return 1
		SHUNT_TUNE=${SHUNT_TUNE-},flip=$bound pair "$work/flip" "$shunt_run" "$shunt_run" -m "$mode" -n 1M -s $round || rc=1
		if ! cmp -s "$work/bare" "$work/flip"; then
			echo "# SHUNT_TUNE=flip=$bound -m $mode -n 1M -s $round differs"
			diff "$work/bare" "$work/flip" | sed 's/^/# /' | head
			rc=1
		fi
		done_flips=$((done_flips + $(counter upgrades "$work"/flip.stat.*) +
			$(counter handbacks "$work"/flip.stat.*)))
		rm -f "$work"/flip.stat.*
		round=$((round + 1))
		[ $rc = 0 ] || return 1
		# Nothing ever flips: say so at once instead of after many rounds.
		[ $round -lt 17 ] || [ "$done_flips" -gt 0 ] || break
	done
	echo "# $done_flips flips in $round runs"
	[ "$done_flips" -ge "$flips" ]
}
check "flips: at least $flips, nothing lost, repeated or moved" torture
plan
