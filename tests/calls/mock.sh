#!/bin/bash
# SPDX-License-Identifier: MIT
# Operators change the track of a checksumming pair while it runs (SHUNT_MOCK, shunt adm). TAP.
#
#	FLIPS=10000 mock.sh	until the counters show so many changes of track; default 100
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

flips=${FLIPS:-100}
shunt=$builddir/tools/shunt
need "$transfer" "$shunt" jq
need_shunt
export TEST_LIMIT=${TEST_LIMIT:-600}	# a run is as long as it takes; what hangs ends all the same

on() {
	[ "$(ask "$1" '.tx.track + .rx.track')" = "$2$2" ]
}

# Bytes of both directions by a track grow, and none go by the other.
moves_by() {
	local pid=$1 by=$2 other=$3 before after i
	before=$(ask $pid ".tx.$other + .rx.$other")
	after=$(ask $pid ".tx.$by + .rx.$by")
	for ((i = 0; i < 1000; i++)); do
		[ "$(ask $pid ".tx.$by + .rx.$by")" -gt $((after + 1000000)) ] && break
	done
	[ $i -lt 1000 ] && [ "$(ask $pid ".tx.$other + .rx.$other")" = "$before" ]
}

long="-n 1000G -m epoll-lt"

start_pair $long
check "a stream moves to the link" within on $client link
for pid in $client $server; do
	check "mock tcp: to TCP" adm $pid mock tcp
	check "both directions, at the client" within on $client tcp
	check "and at the server" within on $server tcp
	check "bytes move by TCP alone" moves_by $client tcp link
	who=$([ $pid = $client ] && echo operator || echo "peer's operator")
	check "the client says why: $who" [ "$(ask $client .held)" = "$who" ]
	check "mock auto" adm $pid mock auto
	check "back to the link, at the client" within on $client link
	check "and at the server" within on $server link	# what it has yet to read from TCP would count
	check "bytes move by it alone" moves_by $server link tcp
	check "and nothing is held" [ "$(ask $client .held)" = "" ]
done
fd=$(ask $client .fd)
read -r local_end peer_end < <(ask $client '.local + " " + .peer')
check "one stream, by its descriptor" adm $client mock tcp $fd
check "goes to TCP" within on $server tcp
check "the same, by its addresses" adm $client mock auto $local_end $peer_end
check "comes back" within on $server link
check "at the other end, too" within on $client link
for words in "mock" "mock of" "mock TCP" "mock tcp 99" "mock tcp -1" "mock tcp 1x" "mock tcp $peer_end $local_end" \
	"mock tcp $local_end" "mock tcp $local_end $peer_end $fd" "mock tcp 1.2.3:4 $peer_end" "mock tcp $local_end 127.0.0.1:" \
	"mock tcp [$local_end $peer_end" "mock tcp [::1]:65536 [::1]:1" "mock tcp 99999999999 "; do
	check "refused: $words" eval "! \"$shunt\" adm $client $words 2> /dev/null"
done
check "and nothing has changed" on $client link
leave_pair

for mock in "tcp auto" "auto tcp" "tcp tcp"; do
	MOCK=$mock start_pair $long
	check "SHUNT_MOCK=$mock: linked" within eval "[ \"\$(ask $client .state)\" = linked ]"
	check "bytes move by TCP alone" moves_by $client tcp link
	check "none has gone by the link" [ "$(ask $client '.tx.link + .rx.link')" = 0 ]
	adm $server mock auto
	adm $client mock auto
	check "until the operators change their minds" within on $client link
	leave_pair
done

# The link lives, and the kernel ends a connection whose bytes it has been given.
given_up() {
	SHUNT_MOCK=tcp PASSES=warm "$here/diff.sh" '^user_timeout_[bpw]' > "$work/given_up" && return
	sed 's/^/# /' "$work/given_up"
	return 1
}
check "what the kernel gives up is over on both tracks" given_up

# Under load, by both operators, and back again each time.
round() {
	adm $1 mock $2 && sleep "0.00$((RANDOM % 10))"
} 2> /dev/null

torture() {
	local seen=0 rounds=0
	while [ $seen -lt "$flips" ] && [ $rounds -lt 100 ]; do
		rounds=$((rounds + 1))
		start_pair -n ${BYTES:-300M} -m $1 -s $rounds -c 3
		while [ -d /proc/$client ] && [ -d /proc/$server ]; do	# at first they do not listen yet
			round $client tcp
			round $server tcp
			round $client auto
			round $server auto
		done
		end_pair || return 1
		seen=$((seen + $(counter upgrades "$work"/stat.*) + $(counter handbacks "$work"/stat.*)))
	done
	echo "# $seen changes of track, $(counter mocked "$work"/stat.*) of the last run asked for here, in $rounds runs"
	[ $seen -ge "$flips" ]
}
for mode in blocking epoll-et epoll-oneshot; do
	check "under load, $mode: at least $flips changes of track, every byte in its place" torture $mode
done
plan
