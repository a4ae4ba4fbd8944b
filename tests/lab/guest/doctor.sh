# SPDX-License-Identifier: MIT
# limit: 1200
# shunt doctor devices and shunt doctor on real devices (rxe): what libibverbs says of them, a port that is down, small packets,
# little memory to lock, no device.
# shellcheck shell=bash disable=SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"
need jq
need_shunt
command=$builddir/tools/shunt

# device FILTER: of rxe0's object.
device() {
	"$command" doctor devices --json >"$work/devices" && cat "$work/devices" >&2 &&
		jq -e ".devices[] | select(.name == \"rxe0\") | $1" "$work/devices" >/dev/null
}

# row PATTERN: among the rows of the doctor.
row() {
	"$command" doctor >"$work/rows"
	cat "$work/rows" >&2
	sed -E ':a;N;$!ba;s/\n {21,}/ /g' "$work/rows" | grep -qE "$1"
}

row_with_little_memory() (
	ulimit -l 64
	row '^  warn  memlock .*64 KiB.* do: raise ulimit -l'
)

check "rxe0 can be used" device '.usable and .driver == "rdma_rxe" and .uverbs_error == ""'
check "libibverbs has its MTU and its atomics" device '.ports[0].mtu_from == "verbs" and .ports[0].mtu == 1024 and .atomics == "within the device"'
check "its addresses" device '(.ports[0].netdevs[0].addresses | index("10.77.0.1")) and (.ports[0] | .gids[.gid_used].gid // "" | length > 0)'
probe() {
	"$command" doctor devices --probe=rxe0 --json >"$work/probe"
	cat "$work/probe" >&2
	jq -e '.probe | .usable and .got.inline > 0 and .numbers.round_trip_ns > 0' "$work/probe" >/dev/null
}
check "and it carries what is sent to itself" probe
check "the doctor finds rdma-core" row '^  ok    rdma-core '
check "the connection manager" row '^  ok    rdma_cm '
check "and the device" row '^  ok    device +rxe0 \(rdma_rxe\) can be used'
check "little memory to lock is named" row_with_little_memory

ip link set v0 mtu 600
check "small packets are named" device '.ports[0].mtu <= 512 and (.ports[0].remark | test("bytes only"))'
ip link set v0 mtu 1500

ip link set v0 down
check "a port that is down is named" device '(.usable | not) and (.why | test("port 1 is DOWN")) and (.do | test("ip link set v0 up"))'
check "by the doctor, too" row '^  warn  device +rxe0 is not used: port 1 is DOWN'
ip link set v0 up

rdma link delete rxe0 && rdma link delete rxe1
check "no device is named" row '^  warn  device +there is no RDMA device'
# The tests that follow need them.
check "the devices are back" eval 'rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1'
plan
