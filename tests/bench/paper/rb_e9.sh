#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 10: gets and sets of key-value stores as the paper's ETC (95:5) and SYS (75:25) mix them, keys by
# Zipf's law. Here the stores are servers whose clients come over TCP or shunted, a data set fits a cache or does not.
#
#	ROUNDS=3 LENGTH=0.4 CONNECTIONS=16 MIXES="95 75" SETS="1000:64 100000:1024" STORES="redis memcached" THREADS=1 rb_e9.sh
#	MIXES: gets in percent; SETS: keys:bytes of a value; THREADS: of memcached
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
mix=$builddir/tests/bench/mix
stores=${STORES:-redis memcached}
need "$mix" python3
need_shunt
connections=${CONNECTIONS:-16} mixes=${MIXES:-95 75} sets=${SETS:-1000:64 100000:1024}

heading "RB-E9 (RDMAbox, Figure 10): applications with many gets or many sets" \
	"stores over remote paging, against Accelio and plain verbs: MongoDB up to 3.87 and 7.52 times the rate, VoltDB 4.01 and
       6.6, Redis 2.73 and 4.72; the average latency of others up to 5.24 and 6.47 times higher, p99 up to 45 and 68"

serve_redis() {
	start_redis "$1"
}

serve_memcached() {
	start_server $1 memcached -u "$(id -un)" -l 127.0.0.1 -U 0 -m 1024 -t "${THREADS:-1}" -p
}

# one WHO WRAP STORE KEYS:BYTES: all mixes on one server.
one() {
	local who=$1 wrap=$2 store=$3 set=$4 gets rate mean p50 p99 p999
	"serve_$store" "$wrap"
	# shellcheck disable=SC2154 # start_server's
	timeout 120 $wrap "$mix" "$store" "$server_port" "$connections" "${set%:*}" "${set#*:}" "$length" $mixes > "$work/said" || {
		echo "$who: the client of $store failed"
		exit 1
	}
	while read -r gets rate mean p50 p99 p999; do
		record rate "$store.$set.$gets.$who" "$rate"
		record mean "$store.$set.$gets.$who" "$mean"
		record p50 "$store.$set.$gets.$who" "$p50"
		record p99 "$store.$set.$gets.$who" "$p99"
		record p999 "$store.$set.$gets.$who" "$p999"
	done < "$work/said"
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
}

for store in $stores; do
	[ $store = redis ] && need redis-server
	[ $store = memcached ] && need memcached
	for ((round = 1; round <= rounds; round++)); do
		for set in $sets; do
			one tcp "" $store $set
			one shunt "$shunt_run" $store $set
		done
	done
done

echo "--- $connections connections with one request out on each, medians of $rounds rounds; latency in us"
printf '%-10s %-13s %5s | %9s %7s %7s %7s | %9s %7s %7s %7s | %7s %7s %7s\n' store "keys:bytes" gets \
	"tcp op/s" mean p50 p99 "shunt" mean p50 p99 op/s "1/mean" "1/p99"
echo "load tcp shunt" > "$out/rb_e9.dat"
for store in $stores; do
	for set in $sets; do
		for gets in $mixes; do
			t=$store.$set.$gets.tcp s=$store.$set.$gets.shunt
			printf '%-10s %-13s %4s%% | %9.0f %7.1f %7.1f %7.1f | %9.0f %7.1f %7.1f %7.1f | %7s %7s %7s\n' $store $set $gets \
				"$(get_median rate $t)" "$(get_median mean $t)" "$(get_median p50 $t)" "$(get_median p99 $t)" \
				"$(get_median rate $s)" "$(get_median mean $s)" "$(get_median p50 $s)" "$(get_median p99 $s)" \
				"$(ratio "$(get_median rate $s)" "$(get_median rate $t)")" \
				"$(ratio "$(get_median mean $t)" "$(get_median mean $s)")" \
				"$(ratio "$(get_median p99 $t)" "$(get_median p99 $s)")"
			echo "$store/$set/$gets $(get_median rate $t) $(get_median rate $s)" >> "$out/rb_e9.dat"
		done
	done
done
bars rb_e9 "RB-E9: gets and sets" "operations/s" "$out/rb_e9.dat" "set xtics rotate by -25"
not_here "remote paging, MongoDB, VoltDB, Accelio: here the store's clients are on the network, and the other side is TCP."
