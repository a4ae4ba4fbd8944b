# limit: 200
# Streams that change tracks all the time under load: over RDMA no byte is lost, repeated or moved either.
# shellcheck shell=bash disable=SC2086,SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" redis-server redis-benchmark jq
need_device "$lab_device"
export TEST_WARM=1000 TEST_LIMIT=60

for mode in blocking epoll-et select; do
	for size in 4M:65536 1M:4096 100K:100; do
		bound=${size#*:} size=${size%:*}
		export SHUNT_FLIP=$bound
		rm -f "$work"/flip.stat.*
		pair "$work/bare" "" "" -m $mode -n $size
		check "$mode, a flip after up to $bound bytes" pair "$work/flip" "$shunt_run" "$shunt_run" -m $mode -n $size
		check "$mode, $bound: every byte came" cmp "$work/bare" "$work/flip"
		flips=$(($(counter upgrades "$work"/flip.stat.*) + $(counter handbacks "$work"/flip.stat.*)))
		echo "# $mode, $bound: $flips changes of track, device $(devices_used "$work"/flip.stat.*)"
		check "$mode, $bound: there were flips" [ $flips -gt 4 ]
		unset SHUNT_FLIP
		check_device "$mode, $bound: the link is over RDMA" "$work"/flip.stat.*
	done
done
plan
