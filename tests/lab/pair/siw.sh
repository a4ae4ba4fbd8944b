# SPDX-License-Identifier: MIT
# limit: 3600
# module: siw
# iWARP between two machines: the same programs over siw. No machine has a device of RoCE meanwhile.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_DEVICE=verbs SHUNT_CLAIM_MS=60000 SHUNT_SLOW_MS=0 SHUNT_DEAD_MS=10000
need iperf3 jq rping
need_shunt

# restore: what other tests find.
restore() {
	rdma link delete siw0
	rdma link add rxe0 type rxe netdev eth0
	rdma link add rxe1 type rxe netdev eth1
}

rdma link delete rxe0 && rdma link delete rxe1
rdma link add siw0 type siw netdev eth0 || { restore; skip_all "this kernel has no siw"; }
check "rping over siw" wire_rping 10.78.0.1 20
rdma link
ibv_devinfo -v >&2
restore
plan
