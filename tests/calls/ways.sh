#!/bin/bash
# SPDX-License-Identifier: MIT
# Every road to a descriptor: what a program says that calls by the C library's own handle, from a plug-in with names of
# its own, from another name space, by aio or dprintf, is the same bare and shunted, on the link (SHUNT_GATE). What goes
# past all the same ends the connection at both ends, and is said. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

ways=$builddir/tests/calls/ways/ways
need "$ways" jq
need_shunt
export SHUNT_LOG=info

# play NAME WRAP ROAD CALL: what both ends have said.
play() {
	rm -f "$work/stat."*
	SHUNT_STATS=$work/stat.%p timeout 100 $2 "$ways" "$3" "$4" "$work/plug.so" "$work/$1.there" \
		> "$work/$1.here" 2> "$work/$1.log"
	echo "status $?" >> "$work/$1.here"
	cat "$work/$1.here" "$work/$1.there" > "$work/$1"
}

alike() { # ROAD CALL
	play shunted "$shunt_run" $1 $2
	if ! diff -u "$work/bare.$2" "$work/shunted" > "$work/diff"; then
		sed 's/^/# /' "$work/diff" "$work/shunted.log"
		return 1
	fi
	grep -qx "tracks 3" "$work/shunted.log"
}

# carried: no byte of either end went past, and no call sent the connection back
carried() {
	[ "$(jq -s 'map(.counters.bypassed + .counters.bypassing) | add' "$work"/stat.*)" = 0 ] &&
		! grep -q 'back on TCP' "$work/shunted.log"
}

# ended NAME: with an error at both ends, and each has said so and counted it once
ended() {
	if grep -q '^recv -1 Connection reset by peer' "$work/$1.here" &&
		grep -q '^there: recv -1 Connection reset by peer' "$work/$1.there" &&
		[ "$(grep -c 'warn: .*reset: this program has sent 1000 bytes past Shunt' "$work/$1.log")" = 1 ] &&
		[ "$(grep -c 'warn: .*reset: 1000 bytes came over TCP' "$work/$1.log")" = 1 ] &&
		[ "$(jq -s 'map(.counters.bypassing) | add' "$work"/stat.*)" = 1 ] &&
		[ "$(jq -s 'map(.counters.bypassed) | add' "$work"/stat.*)" = 1 ]; then
		return 0
	fi
	sed 's/^/# /' "$work/$1" "$work/$1.log"
	return 1
}

stays_on_tcp() {
	jq -se 'any(.[]; tostring | contains("the program has sent past Shunt on another connection"))' "$work"/stat.* > /dev/null
}

${CC:-cc} -shared -fPIC -I"$here/../.." -o "$work/plug.so" "$here/ways/plug.c" || exit 99

calls="read write readv writev preadv2 pwritev2 recv send recvfrom sendto recvmsg sendmsg recvmmsg sendmmsg
	syscall_recv syscall_send poll ppoll select pselect epoll_wait epoll_pwait numbers"
for call in $calls aio_read aio_write dprintf; do
	play "bare.$call" "" handle $call
done

play known "$shunt_run" handle poll
if grep -q 'calls that do not come by name are carried' "$work/known.log"; then
	for road in handle deep space; do
		for call in $calls; do
			check "$road, $call" alike $road $call
		done
	done
	for call in aio_read aio_write dprintf; do
		check "$call" alike handle $call
		check "$call: on the link all the time" carried
	done
else
	skip "calls by other roads" "$(grep -o 'calls that do not come by name.*' "$work/known.log" | head -n 1)"
fi

play raw "$shunt_run" raw raw
check "an instruction of the program's own: both ends get an error" ended raw
check "an instruction of the program's own: the next connection stays on TCP" stays_on_tcp
export SHUNT_GATE=names
play names "$shunt_run" handle send
check "SHUNT_GATE=names: both ends get an error" ended names
plan
