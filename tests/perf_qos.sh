#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016
# shunt perf qos: its options, how demands are shared, that clients have their classes, and that constant rate counts
# a pause of the server.
set -u
. "${top_srcdir:?}/tests/lib.sh"
export TMPDIR=$work

# ---- refused before anything starts ----

refused() { # PATTERN ARGUMENT…
	local pattern=$1
	shift
	expect 2 "$shunt" perf qos "$@"
	has "$err" "$pattern"
}

refused "no options are 'pingpong'" pingpong
refused 'patterns are burst and constant' --pattern steady
refused 'demands are uniform, spike, zipf' --demand normal
refused 'not a demand for each client' --clients 2 --demand 5
refused 'not a demand for each client' --clients 2 --demand 5,6,7
refused 'not a demand for each client' --clients 2 --demand 5,-6
refused 'from 1 to 1000000' --total 0
refused 'clients from 1 to 64' --clients 65
refused 'depth from 1 to 4096' --depth 0
refused 'request from 1 to 1M' --request 2M
refused 'answer from 1 to 1M' --reply 0
refused 'seconds from 0.01' --period 0
refused 'periods from 0 to 300' --warm 301
refused 'periods from 1 to 300' --periods 0
refused 'transports are tcp and shunt' --transport udp
refused 'no SHUNT_VARIABLE=VALUE' --server LD_PRELOAD=x
refused 'no SHUNT_VARIABLE=VALUE' --client SHUNT_BATCH=single
refused 'no SHUNT_VARIABLE=VALUE' --client SHUNT_LOG
refused 'not PERIOD:COMMAND' --at true
refused 'not PERIOD:COMMAND' --at 1:
refused 'not PERIOD:COMMAND' --at x:true
refused 'no such period' --periods 2 --at 4:true
refused 'cannot write /nonexistent/x' --json /nonexistent/x
expect 0 "$shunt" perf qos --help
has "$out" '--demand uniform\|spike\|zipf'
narrow "$out"
expect 0 "$shunt" perf --help
has "$out" 'shunt perf qos'
expect 2 "$shunt" perf-end qos 1 2 3

# ---- how a demand is shared, and what can be said of counts however fast the machine is ----

qos() { # OPTIONS…: ten clients for an instant
	expect 0 "$shunt" perf qos --period 0.05 --periods 3 --warm 1 --json "$work/json" "$@"
	narrow "$out"
}

# demands NUMBER…: those of the clients; the rest of the JSON is checked, too.
demands() {
	python3 - "$work/json" "$@" <<'END' || problem "JSON of $*: $(cat "$work/json")"
import json, sys
root = json.load(open(sys.argv[1]))
clients = root["clients"]
assert [c["demand"] for c in clients] == [int(n) for n in sys.argv[2:]]
assert [c["class"] for c in clients] == ["c%d" % (i + 1) for i in range(len(clients))]
for c in clients:
    assert len(c["completed"]) == 3 and sum(c["completed"]) == c["total"] <= 4 * c["demand"]
    latency = c["latency_us"]
    if c["total"]:
        assert latency["p50"] <= latency["p99"] <= latency["p99.9"] <= latency["max"]
assert root["completed"] == [sum(c["completed"][p] for c in clients) for p in range(3)]
assert root["schema"] == 1 and root["request_bytes"] == 4096 and root["reply_bytes"] == 64
END
}

qos --transport tcp
demands 158 158 158 158 158 158 158 158 158 158
has "$out" '^burst: completed requests of 4096 bytes'
qos --transport tcp --demand spike --pattern constant
demands 340 340 340 80 80 80 80 80 80 80
has "$out" '^constant: '
qos --transport tcp --demand zipf --total 1000 --depth 4
demands 167 167 110 110 86 86 73 73 64 64
qos --transport tcp --demand 7,0 --clients 2
demands 7 0
qos --transport tcp --demand spike --total 420 --clients 2
demands 340 80

# ---- classes, variables, commands ----

# The server's classes while the clients are there; c3 has no rule.
rules='class c1 declared=c1; class c2 declared=c2 limit=900Gbit'
qos --clients 3 --rules "$rules" --client SHUNT_TUNE=spin_us=0 --server SHUNT_TUNE=spin_us=0 \
	--at "4:exec >>$work/classes; '$shunt' adm \$SERVER_PID qos"
has "$(cat "$work/classes")" '^class c1 limit=none: 1 clients'
has "$(cat "$work/classes")" '^class c2 limit=900Gbit: 1 clients'
python3 - "$work/json" <<'END' || problem "not on the link: $(cat "$work/json")"
import json, sys
assert all(c["wr_bytes"] > 0 for c in json.load(open(sys.argv[1]))["clients"])
END

expect 1 "$shunt" perf qos --clients 1 --total 10 --period 0.05 --transport tcp \
	--at '1:echo no such word >&2; exit 3'
has "$err" 'the command ended with status 3: no such word'
expect 1 "$shunt" perf qos --clients 2 --total 10 --period 0.05 --periods 100 --at '2:kill -KILL $SERVER_PID'
has "$err" 'the server was killed by signal 9'
[ -z "$(find "$work" -name 'shunt-perf-*')" ] || problem "it left $(ls "$work")"

# ---- constant rate counts every request that was intended while the server stood still ----

expect 0 "$shunt" perf qos --transport tcp --clients 1 --demand 100 --pattern constant --period 0.1 \
	--periods 20 --json "$work/json" \
	--at "2:kill -STOP \$SERVER_PID; date +%s%N >'$work/from'" \
	--at "4:date +%s%N >'$work/to'; kill -CONT \$SERVER_PID"
python3 - "$work/json" "$(cat "$work/from")" "$(cat "$work/to")" <<'END' || problem "the pause is not counted: $(cat "$work/json")"
import json, sys
client, pause = json.load(open(sys.argv[1]))["clients"][0], (int(sys.argv[3]) - int(sys.argv[2])) / 1e9
all_latencies = client["total"] * client["latency_us"]["mean"] / 1e6
# One request each millisecond waits for the rest of the pause. Where the clients' time was over first, nothing is told.
assert not client["completed"][-1] or all_latencies >= 0.9 * pause * pause / 2 * 1000
END

finish
