# SPDX-License-Identifier: MIT
# limit: 300
# Are the devices there, as a program sees them?
# shellcheck shell=bash source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

ibv_devinfo -v >/tmp/lab/devinfo
for device in rxe0 rxe1; do
	check "$device is up" grep -q "link $device/1 state ACTIVE" <(rdma link)
	check "ibv_devinfo sees $device" grep -q "hca_id:.*$device" /tmp/lab/devinfo
	check "$device has an address" [ "$(gid_index $device)" ]
done
check "two ports are active" [ "$(grep -c "state:.*PORT_ACTIVE" /tmp/lab/devinfo)" = 2 ]
check "the connection manager is there" [ -c /dev/infiniband/rdma_cm ]
plan
