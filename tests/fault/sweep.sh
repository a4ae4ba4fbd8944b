#!/bin/bash
# SPDX-License-Identifier: MIT
# Nothing is granted to Shunt's own code, each call in turn: the first allocation (memory, mappings, memory regions,
# descriptors, threads) fails, then the second instead, and so on until a run ends without coming so far. The program
# must not be able to tell. Both ends of the scene in turn. TAP.
#
#	FROM=17 TO=17 ROLES=server sweep.sh	one of them
#	MODES=plain sweep.sh			nothing is kept, no nonces
# shellcheck disable=SC2086,SC2317	# what is put before a command is several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

scene=$builddir/tests/fault/scene
need "$scene"
need_shunt

# play LOG SERVER-FAULT CLIENT-FAULT: the scene once; its complaints are in $work/said.
play() {
	local in rc=0
	: > "$1"
	if SHUNT_FAULT=$2 SHUNT_LOG=info SHUNT_LOG_FILE=$1.server start_telling $shunt_run "$scene" server 2> "$work/said"; then
		SHUNT_FAULT=$3 SHUNT_LOG=info SHUNT_LOG_FILE=$1.client $shunt_run "$scene" client "$server_port" 2>> "$work/said" || rc=$?
	fi
	exec {in}<&-
	wait "$server_pid" || rc=$?
	return $rc
}

# sweep ROLE: every k.
sweep() {
	local role=$1 k=${FROM:-1} last=${TO:-100000} fault failed=0 server client start=$SECONDS
	export TEST_TALK=15
	for (( ; k <= last; k++)); do
		fault="deny:nth=$k"
		server=$fault client=
		[ "$role" = server ] || { server='' && client=$fault; }
		rm -f "$work"/log.*
		if ! play "$work/log" "$server" "$client"; then
			echo "# allocation $k of the $role (SHUNT_FAULT=$fault) was noticed:"
			{ head -3 "$work/said"; grep -hv "info: fault" "$work"/log.*; } | head -8 | sed 's/^/#   /'
			failed=$((failed + 1))
		fi
		grep -q "fault: deny" "$work/log.$role" 2> /dev/null && continue
		# On a busy machine it may have been over before there was a link.
		if [ $k -gt 30 ] || [ $TEST_TALK -ge 4000 ]; then
			break
		fi
		TEST_TALK=$((TEST_TALK * 2)) k=$((k - 1))
	done
	echo "# $role: $((k - 1)) allocations, $((SECONDS - start)) s"
	[ $failed = 0 ] && [[ $k -gt 30 || ${TO:-} ]]
}

for mode in ${MODES:-plain retain}; do
	unset SHUNT_TUNE
	if [ $mode = retain ]; then
		export SHUNT_TUNE=retain=always,proof=nonce
	fi
	for role in ${ROLES:-server client}; do
		check "$mode: each allocation of the $role fails in turn" sweep $role
	done
done
plan
