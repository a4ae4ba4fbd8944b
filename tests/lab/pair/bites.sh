# SPDX-License-Identifier: MIT
# limit: 6000
# Does each fault of the wire do what it is for? Without Shunt: what RDMA and TCP make of it.
# shellcheck shell=bash disable=SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

# RDMA that goes on until it is told to end, in the background.
talk_begin() {
	local ask=()
	[ "$lab_self" = one ] || ask=(10.78.0.1)
	[ "$lab_self" = one ] || meet listens
	ibv_rc_pingpong -d rxe0 -g "$(gid_index rxe0)" -n 100000000 "${ask[@]}" >"$work/talk" 2>&1 &
	talk=$!
	children+=("$talk")
	[ "$lab_self" = two ] || { within somebody_listens 18515; meet listens; }
	rdma_moves
}

talk_end() {
	kill "$talk" 2>/dev/null
	wait "$talk" 2>/dev/null
	meet "the talk is over"
}

# Another packet of RDMA comes.
rdma_moves() {
	arrived=$(hw_counter rcvd_pkts)
	within has_come
}
has_come() {
	[ "$(hw_counter rcvd_pkts)" -gt "$arrived" ]
}

# Some of these counters have moved since `look`.
look() {
	seen=$(wrong_packets)
	sent=$(retransmitted)
}
wrong_packets() {
	local name sum=0
	for name in duplicate_request out_of_seq_request rcvd_seq_err completer_retry_err; do
		sum=$((sum + $(hw_counter $name)))
	done
	echo $sum
}
noticed() {
	[ "$(wrong_packets)" -gt "$seen" ]
}

# Segments of TCP.
retransmitted() {
	awk '/^Tcp:/ && $13 ~ /^[0-9]+$/ { print $13 }' /proc/net/snmp
}

has_retransmitted() {
	[ "$(retransmitted)" -gt "$sent" ]
}

# TCP comes through, again and again until it has lost something here or there.
tcp_notices() {
	wire_iperf -n 4M || return
	until between_them has_retransmitted; do
		wire_iperf -n 4M || return
	done
}

# The shortest of three round trips takes so many milliseconds at least.
far() {
	local least
	least=$(ping -q -c 3 "$theirs" 2>/dev/null || busybox ping -q -c 3 "$theirs")
	least=$(sed -n 's/.*min.*= *\([0-9]*\).*/\1/p' <<<"$least")
	[ "${least:-0}" -ge "$1" ]
}

# with FAULT COMMAND…: while it is on at both ends.
with() {
	local fault=$1 rc=0
	shift
	meet "before $fault"
	fault_on "$fault" || rc=1
	meet "$fault"
	"$@" || rc=1
	meet "after $fault"
	fault_off "$fault" || rc=1
	return "$rc"
}

for fault in loss1 loss5 reorder; do
	look
	check "$(fault_says $fault): RDMA comes through" with $fault wire_pingpong -n 150 -s 8192
	check "$(fault_says $fault): rxe has noticed, here or there" between_them noticed
	if [ $fault = reorder ]; then
		check "$(fault_says $fault): TCP comes through" with $fault wire_iperf -n 4M
	else
		check "$(fault_says $fault): TCP comes through, and has noticed" with $fault tcp_notices
	fi
done
check "$(fault_says delay): a round trip takes 100 ms" with delay far 100
check "$(fault_says delay): RDMA comes through" with delay wire_pingpong -n 5
check "$(fault_says delay): TCP comes through" with delay wire_iperf -n 1M

dropped() {
	nft list table inet lab | grep -q 'packets [1-9]'
}

# A packet that had passed the rule when it came is counted at once. The end that waits for an answer sends again, in vain.
blocked() {
	local before rc=0
	either dropped || rc=1
	before=$(hw_counter rcvd_pkts)
	wire_iperf -n 10M || rc=1
	[ "$(hw_counter rcvd_pkts)" = "$before" ] || rc=1
	return "$rc"
}
check "RDMA moves" talk_begin
check "$(fault_says block): RDMA stands, TCP moves" with block blocked
check "then RDMA moves again" rdma_moves
talk_end

is_down() {
	rdma link | grep -q "rxe0/1 state DOWN"
}

# A packet without a way out is an error of rxe's at once: its QP ends, whatever its retries are.
has_ended() {
	grep -q "Failed status local QP operation error" "$work/talk"
}

# The talk has ended, or goes on: while the link was down it was not this end's turn to send.
goes_on() {
	has_ended || has_come
}

# Takes the link down once, for as long as a turn takes many times over. Nothing comes meanwhile.
down_once() {
	local before rc=0
	fault_on down
	within is_down || rc=1
	before=$(hw_counter rcvd_pkts)
	sleep 1
	[ "$(hw_counter rcvd_pkts)" = "$before" ] || rc=1
	arrived=$before
	fault_off down
	within goes_on || rc=1
	return "$rc"
}

# No line can come while the link is down: machine one acts alone, until a send of the talk has met the link down.
downed() {
	local rc=0
	meet down
	while [ "$lab_self" = one ] && ! has_ended && [ "$rc" = 0 ]; do
		down_once || rc=1
	done
	meet up
	return "$rc"
}
check "RDMA moves" talk_begin
check "$(fault_says down): RDMA stands" downed
if [ "$lab_self" = one ]; then
	check "and the QP here has ended" has_ended
else
	check "and the QP here tries on" kill -0 "$talk"
fi
talk_end
check "a new QP works" wire_pingpong -n 100
check "TCP works" wire_iperf -n 10M
plan
