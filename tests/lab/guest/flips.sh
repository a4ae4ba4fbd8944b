# SPDX-License-Identifier: MIT
# limit: 7200
# Streams that change tracks all the time under load: over RDMA no byte is lost, repeated or moved either.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" redis-server redis-benchmark jq
need_device "$lab_device"
export TEST_LIMIT=1500

# Both ends have changed tracks, over and over.
flipped() {
	flips=$("$builddir/tools/shunt" stat --json 2>/dev/null | jq '[.[].counters | .upgrades + .handbacks] | length as $n | add, $n' | paste -sd ' ')
	[ "${flips#* }" = 2 ] && [ "${flips% *}" -gt 20 ]
}

# Each end has what the other has sent.
same() {
	local sent received
	cat "$work/server" "$work/client" >&2
	sent=$(sed -n 's/.*sent \([0-9]* sum [0-9a-f]*\),.*/\1/p' "$work/client" "$work/server")
	received=$(sed -n 's/.*received \([0-9]* sum [0-9a-f]*\),.*/\1/p' "$work/server" "$work/client")
	[ "$(wc -l <<<"$sent")" = 2 ] && [ "$sent" = "$received" ]
}

for mode in blocking epoll-et select; do
	for bound in 65536 4096 100; do
		export SHUNT_TUNE=${SHUNT_TUNE-},flip=$bound
		rm -f "$work/until"
		start_pair -m $mode -n 100G --until "$work/until"
		check "$mode, a flip after up to $bound bytes: there are flips" within flipped
		: >"$work/until"
		check "$mode, $bound: both ends end" end_pair
		check "$mode, $bound: every byte came" same
		echo "# $mode, $bound: ${flips% *} changes of track, device $(devices_used "$work"/stat.*)"
		SHUNT_TUNE+=,flip=0
		check_device "$mode, $bound: the link is over RDMA" "$work"/stat.*
	done
done
plan
