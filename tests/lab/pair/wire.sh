# SPDX-License-Identifier: MIT
# Two machines and the wire between them, without Shunt: does it carry RDMA and TCP?
# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

packets() {
	cat /sys/class/net/eth0/statistics/rx_packets
}

check "the device is up" grep -q "link rxe0/1 state ACTIVE" <(rdma link)
before=$(packets)
check "ibv_rc_pingpong" wire_pingpong
check "which went over the wire" [ $(($(packets) - before)) -gt 2000 ]
check "ibv_rc_pingpong with events, messages of 16 KiB" wire_pingpong -e -s 16384 -n 200
check "rping over IPv4" wire_rping 10.78.0.1 100
check "rping over IPv6" wire_rping fd78::1 100
check "iperf3" wire_iperf -t 2
[ "$lab_self" = one ] || echo "# iperf3: $(iperf_received) bytes in 2 s"
check "iperf3 -R" wire_iperf -t 2 -R
[ "$lab_self" = one ] || echo "# iperf3 -R: $(iperf_received) bytes in 2 s"
plan
