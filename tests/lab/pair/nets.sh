# SPDX-License-Identifier: MIT
# limit: 1800
# module: 8021q
# module: bonding
# Networks that are no plain wire: a VLAN, a bonded interface, and devices that belong to one network namespace (rdma system
# set netns exclusive). A connection's link goes by the device that leads there; where none does it stays on TCP.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=info
need redis-server python3 jq
need_shunt
last=${mine##*.}
inside=()	# before each command of a network namespace

is_on() { # PID DEVICE
	"${inside[@]}" "$shunt" stat --json "$1" | jq -e --arg device "$2" '[.. | .lanes? // empty | arrays | .[].device] | unique == [$device]' >/dev/null
}

by_link() { # PID
	[ "$("${inside[@]}" "$shunt" stat --json "$1" 2>/dev/null | jq '.[0].totals.tx.link')" -gt 1000000 ] 2>/dev/null
}

by_tcp() { # PID
	"${inside[@]}" "$shunt" stat --json "$1" 2>/dev/null | jq -e '.[0].totals.tx.tcp > 1000000 and .[0].totals.tx.link == 0' >/dev/null
}

# serves ADDRESS: machine one has a server there.
serves() {
	local address=$1
	if [ "$lab_self" = one ]; then
		"${inside[@]}" $shunt_run redis-server --port $port --bind "$address" --protected-mode no --save "" --dir "$work" >/dev/null 2>"$work/err" &
		server=$!
		children+=("$server")
		check "$address: somebody listens" within "${inside[@]}" grep -q ":$(printf %04X $port) 0*:0000 0A" /proc/net/tcp
	fi
	meet "listens at $address"
}

# asks ADDRESS NAME CHECK [DEVICE]: machine two's client, for which the check holds.
asks() {
	local address=$1 name=$2
	if [ "$lab_self" = two ]; then
		"${inside[@]}" $shunt_run python3 "${BASH_SOURCE%/*}/keys.py" "$address" $port >"$work/said" 2>"$work/said.err" &
		client=$!
		children+=("$client")
		check "$name" within "$3" "$client"
		[ $# = 3 ] || check "$name, on $4" within is_on "$client" "$4"
		kill "$client"
		check "$name: every answer was right" wait "$client"
		cat "$work/said.err" >&2
	fi
	meet "asked at $address"
	[ "$lab_self" = two ] || { kill "$server"; wait "$server"; cat "$work/err" >&2; } 2>/dev/null
}

ip link add link eth0 name eth0.5 type vlan id 5
ip address add "10.81.0.$last/24" dev eth0.5
ip link set eth0.5 up
meet vlan
serves 10.81.0.1
asks 10.81.0.1 "by a VLAN the link carries" by_link rxe0
ip link delete eth0.5

rdma link delete rxe1
ip link set eth1 down
ip address flush dev eth1
ip link add bond0 type bond mode active-backup miimon 100
ip link set eth1 master bond0
ip address add "10.82.0.$last/24" dev bond0
ip link set bond0 up
rdma link add rxe2 type rxe netdev bond0
meet bond
serves 10.82.0.1
asks 10.82.0.1 "by a bonded interface the link carries" by_link rxe2
rdma link delete rxe2

# The interface of a namespace has no device, because the device stays where it is.
check "devices belong to one namespace each" rdma system set netns exclusive
meet exclusive
serves 10.78.0.1
asks 10.78.0.1 "in the namespace of the device the link carries" by_link rxe0
ip netns add other
ip link set eth1 nomaster
ip link delete bond0
ip link set eth1 netns other
ip -n other link set lo up
ip -n other address add "10.83.0.$last/24" dev eth1
ip -n other link set eth1 up
meet other
inside=(ip netns exec other)
serves 10.83.0.1
asks 10.83.0.1 "in another namespace TCP carries" by_tcp
ip -n other link set eth1 netns 1
ip netns delete other
rdma system set netns shared

ip address add "10.79.0.$last/24" dev eth1
ip link set eth1 up
rdma link add rxe1 type rxe netdev eth1
plan
