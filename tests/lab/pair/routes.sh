# SPDX-License-Identifier: MIT
# limit: 3600
# Four ways lead from one machine to the other: by two wires, and by two networks and IPv6 on the first. A connection's link
# takes the device and the address that its route does; one process has links by all of them at the same time. The packets
# of the one whose client has SHUNT_TOS say so, in both directions. Channels come by the ports that SHUNT_PORTS has.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=info
need redis-server python3 jq nft
need_shunt

# is_on PID DEVICES: its lanes are there.
is_on() {
	local devices
	devices=$("$shunt" stat --json "$1" | jq -r '[.. | .lanes? // empty | arrays | .[].device] | unique | join(" ")')
	[ "$devices" = "$2" ] || ! echo "$1 is on '$devices'" >&2
}

has_links() { # PID COUNT
	[ "$("$shunt" stat --json "$1" | jq '.[0].links | length')" = "$2" ]
}

has_sent() { # DEVICE PACKETS
	[ "$(sent "$1")" -ge "$2" ]
}

sent() {
	hw_counter sent_pkts "$1"
}

by_link() {
	[ "$("$shunt" stat --json "$1" 2>/dev/null | jq '.[0].totals.tx.link')" -gt 1000000 ] 2>/dev/null
}

# asks ADDRESS DEVICE: a client that goes this way.
asks() {
	$shunt_run python3 "${BASH_SOURCE%/*}/keys.py" "$1" $port >"$work/$1" 2>"$work/$1.err" &
	pids+=($!)
	children+=($!)
	check "by $1: it is on the link" within by_link "${pids[-1]}"
	check "by $1: which is on $2" within is_on "${pids[-1]}" "$2"
}

# Packets of RDMA that come in, by the network that they come from; of these, those of class AF31. Named counters would
# want another module of the kernel.
nft -f - <<-END
	table inet lab {
		chain in {
			type filter hook input priority 0
			ip saddr 10.78.0.0/24 udp dport 4791 counter comment "first"
			ip saddr 10.78.0.0/24 udp dport 4791 ip dscp af31 counter comment "first_af31"
			ip6 saddr fd78::/64 udp dport 4791 counter comment "v6"
			ip saddr 10.80.0.0/24 udp dport 4791 counter comment "third"
			ip saddr 10.80.0.0/24 udp dport 4791 ip dscp af31 counter comment "third_af31"
		}
	}
END

came() { # COMMENT
	nft -j list table inet lab |
		jq ".nftables[].rule? // empty | select(.comment == \"$1\").expr[].counter? // empty | .packets"
}

# All but those of the connection manager.
most_are_af31() {
	[ "$(came first_af31)" -ge 500 ] && [ "$(came first_af31)" -ge $(($(came first) * 9 / 10)) ]
}

before=("$(sent rxe0)" "$(sent rxe1)")
pids=()
if [ "$lab_self" = one ]; then
	SHUNT_PORTS=7100-7109 $shunt_run redis-server --port $port --bind 0.0.0.0 :: --protected-mode no --save "" --dir "$work" >/dev/null 2>"$work/err" &
	server=$!
	children+=("$server")
	check "somebody listens" within somebody_listens $port
fi
meet listens
if [ "$lab_self" = two ]; then
	SHUNT_TOS=104 asks 10.78.0.1 rxe0
	asks 10.79.0.1 rxe1
	asks 10.80.0.1 rxe0
	asks fd78::1 rxe0
fi
meet linked
if [ "$lab_self" = one ]; then
	check "the server has links on both" within is_on "$server" "rxe0 rxe1"
	check "as many as there are clients" within has_links "$server" 4
	check "whose channels have come by one port of IPv4" test "$(ss -H4tn sport = :7100 | wc -l)" = 3
	check "and by one of IPv6" test "$(ss -H6tn 'sport >= :7100 and sport <= :7109' | wc -l)" = 1
fi
check "rxe0 has sent" within has_sent rxe0 $((before[0] + 500))
check "rxe1 has sent" within has_sent rxe1 $((before[1] + 500))
check "packets by the first network have the class of SHUNT_TOS" within most_are_af31
check "no other packets have" test "$(came third_af31)" = 0
check "though there are some" test "$(came third)" -ge 500
check "there are some of IPv6" test "$(came v6)" -ge 500
meet seen
if [ "$lab_self" = two ]; then
	kill "${pids[@]}"
	for pid in "${pids[@]}"; do
		check "every answer was right" wait "$pid"
	done
	cat "$work"/*:1.err "$work"/*.1.err >&2
fi
meet over
[ "$lab_self" = two ] || cat "$work/err" >&2
plan
