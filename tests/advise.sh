#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt advise: its options, verdicts of a client whose figure is known, a real one, what it says where nothing can be
# measured, its files, and that it leaves nothing behind.
set -u
. "${top_srcdir:?}/tests/lib.sh"
export TMPDIR=$work

expect 2 "$shunt" advise
has "$err" 'no command'
expect 2 "$shunt" advise --rounds 2 true
has "$err" "rounds from 3 to 49: '2'"
expect 2 "$shunt" advise --port 65536 true
expect 2 "$shunt" advise --timeout 0 true
expect 2 "$shunt" advise --metric '(' true
has "$err" 'regular expression'
expect 2 "$shunt" advise --lower true
expect 2 "$shunt" advise --ready up true
expect 2 "$shunt" advise --pid 1x
expect 2 "$shunt" advise --html "$work/page" --pid 1
expect 2 "$shunt" advise --nothing true
expect 2 "$shunt" advise "$shunt" run true
expect 2 env SHUNT_TUNE=spin_us=abc "$shunt" advise true
has "$err" 'SHUNT_TUNE: spin_us=abc'
expect 0 "$shunt" advise --help
narrow "$out"

# A client that says how fast it was: FIGURE bare, or SHUNTED where the library is loaded.
client=$work/client
cat >"$client" <<'EOF'
#!/bin/bash
figure=$1
[[ ${LD_PRELOAD:-} != *libshunt.so* ]] || figure=$2
echo "speed $figure of 1000"
EOF
chmod +x "$client"
advise() { # STATUS [OPTION...] BARE SHUNTED
	local status=$1
	shift
	expect "$status" "$shunt" advise --rounds 3 --metric 'speed ([0-9]+)' "${@:1:$#-2}" "$client" "${@: -2}"
}
advise 0 100 200
has "$out" '^faster: 2.00 times \(2.00 to 2.00\), in 3 of 3 pairs, beside plain TCP$'
has "$out" '3 pairs after one'
narrow "$out"
advise 3 100 50
has "$out" '^slower: 0.50 times'
has "$out" 'rule program=NAME tcp'
advise 0 --lower 100 50
has "$out" '^faster: 2.00 times'
advise 4 100 100
has "$out" '^no difference: '
# Small, but always: twice as many pairs. Too small: no difference.
advise 3 1000 960
has "$out" '6 pairs after one'
advise 4 1000 990
advise 1 none none
has "$err" "no number that matches 'speed"

# A client that writes statistics beside the library's: sends wait for the ring, and a larger one helps.
cat >"$client" <<'EOF'
#!/bin/bash
figure=100
if [[ ${LD_PRELOAD:-} = *libshunt.so* ]]; then
	figure=50
	[[ ${SHUNT_TUNE:-} != *ring_max=16M* ]] || figure=200
	echo "$WROTE" >"${SHUNT_STATS%/*}/client.own.json"
fi
echo "speed $figure of 1000"
EOF
totals='"totals": {"streams": 4, "linked": 4, "tx": {"link": 990, "tcp": 10}, "rx": {"link": 0, "tcp": 0}}'
export WROTE="{\"counters\": {\"wr\": 100}, \"stalls\": {\"ring\": 50, \"window_bytes\": 1}, $totals}"
advise 3 - -
has "$out" '^share on the link .* 99\.00%'
has "$out" '^SHUNT_TUNE=ring_max=16M,mr=16M +faster: 4.00 times .* in 3 of 3 pairs'
has "$out" '^SHUNT_TUNE=ring_min=256K +no difference'
has "$out" 'waited most often for: ring'
has "$out" 'set SHUNT_TUNE=ring_max=16M,mr=16M for the client: 4.00 times the default'
has "$out" 'pays with that setting only'
lacks "$out" 'window'
narrow "$out"
advise 3 --no-try - -
has "$out" 'not tried: SHUNT_TUNE=ring_max=16M'
lacks "$out" 'SETTINGS TRIED'
# A variable that is set is the user's choice.
SHUNT_TUNE=ring_max=8M advise 3 - -
lacks "$out" '^SHUNT_TUNE=ring_max'
# Connections that were too short, and a server without Shunt.
totals='"totals": {"streams": 100, "linked": 3, "tx": {"link": 0, "tcp": 10}, "rx": {"link": 0, "tcp": 0}}'
WROTE="{\"reasons\": {\"closed before it was claimed\": 20, \"only the kernel has what the program uses\": 7}, $totals}" advise 3 - -
has "$out" '270 of 300 connections ended before a link carried them'
has "$out" 'stayed on TCP: 21, because of: only the kernel has what the program uses\. Remedy'
has "$out" '^SHUNT_TUNE=brief=0 '
WROTE="{\"reasons\": {\"the peer runs without Shunt\": 4}, ${totals/3/0}}" advise 1 - -
has "$err" 'no connection was on a link, because the peer runs without Shunt'
unset WROTE

# The time of a run: one side sleeps.
cat >"$client" <<'EOF'
#!/bin/bash
[[ ${LD_PRELOAD:-} = *libshunt.so* ]] || exec sleep 1
EOF
expect 0 "$shunt" advise --rounds 3 "$client"
has "$out" '^faster: '
expect 1 "$shunt" advise --rounds 3 --timeout 1 sleep 60
has "$err" 'has not ended after 1 s'

# Commands and servers that fail.
expect 1 "$shunt" advise false
has "$err" 'the command ended with status 1'
expect 1 "$shunt" advise "$work/nothing"
has "$err" 'No such file'
expect 1 "$shunt" advise --server 'echo I have no room; exit 3' true
has "$err" 'the server ended with status 3: I have no room'
expect 1 "$shunt" advise --html "$work/none/page.html" false
has "$err" 'none/page.html: No such file'
lacks "$err" 'ended with status'
expect 1 "$shunt" advise --port 1 true
has "$err" 'nothing listens at port 1'
expect 1 "$shunt" advise --seconds 1 --pid $$
has "$err" "$$: "
expect 1 "$shunt" advise --json false
python3 -m json.tool <<<"$out" >/dev/null || problem "no JSON: $out"
has "$out" '"verdict": "not measured"'

# The server is ready when it says so, and it is ended.
server="echo \$\$ >$work/pid; echo up; exec sleep 60"
expect 4 "$shunt" advise --rounds 3 --server "$server" --ready up --metric 'a ([0-9])' echo a 1
! kill -0 "$(cat "$work/pid")" 2>/dev/null || problem "the server is still there"

# Interrupted: a server, its children, a daemon of it and the client end, and the folder is gone.
cat >"$client" <<EOF
#!/bin/bash
echo \$\$ >>$work/pids
exec sleep 600
EOF
server="sleep 600 & echo \$! >$work/pids; setsid sleep 600 & echo \$! >>$work/pids; echo up; wait"
"$shunt" advise --server "$server" --ready up "$client" >/dev/null 2>&1 &
advise=$!
until [ "$(wc -l 2>/dev/null <"$work/pids")" = 3 ] || ! kill -0 "$advise" 2>/dev/null; do :; done
kill -INT "$advise"
wait "$advise"
status=$?
[ "$status" = 130 ] || problem "interrupted: exit status $status"
while read -r pid; do
	! kill -0 "$pid" 2>/dev/null || problem "process $pid is still there"
done <"$work/pids"
[ -z "$(find "$work" -name 'shunt-advise-*')" ] || problem "it left $(ls "$work")"

page() {
	python3 "$top_srcdir/tests/page.py" "$1" || problem "$1"
}

if command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null; then
	port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	benchmark=(redis-benchmark -p "$port" -t get -n 20000 -q)
	"$shunt" advise --rounds 3 --server "exec redis-server --port $port --save ''" --port "$port" \
		--json --html "$work/page.html" --svg "$work/picture.svg" "${benchmark[@]}" >"$work/out" 2>"$work/err"
	status=$?
	case $status in
	0 | 3 | 4) ;;
	*) problem "redis-benchmark: exit status $status: $(cat "$work/err")" ;;
	esac
	python3 - "$work/out" <<'EOF' || problem "JSON: $(cat "$work/out")"
import json, sys
result = json.load(open(sys.argv[1]))
assert result["schema"] == 1 and result["unit"] == "requests/s"
assert result["link"]["share"] > 0.5, result["link"]
pairs = result["ratio"]["pairs"]
assert pairs >= 3 and len(result["tcp"]) == len(result["shunt"]) == pairs
for run in result["tcp"] + result["shunt"]:
	assert run["figure"] > 1 and run["seconds"] > 0 and run["client_cpu_seconds"] > 0
	assert run["server_cpu_seconds"] is not None
EOF
	page "$work/page.html"
	page "$work/picture.svg"

	# A server that runs already: bare it is no subject, shunted it is found.
	redis-server --port "$port" --save '' >/dev/null &
	server=$!
	until redis-cli -p "$port" ping >/dev/null 2>&1 || ! kill -0 "$server"; do :; done
	expect 1 "$shunt" advise --rounds 3 --port "$port" "${benchmark[@]}"
	has "$err" 'redis-server, runs without Shunt'
	kill "$server"
	wait "$server" 2>/dev/null
	"$shunt" run redis-server --port "$port" --save '' >/dev/null &
	server=$!
	until redis-cli -p "$port" ping >/dev/null 2>&1 || ! kill -0 "$server"; do :; done
	"$shunt" advise --rounds 3 --no-try redis-benchmark -p "$port" -t get -n 50000 -q >"$work/out" 2>&1
	has "$(cat "$work/out")" "server: redis-server, process $server, which runs with Shunt"
	expect 0 "$shunt" advise --seconds 1 --pid "$server" --json
	python3 -m json.tool <<<"$out" >/dev/null || problem "no JSON: $out"
	has "$out" "\"pid\": $server,"
	kill "$server"
	wait "$server" 2>/dev/null

	expect 0 "$shunt" perf programs --only c50P16,i128K --rounds 1 --html "$work/compare.html"
	page "$work/compare.html"
	expect 1 "$shunt" perf programs --only c50P16 --rounds 1 --html "$work/none/page.html"
	has "$err" 'none/page.html: No such file'
fi

finish
