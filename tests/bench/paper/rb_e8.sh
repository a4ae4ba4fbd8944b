#!/bin/bash
# SPDX-License-Identifier: MIT
# RDMAbox, Figure 9: ways of polling by number of peers. Here N redis-benchmark processes, each with a link
# and one connection of its own, at one redis-server, counted at the server.
#
#	ROUNDS=3 LENGTH=0.2 PEERS="1 4 8" KINDS="batch/1 …" rb_e8.sh	a kind is poll/cqs
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
LENGTH=${LENGTH:-0.2}
. "$(dirname "$0")/common.sh"
need redis-server redis-benchmark python3
need_shunt
peers=${PEERS:-1 4 8}
kinds="tcp ${KINDS:-event/1 batch/1 adaptive/1 adaptive/4 busy/1}"

heading "RB-E8 (RDMAbox, Figure 9): scalability of polling with the number of peers" \
	"busy best up to about 4 peers, then collapses for want of CPU; event scales, lower; SCQ(1) below event
       from 8 peers on; adaptive best overall, with slightly more CPU than event; figure without numbers"

# watch PORT PID PEERS LENGTH SHUNT: once all are there and at work, requests/s, and for each request
# CPU us, voluntary switches and completion events of the server.
watch() {
	python3 - "$@" << 'END'
import glob, json, os, re, socket, subprocess, sys, time
port, pid, peers, length, shunt = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
s = socket.create_connection(("127.0.0.1", port))
def info(key):
    s.sendall(b"INFO\r\n")
    data = s.recv(65536)
    size = int(data[1:data.index(b"\r\n")]) + data.index(b"\r\n") + 4
    while len(data) < size:
        data += s.recv(65536)
    return int(re.search(key + rb":(\d+)", data).group(1))
def switches():
    return sum(int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", open(f).read()).group(1))
               for f in glob.glob("/proc/%s/task/*/status" % pid))
def cpu():
    return sum(int(n) for n in open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
def events():
    if not shunt:
        return 0
    return json.loads(subprocess.run(shunt.split() + ["stat", "--json", pid], stdout=subprocess.PIPE).stdout)[0]["counters"]["events"]
end = time.monotonic() + 20
while info(b"connected_clients") < peers + 1 and time.monotonic() < end:
    pass
start = info(b"total_commands_processed")
while info(b"total_commands_processed") < start + 2000 * peers and time.monotonic() < end:
    time.sleep(0.01)
e = events(); before = info(b"total_commands_processed")
w, c, n, t = switches(), cpu(), info(b"total_commands_processed"), time.monotonic()
time.sleep(length)
m, u, d, x = info(b"total_commands_processed"), time.monotonic(), cpu(), switches()
f = events(); after = info(b"total_commands_processed")
count = max(m - n, 1)
print(round((m - n) / (u - t)), (d - c) * 1e6 / count, (x - w) / count, (f - e) / max(after - before, 1))
END
}

# once KIND PEERS
once() {
	local kind=$1 count=$2 wrap="" asked="" i rate cpu switches events clients=()
	[ "$kind" = tcp ] || {
		wrap="env SHUNT_TUNE=${SHUNT_TUNE-},poll=${kind%/*},cqs=${kind#*/} $shunt_run"
		asked=$shunt
	}
	start_redis "$wrap"
	for ((i = 0; i < count; i++)); do
		$wrap redis-benchmark -p "$server_port" -t get -c 1 -n 1000000000 -q > /dev/null 2>&1 &
		clients+=($!)
		children+=($!)
	done
	read -r rate cpu switches events < <(watch "$server_port" "$server_pid" "$count" "$length" "$asked")
	kill "${clients[@]}" "$server_pid"
	wait "${clients[@]}" "$server_pid" 2> /dev/null
	record "rate.$count" "${kind/\//-}" "${rate:-0}"
	record "cpu.$count" "${kind/\//-}" "${cpu:-0}"
	record "switches.$count" "${kind/\//-}" "${switches:-0}"
	record "events.$count" "${kind/\//-}" "${events:-0}"
}

for ((round = 1; round <= rounds; round++)); do
	for n in $peers; do
		for kind in $kinds; do
			once "$kind" "$n"
		done
	done
done

echo "poll/CQs $kinds" | sed 's/poll.CQs/peers/' > "$out/rb_e8.dat"
printf '%5s %-12s %12s %8s %12s %13s %11s\n' peers polling/CQs requests/s to-tcp "cpu us/op" "switches/op" "events/op"
for n in $peers; do
	line=$n
	for kind in $kinds; do
		k=${kind/\//-}
		rate=$(get_median "rate.$n" $k)
		line+=" $rate"
		printf '%5s %-12s %12s %8s %12.2f %13.3f %11.3f\n' "$n" "$kind" "$rate" \
			"$(ratio "$rate" "$(get_median "rate.$n" tcp)")" "$(get_median "cpu.$n" $k)" \
			"$(get_median "switches.$n" $k)" "$(get_median "events.$n" $k)"
	done
	echo "$line" >> "$out/rb_e8.dat"
done
bars rb_e8 "RB-E8: requests a second by peers" "requests/s" "$out/rb_e8.dat"
not_here "peers on machines of their own: clients and server share two cores, so more than one client adds no load
and takes time from the server. SCQ(M), M busy threads on M shared CQs: Shunt polls in the
program's own threads, and redis has one."
