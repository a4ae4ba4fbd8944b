# SPDX-License-Identifier: MIT
# limit: 2400
# A machine without libibverbs, and one without devices: everything works, and shunt stat says why there is no RDMA.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
# What is hidden is so for this test alone.
[ "${lab_hidden-}" ] || exec unshare -m env lab_hidden=1 bash "$0"
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" jq
need_shunt
export TEST_WARM=100 TEST_LIMIT=400

# The folder of libraries without these: what a whiteout of an overlay covers is not there.
library_hide() {
	local libraries
	libraries=$(dirname "$(ldconfig -p | sed -n 's/.*libibverbs.so.1.* => //p' | head -n 1)")
	mkdir -p "$work/mask" && mknod "$work/mask/libibverbs.so.1" c 0 0 && mknod "$work/mask/librdmacm.so.1" c 0 0 || return
	mount -t overlay -o "lowerdir=$work/mask:$libraries" overlay "$libraries" || return
	! ibv_devices >/dev/null 2>&1
}

library_show() {
	umount -l "$(findmnt -rn -t overlay -o TARGET | tail -n 1)" && ibv_devices >/dev/null
}

devices_remove() {
	rdma link delete rxe0 && rdma link delete rxe1 && [ ! -e /sys/class/infiniband/rxe0 ]
}

devices_make() {
	rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1 &&
		within grep -q "link rxe0/1 state ACTIVE" <(rdma link)
}

# transfer_same NAME
transfer_same() {
	pair "$work/shunted" "$shunt_run" "$shunt_run" -m blocking -n 2M || return
	cmp "$work/bare" "$work/shunted" >&2
}

# shunt stat of a process that has used its engine.
stat_of_a_server() {
	start_redis "$shunt_run" || return
	timeout 300 $shunt_run redis-benchmark -p "$server_port" -t get -n 200 -c 2 -q >&2 || return
	"$builddir/tools/shunt" stat "$server_pid" >"$work/stat"
	cat "$work/stat" >&2
	kill "$server_pid"
	wait "$server_pid" 2>/dev/null
	[ -s "$work/stat" ]
}

all_works() { # WHERE
	local device
	for device in auto "$lab_device"; do
		if ! knows_device "$device"; then
			skip "$1, $device" "this build does not know SHUNT_DEVICE=$device"
			continue
		fi
		export SHUNT_DEVICE=$device
		check "$1, $device: every byte comes" transfer_same
		check "$1, $device: redis is served, and shunt stat tells of it" stat_of_a_server
		! is_verbs || check "$1, $device: it says why there is no RDMA" grep -qiE "(libibverbs|verbs|rxe|device).*(no |not |cannot|without|missing)|(no |not |cannot|without|missing).*(libibverbs|verbs|rxe|device)" "$work/stat"
		[ "$device" = soft ] || grep -E 'device|accelerated' "$work/stat" | sed "s/^/# $1, $device: /"
		unset SHUNT_DEVICE
	done
}

pair "$work/bare" "" "" -m blocking -n 2M
check "the library is hidden" library_hide
all_works "without libibverbs"
check "it is shown again" library_show
check "the devices are gone" devices_remove
all_works "without devices"
check "the devices are back" devices_make
plan
