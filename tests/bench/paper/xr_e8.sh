#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 12: the load rises by 300 % and falls again; the latency does not follow.
#
#	ROUNDS=5 SECONDS_LONG=2 RATE=10000 FACTOR=4 CONNECTIONS=16 BYTES=1024 xr_e8.sh
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
step=$builddir/tests/bench/step
need "$step"
need_shunt
rate=${RATE:-10000} factor=${FACTOR:-4} connections=${CONNECTIONS:-16} bytes=${BYTES:-1024}
seconds=${SECONDS_LONG:-2} rounds=${ROUNDS:-5}

heading "XR-E8 (X-RDMA, Figure 12): a step in load" \
	"throughput of ESSD rises by nearly 300 %, and the latency has no significant increment"

# one WHO WRAP: records the rate and the latencies of each phase.
one() {
	local in phase got p50 p99 p999 most
	# shellcheck disable=SC2086 # a command in words
	start_telling $2 "$step" server
	exec {in}<&-
	# shellcheck disable=SC2086,SC2154 # a command in words; server_port is start_telling's
	timeout 120 $2 "$step" client "$server_port" "$connections" "$bytes" "$rate" "$factor" "$seconds" > "$work/said" || {
		echo "$1: the client failed"
		exit 1
	}
	while read -r phase got p50 p99 p999 most; do
		record rate "$1.$phase" "$got"
		record p50 "$1.$phase" "$p50"
		record p99 "$1.$phase" "$p99"
		record p999 "$1.$phase" "$p999"
		record most "$1.$phase" "$most"
	done < "$work/said"
	# shellcheck disable=SC2154 # start_telling's
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
}

for ((round = 1; round <= rounds; round++)); do
	one tcp ""
	one shunt "$shunt_run"
done
echo "--- $connections connections, messages of $bytes bytes, $rate a second, then $factor times as many; medians of $rounds rounds"
printf '%-6s %-7s %9s %9s %9s %9s %9s\n' "" "" rate p50us p99us p99.9us maxus
echo "phase tcp shunt" > "$out/xr_e8.dat"
for phase in before during after; do
	for who in tcp shunt; do
		printf '%-6s %-7s %9s %9s %9s %9s %9s\n' "$who" "$phase" "$(get_median rate "$who.$phase")" \
			"$(get_median p50 "$who.$phase")" "$(get_median p99 "$who.$phase")" \
			"$(get_median p999 "$who.$phase")" "$(get_median most "$who.$phase")"
	done
	echo "$phase $(get_median p99 tcp.$phase) $(get_median p99 shunt.$phase)" >> "$out/xr_e8.dat"
done
for who in tcp shunt; do
	awk -v who="$who" -v before="$(get_median p99 $who.before)" -v during="$(get_median p99 $who.during)" \
		'BEGIN { printf "%s: p99 during the step is %.2f times that before\n", who, during / before }'
done
bars xr_e8 "XR-E8: p99 before, during and after a step of $factor times the load" "us" "$out/xr_e8.dat"
not_here "Alibaba's storage, and many machines: one client and one server share two cores, and the client's own timer is in each latency."
