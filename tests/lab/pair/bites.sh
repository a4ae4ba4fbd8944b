# limit: 1200
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
	within rdma_moves
}

talk_end() {
	kill "$talk" 2>/dev/null
	wait "$talk" 2>/dev/null
	meet "the talk is over"
}

# Does a packet of RDMA come within half a second?
rdma_moves() {
	local before
	before=$(hw_counter rcvd_pkts)
	sleep 0.5
	[ "$(hw_counter rcvd_pkts)" -gt "$before" ]
}

rdma_stands() {
	! rdma_moves
}

# Some of these counters have moved since `look`.
look() {
	seen=$(wrong_packets)
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

retransmitted() {
	awk '/^Tcp:/ && $13 ~ /^[0-9]+$/ { print $13 }' /proc/net/snmp
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
	sent=$(retransmitted)
	check "$(fault_says $fault): RDMA comes through" with $fault wire_pingpong -n 150 -s 8192
	sleep 0.1
	meet look
	check "$(fault_says $fault): rxe has noticed, here or there" between_them noticed
	check "$(fault_says $fault): TCP comes through" with $fault wire_iperf -t 1
	[ $fault = reorder ] || check "$(fault_says $fault): TCP has noticed" between_them [ "$(retransmitted)" -gt "$sent" ]
done
check "$(fault_says delay): a round trip takes 100 ms" with delay far 100
check "$(fault_says delay): RDMA comes through" with delay wire_pingpong -n 5
check "$(fault_says delay): TCP comes through" with delay wire_iperf -n 1M

dropped() {
	nft list table inet lab | grep -q 'packets [1-9]'
}

blocked() {
	local rc=0
	rdma_stands && rdma_stands || rc=1
	meet "TCP"
	wire_iperf -n 10M || rc=1
	between_them dropped || rc=1
	return "$rc"
}
check "RDMA moves" talk_begin
check "$(fault_says block): RDMA stands, TCP moves" with block blocked
check "then RDMA moves again" within rdma_moves
talk_end

# No line can come while the link is down: machine one waits alone.
downed() {
	local rc=0
	meet down
	if [ "$lab_self" = one ]; then
		fault_on down
		sleep 1
		rdma_stands || rc=1
		rdma link | grep -q "rxe0/1 state DOWN" || rc=1
		sleep 1.5
		fault_off down
	fi
	meet up
	return "$rc"
}
check "RDMA moves" talk_begin
check "$(fault_says down): RDMA stands" downed
# A packet without a way out is an error of rxe's at once: its QP ends, whatever its retries are.
if [ "$lab_self" = one ]; then
	check "and the QP here has ended" within grep -q "Failed status local QP operation error" "$work/talk"
else
	check "and the QP here tries on" kill -0 "$talk"
fi
talk_end
check "a new QP works" wire_pingpong -n 100
check "TCP works" wire_iperf -n 10M
plan
