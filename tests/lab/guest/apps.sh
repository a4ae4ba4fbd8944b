# SPDX-License-Identifier: MIT
# limit: 7200
# redis and iperf3 over RDMA: all goes by the link as soon as there is one, and rxe has carried it. What
# comes before the link carries does not count: until there is one the bytes go by TCP. With LAB_QUICK
# half as many requests, and one iperf3.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

share=99	# per cent
times=1	# of the usual amount
requests=6000
[ -z "${LAB_QUICK-}" ] || requests=3000
need redis-server redis-benchmark iperf3 jq
need_device "$lab_device"
export SHUNT_STATS=$work/stat.%p

redis() {
	local client rc=0
	start_redis "$shunt_run" || return
	timeout 1500 $shunt_run redis-benchmark -p "$server_port" -t set,get -c 4 -n $((requests * times)) -d 4096 --csv >"$work/said" 2>&1 &
	client=$!
	gauge_mark $client
	wait $client || rc=1
	kill "$server_pid"
	wait "$server_pid" 2>/dev/null
	grep -q '^"GET"' "$work/said" && [ $rc = 0 ]
}

iperf() {
	local client rc=0
	start_server $shunt_run iperf3 -s -1 -p || return
	timeout 1500 $shunt_run iperf3 -c 127.0.0.1 -p "$server_port" -n $((120 * times))M -J "$@" >"$work/said" &
	client=$!
	gauge_mark $client
	wait $client || rc=1
	wait "$server_pid"
	jq -e '.end.sum_received.bytes > 0' "$work/said" >/dev/null && [ $rc = 0 ]
}

app() { # NAME COMMAND…
	local name=$1
	shift
	for times in 1 4 16; do
		gauge_begin
		check "$name" "$@"
		! gauge_enough || break # else it was over soon after there was a link
	done
	gauge_end "$name" $share
}

app redis redis
app iperf3 iperf
[ -z "${LAB_QUICK-}" ] || plan
app "iperf3 -R" iperf -R
app "iperf3 -P 4" iperf -P 4
app "iperf3 --bidir" iperf --bidir
plan
