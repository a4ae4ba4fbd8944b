# SPDX-License-Identifier: MIT
# limit: 5000
# X-RDMA, Figure 7 (XR-E1): round trips by size. Plain TCP, Shunt over rxe, the same with every send traced, rsocket, and
# ibv_rc_pingpong, which has nothing above the device. A table; what is judged is that Shunt gives a figure for each size.
#	SIZES="1 64 …" TRIPS=500
# shellcheck shell=bash disable=SC2086,SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

sizes=${SIZES:-1 64 512 1024 4096 16384 65536}
trips=${TRIPS:-500}
address=10.77.0.1
pp=$builddir/tests/bench/pp
limit=600
need "$pp"
need_shunt
peers_device

# Nanoseconds; nothing where it cannot be measured.
trip() { # WHO BYTES
	local port=$((20000 + RANDOM % 10000))
	served "$(wrap_of "$1")" "$port" "$pp" server -a $address -P "$port" -- \
		"$pp" client "$port" rtt -n "$trips" -s "$2" -w 2000 -a $address
}

# The device alone: an iteration is a message each way, and nothing looks at the bytes.
bare() { # BYTES
	both "" ibv_rc_pingpong -d rxe0 -g "$(gid_index rxe0)" -s "$1" -n "$trips" -- somebody_listens 18515 -- \
		ibv_rc_pingpong -d rxe0 -g "$(gid_index rxe0)" -s "$1" -n "$trips" 127.0.0.1 || return
	sed -n 's/.* iters in .* = \([0-9.]*\) usec\/iter.*/\1/p' "$work/client" | awk '{ printf "%d\n", $1 * 1000 }'
}

columns="tcp shunt traced rsocket"
printf '# %8s %10s %10s %10s %10s %15s\n' bytes $columns ibv_rc_pingpong
for bytes in $sizes; do
	line="" shunt=
	for who in $columns; do
		[ $who != rsocket ] || limit=120
		ns=$(trip $who $bytes)
		[ $who != rsocket ] || limit=600
		[ $who != shunt ] || shunt=$ns
		line+=$(printf ' %10s' "${ns:-failed}")
	done
	ns=
	[[ $device != verbs* ]] || ns=$(bare $bytes)
	printf '# %8s%s %15s\n' $bytes "$line" "${ns:--}"
	check "Shunt: round trips of $bytes bytes" [ "${shunt:-0}" -gt 0 ]
done
echo "# nanoseconds for a round trip, one connection"
plan
