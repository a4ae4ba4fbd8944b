#!/bin/bash
# SPDX-License-Identifier: MIT
# Limits by class (docs/QOS.md): what a limit gives, on links and on TCP, and what rules cost that make nobody short.
#
#	SECONDS_EACH=5 ROUNDS=5 LIMIT=2Gbit qos.sh
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=measure.sh
. "$(dirname "$0")/measure.sh"

seconds=${SECONDS_EACH:-5} rounds=${ROUNDS:-5} limit=${LIMIT:-2Gbit}
need redis-server redis-benchmark iperf3 python3
need_shunt
rules="class bulk program=iperf3 limit=$limit"

# gbit OPTIONS...: the receiver's rate, of a client of the server that runs.
gbit() {
	timeout 120 $shunt_run iperf3 -c 127.0.0.1 -p "$server_port" -t "$seconds" -J "$@" |
		python3 -c 'import json, sys; print("%.3f" % (json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e9))'
}

echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
SHUNT_QOS=$rules start_server $shunt_run iperf3 -s -p
echo "limit=$limit, Gbit/s: to the server $(gbit), from it $(gbit -R), 4 streams $(gbit -P 4)"
# The same on TCP: both ends of Shunt (SHUNT_MOCK), then a client without it, to which the server alone holds the limit.
export SHUNT_MOCK=tcp
SHUNT_QOS="class bulk limit=$limit" start_server $shunt_run iperf3 -s -p
tcp=$server_port
echo "on TCP: to the server $(gbit), from it $(gbit -R), 4 streams $(gbit -P 4), 4 from it $(gbit -R -P 4)"
echo "on TCP, a plain client: from the server $(shunt_run='' gbit -R), 4 from it $(shunt_run='' gbit -R -P 4)"
# A server of its own beside it, without rules.
start_server $shunt_run iperf3 -s -p
timeout 120 $shunt_run iperf3 -c 127.0.0.1 -p "$server_port" -t $((2 * seconds + 2)) > /dev/null &
server_port=$tcp
echo "on TCP, beside one without a limit: to the server $(gbit), from it $(gbit -R)"
wait $!
unset SHUNT_MOCK
SHUNT_QOS='class all limit=900Gbit' start_server $shunt_run iperf3 -s -p
limited=$server_port
start_server $shunt_run iperf3 -s -p
open=$server_port
for ((i = 0; i < rounds; i++)); do
	server_port=$limited gbit >> "$work/iperf.rules"
	server_port=$open gbit >> "$work/iperf.none"
	SHUNT_QOS='class all limit=900Gbit' measure_redis "$shunt_run" get -n 300000 >> "$work/redis.rules"
	measure_redis "$shunt_run" get -n 300000 >> "$work/redis.none"
done
for what in iperf redis; do
	with=$(median < "$work/$what.rules") without=$(median < "$work/$what.none")
	echo "$what: $with with a limit that nobody meets, $without without rules: $(ratio "$with" "$without")"
done
echo "load: $(cut -d' ' -f1-3 /proc/loadavg)"
