#!/bin/bash
# SPDX-License-Identifier: MIT
# Peers that are killed, over and over: nothing of them is left in the process that lives on (XR-08). TAP.
#
#	ROUNDS=10		how many, of each kind
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

gone=${GONE:-$builddir/tests/calls/gone}
shunt=$builddir/tools/shunt
rounds=${ROUNDS:-10}
need "$gone" jq
need_shunt

said() { # FILE LINES: so many begin with the word
	[ "$(grep -c "^$2" "$1")" -ge "$3" ]
}

stat_of() { # FIELD
	"$shunt" stat --json "$stayer" | jq "[.. | objects | .$1? | numbers] | first"
}

# Links end, and idle memory goes within two seconds.
is_empty() {
	[ "$(stat_of links)" = 0 ] && [ "$(stat_of memory_regions)" = 0 ]
}

level() {
	echo "$(find /proc/$stayer/fd -mindepth 1 | wc -l) descriptors, $(find /proc/$stayer/task -mindepth 1 -maxdepth 1 | wc -l)" \
		"threads, $(wc -l < /proc/$stayer/maps) mappings"
}

begin() {
	rm -f "$work/orders"
	mkfifo "$work/orders"
	$shunt_run "$gone" stay < "$work/orders" > "$work/stay" 2> "$work/stay.err" &
	stayer=$!
	children+=("$stayer")
	exec {orders}> "$work/orders"
	within said "$work/stay" port 1
}

end() {
	exec {orders}>&-
	wait "$stayer"
}

# One peer comes, talks, and is killed.
one() { # accepts|connects: what the one does that stays
	local goer ends
	ends=$(grep -c ^end "$work/stay")
	: > "$work/go"
	if [ "$1" = accepts ]; then
		$shunt_run "$gone" go "$(sed -n 's/^port //p' "$work/stay")" > "$work/go" 2>> "$work/go.err" &
	else
		$shunt_run "$gone" go > "$work/go" 2>> "$work/go.err" &
	fi
	goer=$!
	children+=("$goer")
	if [ "$1" = connects ]; then
		within said "$work/go" port 1 || return
		sed -n 's/^port //p' "$work/go" >&"$orders"
	fi
	within said "$work/go" talked 1 || return
	kill -KILL "$goer"
	wait "$goer" 2> /dev/null
	within said "$work/stay" end $((ends + 1))
}

# survives accepts|connects: the level after many is that after a few.
survives() {
	local i before
	begin || return
	for ((i = 0; i < 3; i++)); do
		one "$1" || return
	done
	within is_empty || { echo "# links $(stat_of links), regions $(stat_of memory_regions)" && return 1; }
	before=$(level)
	for ((i = 0; i < rounds; i++)); do
		one "$1" || return
	done
	within is_empty || { echo "# links $(stat_of links), regions $(stat_of memory_regions)" && return 1; }
	echo "# after $rounds more: $(level); $(stat_of linked) connections were on links"
	[ "$(stat_of linked)" -ge "$rounds" ] || { echo "# too few for this to mean anything" && return 1; }
	grep -q "^end 0" "$work/stay" && echo "# a process that was killed with bytes unread looked like an end" && return 1
	[ "$before" = "$(level)" ] || { echo "# before: $before" && return 1; }
	end
}

for role in accepts connects; do
	check "peers that are killed, the one that stays $role" survives $role
	end 2> /dev/null
done
export SHUNT_TUNE=${SHUNT_TUNE-},retain=always,proof=nonce
check "the same as between hosts" survives accepts
plan
