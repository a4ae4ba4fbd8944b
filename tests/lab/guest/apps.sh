# limit: 200
# redis and iperf3 over RDMA: all that comes after a stream's beginning goes by the link, and rxe has carried it.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

share=99	# per cent
need redis-server redis-benchmark iperf3 jq
need_device "$lab_device"
export SHUNT_STATS=$work/stat.%p

redis() {
	start_redis "$shunt_run" || return
	timeout 60 $shunt_run redis-benchmark -p "$server_port" -t set,get -c 4 -n 3000 -d 4096 --csv >"$work/said" 2>&1
	local rc=$?
	kill "$server_pid"
	wait "$server_pid" 2>/dev/null
	grep -q '^"GET"' "$work/said" && [ $rc = 0 ]
}

iperf() {
	start_server $shunt_run iperf3 -s -1 -p || return
	timeout 40 $shunt_run iperf3 -c 127.0.0.1 -p "$server_port" -J "$@" >"$work/said"
	local rc=$?
	wait "$server_pid"
	jq -e '.end.sum_received.bytes > 0' "$work/said" >/dev/null && [ $rc = 0 ]
}

app() { # NAME COMMAND…
	local name=$1
	shift
	gauge_begin
	check "$name" "$@"
	gauge_end "$name" $share
}

app redis redis
app iperf3 iperf -t 3
app "iperf3 -R" iperf -t 3 -R
app "iperf3 -P 4" iperf -t 3 -P 4
app "iperf3 --bidir" iperf -t 3 --bidir
plan
