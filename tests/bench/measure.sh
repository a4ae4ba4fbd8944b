# SPDX-License-Identifier: MIT
# One measurement each: measure_* WRAP …, the number on standard output. Sourced after lib.sh.
# WRAP is what stands before the commands of both ends: nothing, "shunt run", "env LD_PRELOAD=…".
# shellcheck shell=bash disable=SC2086,SC2154

pp=${PP:-$builddir/tests/bench/pp}

# pp_server WRAP: starts one; sets server_pid and server_port.
pp_server() {
	local in
	start_telling $1 "$pp" server
	exec {in}<&-
}

# measure_pp SERVER-WRAP CLIENT-WRAP ARGUMENTS...
measure_pp() {
	local server=$1 client=$2
	shift 2
	pp_server "$server"
	timeout 120 $client "$pp" client "$server_port" "$@"
	wait "$server_pid"
}

# measure_redis WRAP get|set ARGUMENTS-OF-REDIS-BENCHMARK...: requests a second.
measure_redis() {
	local wrap=$1 what=$2
	shift 2
	start_redis "$wrap"
	timeout 120 $wrap redis-benchmark -p "$server_port" -t "$what" -d 64 --csv "$@" 2> /dev/null |
		tail -1 | cut -d'"' -f4
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
}

# measure_iperf SERVER-WRAP CLIENT-WRAP ARGUMENTS...: Gbit/s at the receiver.
measure_iperf() {
	local server=$1 client=$2
	shift 2
	start_server $server iperf3 -s -1 -p
	timeout 120 $client iperf3 -c 127.0.0.1 -p "$server_port" -J "$@" |
		python3 -c 'import json, sys
print(round(json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e9, 3))'
	wait "$server_pid"
}

# burn COUNT: processes that only compute; sets burners.
burn() {
	local i
	burners=()
	for ((i = 0; i < $1; i++)); do
		(while :; do :; done) &
		burners+=($!)
		children+=($!)
	done
}

# say_stolen: how much of the time for which processors were wanted the host has given to other guests since this was
# sourced. Where it is much, both sides of a ratio wait for their turn, and the ratio says little.
read -r -a stolen_since < /proc/stat
say_stolen() {
	local now i wanted=0
	read -r -a now < /proc/stat
	for i in 1 2 3 6 7 8; do wanted=$((wanted + now[i] - stolen_since[i])); done
	[ $wanted = 0 ] || echo "# stolen by the host: $(((now[8] - stolen_since[8]) * 100 / wanted)) % of the processors' busy time"
}

# medians NAME: of each column file $work/NAME.*; sets m_LABEL through the array "median_of".
declare -A median_of
record() {
	echo "$3" >> "$work/r.$1.$2"
}
get_median() {
	median_of[$1.$2]=$(median < "$work/r.$1.$2")
	echo "${median_of[$1.$2]}"
}
