# SPDX-License-Identifier: MIT
# limit: 3600
# XR-E6, the part that needs RDMA: packets come out of order, and the counters of the device in `shunt stat`
# say so, as the table of docs/TROUBLESHOOTING.md promises. While the wire is sound they do not move.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
grown=
enough=2000000	# bytes by the link in each condition
# The stream stays on the link whatever the wire does to it.
export WITHIN=1200 SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=60000 SHUNT_DEVICE=verbs SHUNT_LOG=info
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

# By how much they have grown while enough went by the link.
grows() { # NAME
	local before
	within look "$wrong" || return
	before=$number
	carries || return
	within look "$wrong" || return
	grown=$((number - before))
	echo "# $lab_self: $1: out of order $grown"
}

under() { # FAULT
	meet "before $1"
	fault_on $1
	meet "$1"
	grows "$(fault_says $1)"
	meet "enough of $1"
	fault_off $1
}

names_it() {
	[ "$grown" -gt 0 ]
}

begin
check "the link carries it" carries
meet "on the link"
grows "the wire is sound"
meet "enough without a fault"
check "the wire is sound: nothing out of order" [ "$grown" = 0 ]
enough=500000
under reorder
check "$(fault_says reorder): the counters name it, here or there" between_them names_it
[ "$lab_self" = one ] || kill "$pid"
meet "it is over"
kill "$pid" 2>/dev/null
plan
