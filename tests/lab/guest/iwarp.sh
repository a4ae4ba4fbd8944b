# SPDX-License-Identifier: MIT
# limit: 3600
# module: siw
# Plain programs over iWARP (siw) in one machine: their transcripts are those of a bare run, as calls.sh has them over rxe.
# The connection manager takes the first device of a network interface, so there is no other meanwhile.
# shellcheck shell=bash disable=SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

rdma link add siw0 type siw netdev v0 2>/dev/null || {
	echo "1..0 # SKIP this kernel has no siw"
	exit 77
}
rdma link delete rxe0 && rdma link delete rxe1
LAB_DEVICE=verbs:siw0 bash "${BASH_SOURCE%/*}/calls.sh"
rc=$?
rdma link delete siw0
rdma link add rxe0 type rxe netdev v0
rdma link add rxe1 type rxe netdev v1
exit $rc
