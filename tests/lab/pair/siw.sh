# SPDX-License-Identifier: MIT
# limit: 3600
# module: siw
# iWARP between two machines (siw): the link carries redis, iperf3 and the pair that checks each byte. No machine has another
# RDMA device meanwhile. What a program listens on sees no connection but its clients'.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
share=99	# per cent
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=info
need "$transfer" redis-server redis-benchmark iperf3 jq rping
need_shunt

rdma link delete rxe0 && rdma link delete rxe1
rdma link add siw0 type siw netdev eth0 2>/dev/null
between_them test -e /sys/class/infiniband/siw0 || {
	rdma link add rxe0 type rxe netdev eth0
	rdma link add rxe1 type rxe netdev eth1
	echo "1..0 # SKIP this kernel has no siw"
	exit 77
}

is_on() { # DEVICE
	"$shunt" stat --json "$pid" | jq -e --arg device "$1" '[.. | .lanes? // empty | arrays | .[].device] | unique == [$device]' >/dev/null
}

count() { # NAME
	local name=$1 since_tcp since_link by_tcp by_link
	check "$name: the link carries it" within has_carried 1000000
	since_tcp=$tcp since_link=$link
	check "$name: and goes on" within has_carried $((since_link + 8000000))
	by_tcp=$((tcp - since_tcp)) by_link=$((link - since_link))
	echo "# $name: $by_link bytes by the link, $by_tcp by TCP, device $device"
	check "$name: at least $share % of the bytes by the link" [ $((100 * by_link)) -ge $((share * (by_link + by_tcp))) ]
	check "$name: the link is over siw" is_on siw0
}

check "rping over siw" wire_rping 10.78.0.1 20
load iperf3 iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400
load "iperf3 -R" iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400 -R
load redis redis-server --port $port --bind 10.78.0.1 --protected-mode no --save "" --appendonly no --dir "$work" -- \
	redis-benchmark -h 10.78.0.1 -p $port -t set -c 4 -n 1000000000 -d 4096

# Its queue pair dies in the midst of a transfer whose every byte is checked; the stream returns to a new one.
export SHUNT_STATS=$work/stat.%p SHUNT_TUNE=${SHUNT_TUNE-},return_ms=100
[ "$lab_self" = one ] || export SHUNT_FAULT="kill:bytes=512K,count=1"
check "a queue pair dies: every byte comes" between $shunt_run "$transfer" server -a 10.78.0.1 -p $port -n 80M -- \
	somebody_listens $port -- $shunt_run "$transfer" client $port -a 10.78.0.1 -n 80M
[ "$lab_self" = one ] || check "and the stream has returned to a link" jq -es 'map(.counters.streams_returned // 0) | add >= 1' "$work"/stat.*
[ "$lab_self" = one ] || jq -c '.counters' "$work"/stat.* >&2

rdma link delete siw0
rdma link add rxe0 type rxe netdev eth0
rdma link add rxe1 type rxe netdev eth1
plan
