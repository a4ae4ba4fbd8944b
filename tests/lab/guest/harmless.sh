# SPDX-License-Identifier: MIT
# Programs that use RDMA themselves are left alone by Shunt.
# shellcheck shell=bash disable=SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need_shunt
# What they say, but for addresses and times, and which of two threads is first.
said() {
	sed -E 's/(QPN|PSN) 0x[0-9a-f]+/\1 N/g; s/[0-9.]+ (seconds|Mbit|usec)/T \1/g' "$work/$1" | sort
}

# says END: the same as it did without us?
says() {
	diff "$work/$1.bare" <(said "$1") >&2
}

for what in "pingpong '' rxe0 rxe1" "pingpong '' rxe0 rxe1 -e -n 300" "rping_pair ''"; do
	check "bare: $what" eval "$what"
	said server >"$work/server.bare" && said client >"$work/client.bare"
	for device in auto "$lab_device"; do
		knows_device "$device" || continue
		check "shunted, $device: $what" eval "SHUNT_DEVICE=$device ${what/\'\'/\"\$shunt_run\"}"
		check "the server says the same" says server
		check "the client says the same" says client
	done
done
plan
