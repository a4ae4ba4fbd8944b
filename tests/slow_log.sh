#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt trace slow: a program that is away for 50 ms between its waits, a sender that its reader keeps waiting, and what the
# command says of wrong usage and to other users.
set -u
. "${top_srcdir:?}/tests/lib.sh"
python=$(python3 -c 'import sys; print(sys.executable)')	# not a script that starts it

# The server takes all there is, then does something else for 50 ms; "calm": it waits for what comes.
cat >"$work/server.py" <<'PYTHON'
import select, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
s, _ = listener.accept()
s.setblocking(False)
epoll = select.epoll()
epoll.register(s, select.EPOLLIN)
while True:
    epoll.poll()
    if not s.recv(1 << 20):
        break
    if sys.argv[1] == "away":
        time.sleep(0.05)
PYTHON
# The client sends without end, or "once": 100 messages with a pause behind each.
cat >"$work/client.py" <<'PYTHON'
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for n in range(100):
    s.sendall(b"x" * 10)
    time.sleep(0.005)
while sys.argv[2] == "on":
    s.sendall(bytes(1 << 16))
PYTHON

start() { # MODE OF THE SERVER, OF THE CLIENT, THE SERVER'S AND THE CLIENT'S VARIABLE…
	mkfifo "$work/port"
	env "$3" SHUNT_STATS="$work/server.json" "$shunt" run "$python" "$work/server.py" "$1" >"$work/port" &
	server=$!
	read -r port <"$work/port"
	rm "$work/port"
	env "$4" SHUNT_STATS="$work/client.json" "$shunt" run "$python" "$work/client.py" "$port" "$2" &
	client=$!
}
trap 'kill $server $client 2>/dev/null; scratch_remove' EXIT

number() { # MEMBER FILE
	grep -oE "\"$1\":[0-9]+" "$2" | grep -oE '[0-9]+$'
}

# Nothing is noted by itself, and who waits for what comes is never late.
export SHUNT_LOG=info SHUNT_LOG_FORMAT=json SHUNT_LOG_FILE="$work/log.%p"
start calm once SHUNT_TUNE=slow_us=0 SHUNT_TUNE=slow_us=0
unset SHUNT_LOG SHUNT_LOG_FORMAT SHUNT_LOG_FILE
wait "$client" "$server"
"$python" - "$work/log.$client" "$work/log.$server" "$port" <<'PYTHON' || problem "lines of the log: $(cat "$work"/log.*)"
import json, sys
ends = []
for path in sys.argv[1:3]:
    lines = [json.loads(line) for line in open(path)]
    line, = [line for line in lines if line["text"].startswith("on a link to process ")]
    assert line["level"] == "info" and line["pid"] == int(path.rpartition(".")[2]), line
    assert line["stream"]["fd"] > 2 and "descriptor" not in line["text"], line
    ends.append(line["stream"])
assert ends[0]["local"] == ends[1]["peer"] and ends[0]["peer"] == ends[1]["local"], ends
assert ends[1]["local"] == "127.0.0.1:" + sys.argv[3], ends
PYTHON
for file in server client; do
	[ "$(number poll_gaps "$work/$file.json")" = 0 ] || problem "$file: $(cat "$work/$file.json")"
	[ "$(number slow_steps "$work/$file.json")" = 0 ] || problem "$file: $(cat "$work/$file.json")"
done
start away once SHUNT_TUNE=poll_warn_us=10000 SHUNT_TUNE=poll_warn_us=0
wait "$client" "$server"
[ "$(number poll_gaps "$work/server.json")" -gt 0 ] || problem "no gap: $(cat "$work/server.json")"
[ "$(number slow_steps "$work/server.json")" = 0 ] || problem "slow steps: $(cat "$work/server.json")"
[ "$(number poll_gaps "$work/client.json")" = 0 ] || problem "client: $(cat "$work/client.json")"

# While they run.
start away on SHUNT_TUNE=poll_warn_us=10000 SHUNT_TUNE=slow_us=2000
until "$shunt" trace slow "$server" | grep -q ' poll .*in all' && "$shunt" trace slow "$client" | grep -q ' room .*in all'; do
	kill -0 "$client" "$server" || break
	sleep 0.1
done
expect 0 "$shunt" trace slow "$server" "$client"
has "$out" "^pid $server  .*  poll_warn_us=10000  slow_us=0$"
has "$out" '^  20..-..-.. ..:..:..\.......  +[0-9.]+ (ms|s)  poll +fd [0-9]+ 127\.0\.0\.1:'"$port"' > 127\.0\.0\.1:[0-9]+ completions [0-9]+$'
has "$out" '^  longest +[0-9.]+ (ms|s)  poll +[0-9]+ in all$'
has "$out" "^pid $client  .*  poll_warn_us=0  slow_us=2000$"
has "$out" '  room +fd [0-9]+ 127\.0\.0\.1:[0-9]+ > 127\.0\.0\.1:'"$port"' staged [0-9]+$'
lacks "$out" 'nothing is noted'
expect 0 "$shunt" trace slow
has "$out" "^pid $server  "
expect 0 "$shunt" trace slow --json "$server"
"$python" - "$work/out" "$server" <<'PYTHON' || problem "the JSON is not what was meant"
import json, sys
process, = json.load(open(sys.argv[1]))
assert process["schema"] == 1 and process["pid"] == int(sys.argv[2]), process
events = process["events"]
assert events and len(events) <= 1024
for event in events:
    assert event["kind"] == "poll_gap" and event["step"] == "poll", event
    assert event["duration_ns"] >= 10000000 and event["time_ns"] <= process["now_ns"], event
    assert event["number"] <= process["last"] and event["completions"] > 0, event
steps = {step["step"]: step for step in process["steps"]}
assert steps["poll"]["count"] >= len(events) and steps["claim"]["count"] == 0, steps
PYTHON
# The events go on, and then the process ends.
"$shunt" trace slow --follow "$server" >"$work/followed" 2>"$work/why" &
follower=$!
until [ "$(wc -l <"$work/followed")" -gt 0 ]; do
	kill -0 "$follower" || break
	sleep 0.1
done
expect 0 "$shunt" adm "$server" set poll_warn_us 0
expect 0 "$shunt" trace slow "$server"
has "$out" 'nothing is noted now: both are 0'

# Another user sees nothing.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" && cp "$shunt" "$work/shunt"
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	expect 1 "${as_nobody[@]}" "$work/shunt" trace slow "$server"
	has "$err" 'no answer|Connection reset|Broken pipe'
	[ -z "$out" ] || problem "it was shown $out"
	expect 0 "${as_nobody[@]}" "$work/shunt" trace slow
	lacks "$out" "pid $server"
	expect 0 "${as_nobody[@]}" "$work/shunt" trace slow --json
	lacks "$out" "$server"
fi
kill "$client" "$server"
wait "$client" "$server" 2>/dev/null
wait "$follower" && problem "following a process that has ended is no success"
has "$(cat "$work/followed")" '^  20..-.* poll '
has "$(cat "$work/why")" "^shunt trace slow: process $server: "

expect 2 "$shunt" trace slow abc
expect 2 "$shunt" trace slow --follow
expect 2 "$shunt" trace slow --follow 1 2
expect 2 "$shunt" trace slow --wrong
expect 0 "$shunt" trace slow --help
has "$out" '^Usage: shunt trace slow '
narrow "$out"
expect 1 "$shunt" trace slow $$
has "$err" 'runs without Shunt|may not be examined'
finish
