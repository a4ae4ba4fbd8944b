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
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000
need redis-server redis-benchmark iperf3 jq
need_shunt

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

load iperf3 iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400
[ -z "${LAB_QUICK-}" ] || plan
load "iperf3 -R" iperf3 -s -1 -p $port -- iperf3 -c 10.78.0.1 -p $port -t 86400 -R
load redis redis-server --port $port --bind 10.78.0.1 --protected-mode no --save "" --appendonly no --dir "$work" -- \
	redis-benchmark -h 10.78.0.1 -p $port -t set -c 4 -n 1000000000 -d 4096
plan
