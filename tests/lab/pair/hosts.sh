# SPDX-License-Identifier: MIT
# limit: 3600
# iperf3 and redis between two machines, shunted at both ends: once the link carries a load, 99 % of its bytes go by RDMA.
# The client's statistics say so, and the packets that its device has counted could have carried them. With LAB_QUICK one iperf3.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
share=99	# per cent
before=1000000	# bytes that the link has carried when counting begins
enough=8000000	# bytes that are counted, of both directions
export SHUNT_DEVICE=verbs SHUNT_CLAIM_MS=60000 SHUNT_SLOW_MS=0 SHUNT_DEAD_MS=10000
need redis-server redis-benchmark iperf3 jq
need_shunt

# Bytes of both directions of the process $pid by TCP, by the link, and its device, in $tcp, $link and $device. A process that
# is busy may not answer.
look() {
	read -r tcp link device < <("$shunt" stat --json "$pid" 2>/dev/null |
		jq -r '.[0] | "\(.totals.tx.tcp + .totals.rx.tcp) \(.totals.tx.link + .totals.rx.link) \(.device)"')
	[[ "$tcp $link" =~ ^[0-9]+\ [0-9]+$ ]]
}

has_carried() { # BYTES
	look && [ "$link" -ge "$1" ]
}

packets() {
	echo $(($(hw_counter sent_pkts) + $(hw_counter rcvd_pkts)))
}

# The packets are counted for longer than the bytes.
count() { # NAME
	local name=$1 sent wrong since_tcp since_link by_tcp by_link
	check "$name: the link carries it" within has_carried $before
	sent=$(packets) wrong=$(wrong_of_rxe)
	within look
	since_tcp=$tcp since_link=$link
	check "$name: and goes on" within has_carried $((since_link + enough))
	sent=$(($(packets) - sent))
	by_tcp=$((tcp - since_tcp)) by_link=$((link - since_link))
	echo "# $name: $by_link bytes by the link, $by_tcp by TCP, $sent packets of rxe, device $device"
	check "$name: at least $share % of the bytes by the link" [ $((100 * by_link)) -ge $((share * (by_link + by_tcp))) ]
	check "$name: the link is over RDMA" [ "${device%%:*}" = verbs ]
	check "$name: the packets of rxe can have carried them" [ $((sent * 1024)) -ge $by_link ]
	check "$name: rxe has missed nothing" [ "$(wrong_of_rxe)" = "$wrong" ]
}

# load NAME SERVER… -- CLIENT…: the server on machine one, on two a client that runs until enough is counted.
load() {
	local name=$1 serve=()
	shift
	while [ "$1" != -- ]; do serve+=("$1") && shift; done
	shift
	[ "$lab_self" = two ] || set -- "${serve[@]}"
	[ "$lab_self" = one ] || meet "$name listens"
	$shunt_run "$@" >"$work/said" 2>&1 &
	pid=$!
	children+=("$pid")
	if [ "$lab_self" = one ]; then
		check "$name: the server listens" within somebody_listens $port
		meet "$name listens"
	else
		count "$name"
		kill "$pid"
	fi
	meet "$name is counted"
	{ kill "$pid"; wait "$pid"; } 2>/dev/null
}

load iperf3 iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400
[ -z "${LAB_QUICK-}" ] || plan
load "iperf3 -R" iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400 -R
load redis redis-server --port $port --bind 10.78.0.1 --protected-mode no --save "" --appendonly no --dir "$work" -- \
	redis-benchmark -h 10.78.0.1 -p $port -t set -c 4 -n 1000000000 -d 4096
plan
