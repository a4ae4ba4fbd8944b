# SPDX-License-Identifier: MIT
# limit: 3600
# XR-E6, the part that needs RDMA: packets come out of order, or are lost, and the counters of the device in `shunt stat`
# say so, as README.md's table of symptoms promises. While the wire is sound they do not move.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
enough=2000000	# bytes by the link without a fault
# The stream stays on the link whatever the wire does to it.
export WITHIN=1200 SHUNT_CLAIM_MS=60000 SHUNT_SLOW_MS=0 SHUNT_DEAD_MS=60000 SHUNT_DEVICE=verbs SHUNT_LOG=info
need iperf3 jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

begin() {
	if [ "$lab_self" = one ]; then
		$shunt_run iperf3 -s -1 -p $port >"$work/said" 2>&1 &
		pid=$!
		children+=("$pid")
		within somebody_listens $port
		meet listens
	else
		meet listens
		$shunt_run iperf3 -c "$theirs" -p $port -t 86400 >"$work/said" 2>&1 &
		pid=$!
		children+=("$pid")
	fi
}

look() { # FILTER: a number of this machine's process, in $number
	number=$("$shunt" stat --json "$pid" 2>/dev/null | jq ".[0] | $1")
	[[ $number =~ ^[0-9]+$ ]]
}

moved() {
	look '.totals | .tx.link + .rx.link'
}

has_moved() { # SINCE
	moved && [ "$number" -gt $(($1 + enough)) ]
}

carries() {
	within moved && within has_moved "$number"
}

# What the table names: requests that came out of order, and answers that did.
wrong='[.devices[].hw_counters // {} | .out_of_seq_request // 0, .rcvd_seq_err // 0, .packet_seq_err // 0] | add // 0'

# They have grown since `before`.
names_it() {
	look "$wrong" && [ "$number" -gt "$before" ]
}

sound() {
	within look "$wrong"
	before=$number
	carries && ! names_it
}

# Until one of the two machines says so.
under() { # FAULT
	local rc=0
	meet "before $1"
	within look "$wrong"
	before=$number
	fault_on $1
	meet "$1"
	either names_it || rc=1
	echo "# $lab_self: $(fault_says $1): out of order $((number - before))"
	fault_off $1
	meet "after $1"
	return $rc
}

begin
check "the link carries it" carries
meet "on the link"
check "the wire is sound: nothing out of order" sound
for fault in reorder loss5; do
	check "$(fault_says $fault): the counters name it, here or there" under $fault
done
[ "$lab_self" = one ] || kill "$pid"
meet "it is over"
kill "$pid" 2>/dev/null
plan
