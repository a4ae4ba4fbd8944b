# SPDX-License-Identifier: MIT
# limit: 900
# The statistics have what the kernel counts of the device that a link is over.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

many=$builddir/tests/calls/many
need "$many" jq
need_device "$lab_device"

# Three connections, which stay; what both ends say of their devices is in $devices.
talk() {
	local client served out
	start_telling $shunt_run "$many" server 2>>"$work/err" || return
	mkfifo "$work/answers" "$work/stay"
	exec {out}<>"$work/stay"
	TEST_LINK=600000 $shunt_run "$many" client "$server_port" 3 3 idle <"$work/stay" {out}<&- >"$work/answers" 2>>"$work/err" &
	client=$!
	children+=("$client")
	exec {in2}<"$work/answers"
	read -r -t 600 _ served <&"$in2"
	devices=$("$builddir/tools/shunt" stat --json | jq -c '[.[].devices[]]')
	exec {out}>&- # the client's standard input ends
	wait "$client" && wait "$server_pid" && [ "$served" -ge 9 ]
}

check "connections are served" talk
echo "# $devices"
is_verbs || echo "# no RDMA device, no counters"
! is_verbs || check "both ends name the device and its port" \
	jq -e 'length == 2 and all(.name == "rxe0" and .port == 1 and .port_state == "ACTIVE" and .link_layer == "Ethernet")' <<<"$devices"
! is_verbs || check "with the kernel's counters" jq -e 'all(.hw_counters.sent_pkts > 0 and .hw_counters.rcvd_pkts > 0)' <<<"$devices"
! is_verbs || check "all of them" [ "$(jq '.[0].hw_counters | length' <<<"$devices")" = \
	"$(find /sys/class/infiniband/rxe0/ports/1/hw_counters/ -type f ! -name lifespan | wc -l)" ]
plan
