# SPDX-License-Identifier: MIT
# limit: 5000
# One iperf3 stream, and eight, over a wire of 0.1, 1 and 10 ms each way: what the device does by itself (one queue pair, a
# plain loop of 64 KiB messages, 4 MiB under way), plain TCP, Shunt over rxe with a stage that does not grow
# (SHUNT_TUNE=stage_max=64K), and Shunt. A table; what is judged is that most of Shunt's bytes go by the link. The first seconds
# do not count: a link takes some, where processors are emulated.
#	DELAYS="0.1 1 10" STREAMS="1 8"
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000
need iperf3 jq "$builddir/tests/bench/raw_imm"
need_shunt

# The queue holds what is under way: netem drops what is beyond 1,000 packets, which no wire would.
delay() { # MILLISECONDS
	tc qdisc del dev eth0 root 2>/dev/null
	[ "$1" = 0 ] || tc qdisc add dev eth0 root netem delay "$1ms" limit 100000
}

# received WRAP STREAMS: Mbit/s at the receiver, on machine two; `failed`.
received() {
	between $1 iperf3 -s -1 -J -p $port -- somebody_listens $port -- \
		$1 iperf3 -c 10.78.0.1 -J -p $port -P "$2" -t 10 -O 15 -l 128K &&
		mbits=$(jq '.end.sum_received.bits_per_second / 1e6 | floor' "$work/said") || mbits=failed
}

by_link() {
	[ "$(link_share "$work/stats")" -ge 50 ]
}

# The device alone, in $raw_rate.
raw_rate() {
	raw_rate=failed
	wire_raw rate 65536 400 64 -e && raw_rate=$(raw_mbits 65536)
	port=$((port + 1))
}

[ "$lab_self" = one ] || printf '# %8s %8s %10s %10s %10s %10s\n' "ms" streams device tcp "64 KiB" shunt
for ms in ${DELAYS:-0.1 1 10}; do
	delay "$ms"
	meet "delay $ms"
	raw_rate
	for streams in ${STREAMS:-1 8}; do
		line=
		for who in "" "env SHUNT_TUNE=${SHUNT_TUNE-},stage_max=64K $shunt_run" "env SHUNT_STATS=$work/stats $shunt_run"; do
			received "$who" "$streams"
			line+=$(printf ' %10s' "$mbits")
		done
		[ "$lab_self" = one ] || printf '# %8s %8s %10s%s\n' "$ms" "$streams" "$raw_rate" "$line"
		check "$ms ms, $streams streams: by the link" by_link
	done
done
delay 0
[ "$lab_self" = one ] || echo "# Mbit/s at the receiver"
meet over
plan
