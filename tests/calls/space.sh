#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs whose address space is limited (RLIMIT_AS): they have links, every byte comes, and they can still allocate
# more than half of what they could bare. Where nothing fits, connections stay on TCP, and the log says why. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

space=${SPACE:-$builddir/tests/calls/space}
need "$space" prlimit
# AddressSanitizer maps 15 TiB before the program begins: no limit of the address space goes with it.
! grep -q -- '-fsanitize=[a-z,]*address' "$top_builddir/Makefile" || { echo "1..0 # SKIP a sanitizer needs address space"; exit 77; }
need_shunt
export SHUNT_LOG=${LEVEL:-info} SHUNT_TUNE=${SHUNT_TUNE-},brief=0
short="too little address space is left for a link (ulimit -v)"

# serve WRAP CLIENTS and use WRAP: what they say and their statistics are in $work/run.*.
serve() {
	rm -f "$work"/run.*
	clients=()
	SHUNT_STATS=$work/run.server.stat start_telling $1 "$space" server "$2" 2> "$work/run.server.err"
}

use() {
	local i=${#clients[@]}
	SHUNT_STATS=$work/run.client.stat.$i $1 "$space" client "$server_port" 100 \
		> "$work/run.client.$i" 2> "$work/run.client.err.$i" &
	clients+=($!)
	children+=($!)
}

messages() {
	cat "$work"/run.*err* | head -20 | sed 's/^/# /'
	return 1
}

# All of them have ended well.
end() {
	local rc=0 client
	for client in "${clients[@]}"; do
		wait "$client" || rc=1
	done
	cat <&"$in" > "$work/run.server"
	exec {in}<&-
	wait "$server_pid" || rc=1
	[ $rc = 0 ] || messages
}

# meet SERVER-WRAP CLIENT-WRAP
meet() {
	serve "$1" 1
	use "$2"
	end
}

allocates() { # END: its MiB
	awk '/^allocates/ { print $2 }' "$work/run.$1"
}

linked() {
	local end
	for end in server client; do
		[ "$(counter upgrades "$work"/run.$end.stat*)" -gt 0 ] && continue
		echo "# no upgrade of the $end's"
		messages
		return
	done
}

# leaves END: more than half of what it could allocate bare.
leaves() {
	local mine
	mine=$(allocates "$1")
	echo "# ${1%.0}: $mine MiB of $bare"
	[ "$mine" -gt $((bare / 2)) ]
}

# both_ways SERVER-WRAP CLIENT-WRAP END...: ENDs are limited.
both_ways() {
	local end
	TEST_LINK=60000 meet "$1" "$2" && linked || return
	shift 2
	for end in "$@"; do
		leaves "$end" || return
	done
}

stays() { # SERVER-WRAP CLIENT-WRAP END: which says why
	meet "$1" "$2" || return
	if [ "$(counter upgrades "$work"/run.*.stat*)" != 0 ] || ! grep -q "$short" "$work/run.$3"; then
		messages
	fi
}

# The first peer has a link. Later ones find no room and are served over TCP; the last one lets them all end.
crowd() {
	local i
	serve "$limit $shunt_run" 10
	TEST_LINK=60000 use "$shunt_run"
	within grep -q "on a link to process" "$work/run.client.err.0" || messages || return
	for ((i = 0; i < 8; i++)); do
		use "$shunt_run"
	done
	within grep -q "no link could be made: $short" "$work/run.server.err" || messages || return
	use "$shunt_run"
	end && linked && leaves server
}

for bytes in 100000000 150000000 600000000 4000000000; do
	limit="prlimit --as=$bytes"
	meet "$limit" "$limit" || { not_ok "$bytes bytes, bare"; continue; }
	bare=$(allocates server)
	check "$bytes bytes: a limited server" both_ways "$limit $shunt_run" "$shunt_run" server
	check "$bytes bytes: a limited client" both_ways "$shunt_run" "$limit $shunt_run" client.0
	check "$bytes bytes: both" both_ways "$limit $shunt_run" "$limit $shunt_run" server client.0
done

limit="prlimit --as=150000000"
meet "$limit" "$limit" && bare=$(allocates server)
check "more peers than there is room for" crowd

limit="prlimit --as=40000000"
check "no room at all: the server" stays "$limit $shunt_run" "$shunt_run" server.err
check "no room at all: the client" stays "$shunt_run" "$limit $shunt_run" client.err.0
check "no room at all: both" stays "$limit $shunt_run" "$limit $shunt_run" client.err.0
plan
