#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt doctor devices on trees that look like machines: rxe, mlx5, siw, a port that is down, MTUs that differ or are small, a
# device file that is missing or shut, no address, InfiniBand, names that hold anything. The rows of shunt doctor on them.
set -u
. "${top_srcdir:?}/tests/lib.sh"
trap 'scratch_remove' EXIT

# tree NAME: the root of a machine without devices, in $root.
tree() {
	root=$work/$1
	mkdir -p "$root/sys/class/infiniband" "$root/sys/class/infiniband_verbs" "$root/sys/class/net" \
		"$root/dev/infiniband" "$root/proc/sys/kernel"
	echo 6.1.0-fake >"$root/proc/sys/kernel/osrelease"
	: >"$root/dev/infiniband/rdma_cm"
}

# put FILE TEXT
put() {
	mkdir -p "$(dirname "$root/$1")" && printf '%s\n' "$2" >"$root/$1"
}

# device NAME TYPE NUMBER: with a device file of that number.
device() {
	put "sys/class/infiniband/$1/node_type" "$2"
	put "sys/class/infiniband/$1/fw_ver" 1.2.3
	put "sys/class/infiniband_verbs/uverbs$3/ibdev" "$1"
	: >"$root/dev/infiniband/uverbs$3"
}

# port DEVICE NUMBER STATE PHYSICAL LAYER
port() {
	local at=sys/class/infiniband/$1/ports/$2
	put "$at/state" "$3"
	put "$at/phys_state" "$4"
	put "$at/link_layer" "$5"
	put "$at/rate" '100 Gb/sec (4X EDR)'
}

# gid DEVICE PORT INDEX GID TYPE NETDEV
gid() {
	local at=sys/class/infiniband/$1/ports/$2
	put "$at/gids/$3" "$4"
	[ -z "$5" ] || put "$at/gid_attrs/types/$3" "$5"
	[ -z "$6" ] || put "$at/gid_attrs/ndevs/$3" "$6"
}

# netdev NAME MTU STATE
netdev() {
	put "sys/class/net/$1/mtu" "$2"
	put "sys/class/net/$1/operstate" "$3"
}

mapped=0000:0000:0000:0000:0000:ffff:0a00:0001
local_gid=fe80:0000:0000:0000:5054:00ff:fe12:3456

# rxe NAME: a machine with a good rxe0.
rxe() {
	tree "$1"
	device rxe0 '1: CA' 0
	put sys/class/infiniband/rxe0/parent eth0
	port rxe0 1 '4: ACTIVE' '5: LinkUp' Ethernet
	gid rxe0 1 0 $local_gid 'RoCE v2' eth0
	gid rxe0 1 1 $mapped 'RoCE v2' eth0
	netdev eth0 1500 up
}

# says CHECKS: values of the JSON by a Python expression over `d`, the device behind the soft one, and its port `p`.
says() {
	local said
	expect 0 "$shunt" doctor devices --json --root "$root"
	said=$(python3 -c '
import json, sys
said = json.load(sys.stdin)
assert said["schema"] == 1 and said["devices"][0]["name"] == "soft", said
d = said["devices"][1]
p = d["ports"][0] if d["ports"] else None
print(bool(eval(sys.argv[1])))' "$1" <<<"$out")
	[ "$said" = True ] || problem "$1: $said in: $out"
}

expect 0 "$shunt" doctor devices --help
expect 2 "$shunt" doctor devices --wrong
expect 2 "$shunt" doctor devices something
expect 0 "$shunt" doctor devices
has "$out" '^soft \(shared memory\): Shunt can use it$'
expect 0 "$shunt" doctor devices --json

tree none
expect 0 "$shunt" doctor devices --root "$root"
has "$out" '^no RDMA device'
expect 0 "$shunt" doctor --root "$root"
has "$out" 'there is no RDMA device'
expect 1 "$shunt" doctor --strict --root "$root"

# A device can be used only where rdma-core is installed.
usable=True
expect 0 "$shunt" doctor --root "$root"
rxe probe
expect 0 "$shunt" doctor devices --root "$root"
grep -q 'rdma-core is not there' <<<"$out" && usable=False

rxe rxe
says "d['usable'] is $usable and d['driver'] == 'rdma_rxe' and p['state'] == 'ACTIVE' and p['phys_state'] == 'LinkUp'"
says "p['mtu'] == 1024 and p['mtu_from'] == 'netdev' and p['gid_used'] == 1 and p['gids'][1]['gid'] == '10.0.0.1'"
says "p['netdevs'] == [{'name': 'eth0', 'here': True, 'mtu': 1500, 'state': 'up'}] and d['uverbs_error'] == ''"
expect 0 "$shunt" doctor devices --root "$root"
narrow "$out"
has "$out" '^    port      1: ACTIVE, LinkUp, Ethernet, 100 Gb/sec \(4X EDR\), MTU 1024 \(by its netdev\)$'
has "$out" '^    gid       1 10.0.0.1 RoCE v2 eth0 \(used\)$'

# memlock: the rings of a link have no room in it.
if [ $usable = True ]; then
	expect 0 bash -c "ulimit -l 64; exec '$shunt' doctor --root '$root'"
	has "$out" '^  warn  memlock .*64 KiB'
	has "$out" 'do: raise ulimit -l'
	expect 1 bash -c "ulimit -l 64; exec '$shunt' doctor --strict --root '$root'"
fi

# The connection manager's module.
rm "$root/dev/infiniband/rdma_cm"
expect 1 "$shunt" doctor --root "$root"
has "$out" '^  bad   rdma_cm '
has "$out" 'modprobe rdma_ucm'

tree mlx5
device mlx5_0 '1: CA' 0
mkdir -p "$root/sys/bus/pci/drivers/mlx5_core" "$root/sys/devices/pci0/net/ens1"
ln -s ../../bus/pci/drivers/mlx5_core "$root/sys/devices/pci0/driver"
ln -s ../../../devices/pci0 "$root/sys/class/infiniband/mlx5_0/device"
put sys/devices/pci0/numa_node 1
port mlx5_0 1 '4: ACTIVE' '5: LinkUp' Ethernet
gid mlx5_0 1 0 $local_gid 'IB/RoCE v1' ens1
gid mlx5_0 1 1 $local_gid 'RoCE v2' ens1
gid mlx5_0 1 2 0000:0000:0000:0000:0000:0000:0000:0000 '' ''
netdev ens1 9000 up
says "d['usable'] is $usable and d['driver'] == 'mlx5_core' and d['numa'] == 1 and p['mtu'] == 4096 and p['gid_used'] == 1"
says "len(p['gids']) == 2"
# A second network device of the port, a VLAN, with another MTU.
gid mlx5_0 1 3 $mapped 'RoCE v2' ens1.7
netdev ens1.7 1500 up
says "'different MTUs, 9000 and 1500' in p['remark'] and p['mtu'] == 1024"
expect 0 "$shunt" doctor --root "$root"
[ $usable = False ] || has "$out" '^  warn  port .*different MTUs'
# The device file may not be opened (root may open anything, so it is a folder).
rm "$root/dev/infiniband/uverbs0" && mkdir "$root/dev/infiniband/uverbs0"
says "not d['usable'] and 'uverbs0 cannot be opened: Is a directory' in d['why'] and d['do']"
rmdir "$root/dev/infiniband/uverbs0"
says "not d['usable'] and 'cannot be opened: No such file' in d['why'] and '--device=' in d['do']"
rm -r "$root/sys/class/infiniband_verbs/uverbs0"
says "not d['usable'] and 'no uverbs device' in d['why'] and d['do'] == 'modprobe ib_uverbs'"

rxe small
netdev eth0 600 up
says "d['ports'][0]['mtu'] == 256 and 'RDMA packets have 256 bytes only' in p['remark']"

tree siw
device siw0 '4: RNIC' 0
port siw0 1 '4: ACTIVE' '5: LinkUp' Ethernet
gid siw0 1 0 5254:0012:3456:0000:0000:0000:0000:0000 '' eth0
netdev eth0 1500 up
says "d['usable'] is $usable and d['iwarp'] and d['driver'] == 'siw'"
if [ $usable = True ] && [ "$(ulimit -l)" = unlimited ]; then # else it is said of the memory that can be locked
	says "'directory' in d['remark'] and 'firewall' in d['do']"
	expect 0 "$shunt" doctor --root "$root"
	has "$out" '^  warn  device +siw0 .*iWARP'
fi

rxe down
port rxe0 1 '1: DOWN' '3: Disabled' Ethernet
netdev eth0 1500 down
says "not d['usable'] and 'port 1 is DOWN (physical state: Disabled)' == p['why']"
[ $usable = False ] || says "d['why'] == p['why'] and 'ip link set eth0 up' in d['do']"

rxe mute
rm -r "$root/sys/class/infiniband/rxe0/ports/1/gids"
says "not d['usable'] and 'has no address' in p['why']"

rxe elsewhere
rm -r "$root/sys/class/net/eth0"
says "p['netdevs'][0]['here'] is False"

tree ib
device mlx4_0 '1: CA' 3
port mlx4_0 1 '2: INIT' '5: LinkUp' InfiniBand
gid mlx4_0 1 0 fe80:0000:0000:0000:0002:c903:0000:0001 '' ''
port mlx4_0 2 '4: ACTIVE' '5: LinkUp' InfiniBand
gid mlx4_0 2 0 fe80:0000:0000:0000:0002:c903:0000:0002 '' ''
says "d['usable'] is $usable and not p['usable'] and 'subnet manager' in p['do'] and d['ports'][1]['usable'] and d['uverbs'] == 'uverbs3'"

# Names and texts that hold anything.
tree hostile
device $'x\e]0;y\a' $'1: CA' 0
port $'x\e]0;y\a' 1 $'4: ACTIVE\e[2J' $'\xff\xfe' $'Ethernet'
gid $'x\e]0;y\a' 1 0 'no address at all' $'\e' $'../../etc'
expect 0 "$shunt" doctor devices --root "$root"
! LC_ALL=C grep -q '[^ -~]' <<<"$out" || problem "unprintable: $(cat -v <<<"$out")"
expect 0 "$shunt" doctor devices --json --root "$root"
python3 -m json.tool <<<"$out" >/dev/null || problem "no JSON: $out"

# A device that is tried: the cards of tests/fake (tests/calls/cards.sh runs programs over them).
library=$PWD/tests/fake
probed() { # CARD STATUS FILTER: of the probe's JSON
	[ -e "$library/libibverbs.so.1" ] || return 0
	expect "$2" env FAKE_VERBS="$1" LD_LIBRARY_PATH="$library" "$shunt" doctor devices --probe --json
	jq -e ".probe | $3" <<<"$out" >/dev/null || problem "$1: $out"
}
probed mlx5 0 '.usable and .got.inline == 256 and .got.completion_queue == 8191 and ([.trials[] | select(.ok | not)] == [])'
probed irdma-e810 0 '.got.inline == 96 and ([.trials[].name] | index("FETCH_ADD") | not)'
probed mana 0 '.usable and .got.inline == 0 and (.verdict | test("fetches each")) and .trials[0].result == "local protection error"'
probed efa 1 '.error | test("reliable connections")'
if [ -e "$library/libibverbs.so.1" ]; then
	expect 0 env FAKE_VERBS=mlx5 LD_LIBRARY_PATH="$library" "$shunt" doctor devices --probe=fake0
	has "$out" '^fake0: Shunt can use it$'
	expect 1 env FAKE_VERBS=mlx5 LD_LIBRARY_PATH="$library" "$shunt" doctor devices --probe=other
	has "$out" 'there is no RDMA device other'
fi

# An old kernel, and a clock that is slow.
tree old
echo 4.19.0-26-amd64 >"$root/proc/sys/kernel/osrelease"
put sys/devices/system/clocksource/clocksource0/current_clocksource hpet
expect 1 "$shunt" doctor --root "$root"
has "$out" '^  bad   kernel +Linux 4.19.0-26-amd64 is older than 5.11'
has "$out" '^  warn  clock '
finish
