# limit: 200
# Streams that change tracks all the time under load: over RDMA no byte is lost, repeated or moved either.
# shellcheck shell=bash disable=SC2086,SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" redis-server redis-benchmark jq
need_device "$lab_device"
export TEST_WARM=1000 TEST_LIMIT=60

for mode in blocking epoll-et select; do
	pair "$work/bare" "" "" -m $mode -n 1M
	for bound in 65536 4096 100; do
		export SHUNT_FLIP=$bound
		rm -f "$work"/flip.stat.*
		size=1M
		[ $bound -gt 1000 ] || size=100K
		[ $size = 1M ] || pair "$work/bare" "" "" -m $mode -n $size
		check "$mode, a flip after up to $bound bytes" pair "$work/flip" "$shunt_run" "$shunt_run" -m $mode -n $size
		check "$mode, $bound: every byte came" cmp "$work/bare" "$work/flip"
		flips=$(($(counter upgrades "$work"/flip.stat.*) + $(counter handbacks "$work"/flip.stat.*)))
		echo "# $mode, $bound: $flips changes of track, device $(devices_used "$work"/flip.stat.*)"
		check "$mode, $bound: there were flips" [ $flips -gt 2 ]
		unset SHUNT_FLIP
		check_device "$mode, $bound: the link is over RDMA" "$work"/flip.stat.*
	done
done
plan
