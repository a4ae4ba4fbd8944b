#!/bin/bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016,SC2059 # $n is jq's; the bytes of a greeting are a format
# shunt perf: its options, that each model measures what it says, and what is said when an end fails.
set -u
. "${top_srcdir:?}/tests/lib.sh"
export TMPDIR=$work

# Cold buffers are twice the last cache, which may be hundreds of MiB. In a namespace of its own the test has a small one.
small_cache() {
	local caches=/sys/devices/system/cpu/cpu0/cache
	[ "${ALONE:-}" = yes ] && mount -t tmpfs tmpfs "$caches" && mkdir "$caches/index0" || return 0
	echo 2 >"$caches/index0/level"
	echo Unified >"$caches/index0/type"
	echo 1024K >"$caches/index0/size"
	echo 0 >"$caches/index0/shared_cpu_list"
}
small_cache

# ---- refused before anything starts ----

refused() { # PATTERN ARGUMENT…
	local pattern=$1
	shift
	expect 2 "$shunt" perf "$@"
	has "$err" "$pattern"
}

refused 'no model'
refused 'models are pingpong' nothing
refused 'not pingpong\[:BYTES\]' pingpong:0
refused 'not pingpong\[:BYTES\]' pingpong:8:8
refused 'not rr:Q:A' rr:64
refused 'not rr:Q:A' rr:64:0
refused 'not rr:Q:A' rr:64:17M
refused 'not rr:Q:A' rr:64:64:1025
refused 'not rr:Q:A.*1G bytes' rr:16M:16M:64
refused '--touch is tx, dummy or none.*rx' --touch rx pingpong
refused '--touch-op is write or read.*both' --touch-op both pingpong
refused '--scan is read, write, none or check.*yes' --scan yes pingpong
refused '--access is seq, stride or random.*zipf' --access zipf pingpong
refused '--side is server, client or both.*peer' --side peer pingpong
refused "--buffers is table, reused or fresh, not ''" --buffers= pingpong
refused 'spread from 0.1' --spread 0 pingpong
refused 'spread from 0.1' --spread 5x pingpong
refused 'limit of rounds from 2' --max-rounds 1 pingpong
refused 'more rounds than --max-rounds' --rounds 9 --max-rounds 8 --spread 5 pingpong
refused '--cpu 0,: CPUs are SERVER' --cpu 0, pingpong
refused '--cpu 0-: CPUs are SERVER' --cpu 0- pingpong
refused '--cpu 1-0: CPUs are SERVER' --cpu 1-0 pingpong
refused '--cpu 0,1,2: CPUs are SERVER' --cpu 0,1,2 pingpong
refused '--cpu 9999: CPUs are SERVER' --cpu 9999 pingpong
refused '--cpu 1023: CPU 1023 is not there' --cpu 1023 pingpong
refused 'not a rate from 1' --rate 0 pingpong
refused 'not a rate from 1' --rate 5/m pingpong
refused 'more than 8 rates' --rate 1 --rate 2 --rate 3 --rate 4 --rate 5 --rate 6 --rate 7 --rate 8 --rate 9 pingpong
refused 'arrivals are constant and poisson' --arrivals uniform pingpong
refused 'stream: --rate is for models' --rate 5 stream
refused 'cluster:small: --rate is for models' --rate 5 cluster:small
refused 'mix: --rate is for models' --rate 5 mix
refused "'nohost' is not ADDRESS" --serve nohost
refused "'127.0.0.1:65535' is not ADDRESS" --serve 127.0.0.1:65535
refused "'127.0.0.1:x' is not ADDRESS" --serve 127.0.0.1:x
refused '--serve has no other options' --serve 127.0.0.1 pingpong
refused '--serve has no other options' --serve --to 127.0.0.1
refused 'not stream\[:BYTES\]' stream:2M
refused 'not cluster:SIZE' cluster
refused 'not cluster:SIZE' cluster:huge
refused 'not cluster:SIZE' cluster:small:0
refused 'not incast:N' incast
refused 'not incast:N' incast:1025
refused 'not mix' mix:0
refused 'not mix' mix:95:5:64
refused 'not mix:READS:WRITES.*together 100' mix:95:6:64:4K
refused 'not mix:READS:WRITES' mix:100:0:64:4K
refused 'not mix:READS:WRITES' mix:95:5:64:17M
refused 'not mix:READS:WRITES' mix:95:5:64:4K:1:1
refused 'not flow:SIZE' flow:1:1:1
refused 'not flow:SIZE' flow:1:1:1:1:1:1:1
refused 'shorter than' "pingpong:$(printf '0%.0s' {1..80})"
refused 'rounds.*0' --rounds 0 pingpong
refused 'seconds.*nan' --seconds nan pingpong
refused 'seconds.*abc' --seconds abc pingpong
refused 'threads.*65' --threads 65 pingpong
refused 'depth.*-1' --depth -1 pingpong
refused "transports are tcp and shunt.*'udp'" --transports tcp,udp pingpong
refused "two transports of the name 'tcp'" --transports tcp,tcp pingpong
refused 'NAME=VARIABLE=VALUE' --variant plain pingpong
refused 'no name' --variant =SHUNT_TUNE=spin_us=0 pingpong
refused "two transports.*'shunt'" --variant shunt=SHUNT_TUNE=spin_us=0 pingpong
refused 'no VARIABLE=VALUE' --variant a=spin_us pingpong
refused 'no variable of Shunt.*LD_PRELOAD' --variant a=LD_PRELOAD=x pingpong
refused 'no variable of Shunt.*SHUNT_NOTHING' --variant a=SHUNT_NOTHING=1 pingpong
refused 'SHUNT_STATS' --variant a=SHUNT_STATS=/tmp/x pingpong
refused 'variant a: .*spin_us=abc' --variant a=SHUNT_TUNE=spin_us=abc pingpong
refused 'cannot write /nonexistent/x' --csv /nonexistent/x pingpong
refused 'a .png or a .svg' --plot x.gif pingpong
expect 2 env SHUNT_TUNE=spin_us=abc "$shunt" perf pingpong
has "$err" 'spin_us=abc'
expect 2 env PATH=/nonexistent "$shunt" perf --plot "$work/x.png" pingpong
has "$err" 'gnuplot, which is not installed'
expect 0 "$shunt" perf --help
has "$out" 'incast:N'
expect 2 "$shunt" perf-end
expect 2 "$shunt" perf-end server 0
expect 2 "$shunt" perf-end client 127.0.0.1 1 1 1 1 000000 constant:0 1:2:3
expect 2 "$shunt" perf-end client 127.0.0.1 1 1 1 1 000000 never:0 64:64:0:0:1:0:1
expect 2 "$shunt" perf-end client 127.0.0.1 1 1 1 1 090000 constant:0 64:64:0:0:1:0:1
expect 2 "$shunt" perf-end client 127.0.0.1 1 1 1 1 100000 constant:0 64:64:0:0:1:0:1
expect 0 "$shunt" --help
lacks "$out" 'perf-end'

# greeting REQUEST REPLY WORK: one byte of each size, as \xNN.
greeting() {
	printf "shuntprf\\2\0\0\0\0\0\0\0$1\0\0\0$2\0\0\0\0\0\0\0\0\0\0\0\\1\0\0\0$3\0\0"
}

# children PID COUNT: waits until it has as many, and puts them in the array found.
children() {
	found=()
	until [ "${#found[@]}" = "$2" ] || ! kill -0 "$1" 2>/dev/null; do
		read -ra found 2>/dev/null <"/proc/$1/task/$1/children"
	done
}

# ---- measured ----

models=(pingpong stream:1000 cluster:small cluster:16:50:100 incast:8:1K mix:1:4 flow:100:3:20:4)
expect 0 "$shunt" perf --rounds 1 --seconds 0.2 --threads 2 --variant none=SHUNT_DEVICE=none \
	--csv "$work/csv" --json "$work/json" --html "$work/page.html" "${models[@]}"
for model in "${models[@]}"; do
	has "$out" "^$model "
done
has "$out" '^mix:1:4 mice '
lacks "$out" 'FAILED|disagree'
narrow "$out"

# Size of a request by model and flow, so that bytes can be compared with operations.
awk -F, '
	BEGIN {
		size["pingpong,"] = 64; size["stream:1000,"] = 1000; size["cluster:small,"] = 64
		size["cluster:16:50:100,"] = 100; size["incast:8:1K,"] = 1024
		size["mix:1:4,elephants"] = 131072; size["mix:1:4,mice"] = 64
		size["flow:100:3:20:4,"] = 100
	}
	function wrong(what) { print what ": " $0; bad = 1 }
	NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; columns = NF; next }
	{ lines++; s = size[$1 "," $2] }
	NF != columns { wrong("columns") }
	!s { wrong("model") }
	$column["bytes"] != $column["operations"] * s { wrong("bytes") }
	$column["run_operations"] < 1 || $column["run_operations"] < $column["operations"] { wrong("operations") }
	$column["p50_us"] > $column["p99_us"] || $column["p99_us"] > $column["max_us"] { wrong("percentiles") }
	$1 ~ /^stream/ && $column["p50_us"] != "" { wrong("latency of a stream") }
	$1 !~ /^stream/ && $2 != "elephants" && $column["latencies"] != $column["operations"] { wrong("latencies") }
	$3 == "tcp" && $column["link_share"] $column["wr"] != "" { wrong("link of plain TCP") }
	$3 == "none" && $column["link_share"] $column["wr"] != "00" { wrong("link without a device") }
	$3 == "shunt" && $column["link_share"] == "" { wrong("link") }
	END { if (lines != 8 * 3 * 2) { print lines " lines"; bad = 1 }; exit bad }
' "$work/csv" >"$work/wrong" || problem "CSV: $(cat "$work/wrong" "$work/csv")"

python3 "$top_srcdir/tests/page.py" "$work/page.html" || problem "the page is wrong"
has "$(cat "$work/page.html")" 'Measured: a wake-up of .* us on the same CPU'
has "$(cat "$work/json")" '^  "schema": 1,'
if command -v jq >/dev/null; then
	jq -e '(.models | length) == 7 and .rounds == 1 and
		([.models[].transports[] | .name] | unique) == ["none", "shunt", "tcp"] and
		([.models[].transports[] | select(.name == "none") | .link.share] | unique) == [0] and
		([.models[].transports[] | select(.shunted) | .link.agree] | unique) == [true] and
		(.models[5].flows | map(.connections)) == [1, 4] and
		([.models[].transports[].median | .run_operations > 0 and .cpu_seconds >= 0] | all)' \
		"$work/json" >/dev/null || problem "JSON: $(cat "$work/json")"
else
	has "$(cat "$work/json")" '"name": "flow:100:3:20:4"'
fi

# The traffic of a shunted run goes over the link; how soon is the machine's business.
expect 0 "$shunt" perf --transports shunt --rounds 1 --seconds 0.5 --depth 8 --csv "$work/csv" stream
[ "$(awk -F, '$4 == "median" { print ($18 > 0) }' "$work/csv")" = 1 ] ||
	problem "not on the link: $(cat "$work/csv")"

# Chains that fill up while a stream is in them: its bytes go once.
expect 0 "$shunt" perf --rounds 1 --seconds 0.1 --threads 2 --depth 64 --transports shunt \
	--variant single=SHUNT_TUNE=batch=single --variant merge=SHUNT_TUNE=batch=merge \
	--variant chain=SHUNT_TUNE=batch=chain incast:32:64 stream:64
lacks "$out" 'FAILED'

# ---- work on the bytes ----

# works OPTIONS MODEL JQ…: of each transport, an expression of its totals in jq, where n is its operations.
works() {
	local options=$1 model=$2
	shift 2
	# shellcheck disable=SC2086 # several options
	expect 0 "$shunt" perf --rounds 1 --seconds 0.05 $options --json "$work/json" "$model"
	command -v jq >/dev/null || return
	jq -e "[.models[].transports[].rounds[] | .run_operations as \$n | ($*)] | all" "$work/json" \
		>/dev/null || problem "$options $model: not $*: $(jq -c '.models[].transports[].rounds' "$work/json")"
}

# A request of 100 bytes has 2 lines, an answer of 1000 has 16; the last is not a whole one.
works '' rr:100:1000 '.lines_touched == 0 and .lines_scanned == 0 and .bytes_checked == $n * 1100'
works '--touch tx' rr:100:1000 '.lines_touched == $n * 18 and .lines_dummy == 0 and .bytes_checked == $n * 1100'
works '--touch dummy' rr:100:1000 '.lines_touched == 0 and .lines_dummy == $n * 18 and .bytes_checked == $n * 1100'
works '--touch tx --touch-op read --access random' rr:100:1000 '.lines_touched == $n * 18 and .bytes_checked == $n * 1100'
works '--touch tx --side server' rr:100:1000 '.lines_touched == $n * 16 and .bytes_checked == $n * 100'
works '--touch tx --side client' rr:100:1000 '.lines_touched == $n * 2 and .bytes_checked == $n * 1000'
works '--scan read' rr:100:1000 '.lines_scanned == $n * 18 and .bytes_checked == 0'
works '--scan write --side client' rr:100:1000 '.lines_scanned == $n * 16 and .bytes_checked == 0'
works '--scan none' rr:100:1000 '.lines_scanned == 0 and .bytes_checked == 0'
works '--touch tx --access stride --buffers fresh' rr:1:100001 '.lines_touched == $n * 1564 and .bytes_checked == $n * 100002'
works '--touch tx --depth 16 --threads 2' rr:3000:7:5 '.lines_touched == $n * 48 and .bytes_checked == $n * 3007'
works '--touch tx --access random' stream:1000 '.lines_touched == $n * 16 and .bytes_checked == $n * 1000'
works '--buffers fresh --scan none' rr:16M:16M '.lines_scanned == 0'
if command -v jq >/dev/null; then
	# Of each 100 requests 5 or 25 are writes, evenly spread: on each connection as many as their share, or one more or
	# less. Those of the warm-up are in $n, too.
	works '--touch tx --threads 2 --depth 3' mix:95:5:64:4K:3 '((.flows[0].operations + .flows[1].operations) / 20 -
		.flows[1].operations | . > -4 and . < 4) and .flows[0].bytes == .flows[0].operations * 64 and
		.flows[1].bytes == .flows[1].operations * 4096 and .lines_touched == $n * 65'
	has "$out" '^mix:95:5:64:4K:3 reads +tcp'
	has "$out" '^mix:95:5:64:4K:3 writes$'
	works '--scan write' mix:75:25:100:3000 '.lines_scanned == $n * 49'
	works '' mix:1:99:100:3000 '.bytes_checked == $n * 3100'
	works '--touch dummy --access stride' rr:1:1 true
	has "$(jq -c .work "$work/json")" '"touch":"dummy","touch-op":"write","scan":"check","access":"stride","side":"both","buffers":"reused"'
fi

# ---- rounds, CPUs, the machine ----

# A spread that no machine can miss, and a limit that ends the rounds.
expect 0 "$shunt" perf --spread 100% --seconds 0.05 --rounds 1 --max-rounds 5 --csv "$work/csv" --json "$work/json" pingpong
has "$out" '^pingpong: [0-9]+ rounds( until every spread was below 100%|, the most allowed)'
has "$(tr -s '\n ' ' ' <<<"$out")" '^This machine .* CPUs, [0-9]+ allowed.*; Linux [0-9].*Mitigations.*; vulnerable: .*Measured: a wake-up of .* contains two wake-ups'
has "$(head -n 1 "$work/csv")" ',bytes_checked,spread_percent,.*,touch,touch-op,.*,rounds_ended,pinned,cpu_model,cpus,caches,'
awk -F, 'NR == 1 { columns = NF } NF != columns { exit 1 }' "$work/csv" || problem "CSV: $(cat "$work/csv")"
expect 0 "$shunt" perf --spread 0.1 --max-rounds 3 --rounds 2 --seconds 0.01 --transports tcp --cpu 0 \
	--json "$work/json" pingpong rr:1:100K
has "$out" 'cpu=0'
if command -v jq >/dev/null; then
	jq -e --arg kernel "Linux $(uname -r)" '.machine.kernel == $kernel and .machine.cpus > 0 and
		(.machine | .cpus_allowed > 0 and .cpus_allowed <= .cpus and .mitigated.count >= 0 and .vulnerable.count >= 0 and
			.system_call_ns > 0 and .wakeup_same_cpu_ns > 0 and (.cpus_allowed == 1 or .wakeup_ns > 0)) and
		.pinned == "0" and .max_rounds == 3 and (.models | length) == 2 and
		([.models[] | (.rounds == 3 and .rounds_ended == "limit") or .rounds_ended == "spread"] | all) and
		([.models[].transports[].median.flows[].spread_percent >= 0] | all)' \
		"$work/json" >/dev/null || problem "JSON: $(cat "$work/json")"
fi

# ---- the open loop ----

# A rate that any machine can keep up with, and one that none can: every request that was due has a latency, sent or not.
# With a constant rate as many are due in the measured time as the rate says, each within one of it.
expect 0 "$shunt" perf --rounds 1 --seconds 0.2 --rate 500 --rate 20000000/s --json "$work/json" --csv "$work/csv" rr:64:1K
has "$out" '^rr:64:1K@500 +tcp'
has "$out" '^OPEN LOOP'
narrow "$out"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; columns = NF }
	NF != columns || (NR > 1 && $1 ~ /@500$/ && $column["rate"] $column["arrivals"] != "500constant") { exit 1 }' \
	"$work/csv" || problem "CSV: $(cat "$work/csv")"
if command -v jq >/dev/null; then
	jq -e '(.models | map(.name)) == ["rr:64:1K", "rr:64:1K@500", "rr:64:1K@20000000"] and
		.models[1].open_loop == {"rate": 500, "arrivals": "constant"} and (.models[0] | has("open_loop") | not) and
		([.models[1].transports[].rounds[].flows[] | .latencies >= 99 and .latencies <= 101] | all) and
		([.models[2].transports[].rounds[].flows[] | .unsent > 0 and .latencies >= 3999999 and
			.latencies <= 4000001 and .operations < .latencies and .max_us >= 199000] | all)' \
		"$work/json" >/dev/null || problem "open loop: $(cat "$work/json")"
fi
# Poisson arrivals are the same for each transport, on several threads, too.
works '--rate 2000 --arrivals poisson --threads 2' mix:95:5:64:1K:4 '.bytes_checked == $n * 1088'
if command -v jq >/dev/null; then
	jq -e '.models[1] | .open_loop.arrivals == "poisson" and ([.transports[].rounds[].flows | map(.latencies) | add] |
		unique | length == 1 and .[0] > 0)' "$work/json" >/dev/null || problem "poisson: $(cat "$work/json")"
fi

# Each end runs where it was put.
"$shunt" perf --transports tcp --seconds 60 --cpu 0 pingpong >"$work/out" 2>"$work/err" &
perf=$!
children "$perf" 2
for child in "${found[@]}"; do
	# It is there before it has moved, and ends after a minute in any case.
	until grep -q '^Cpus_allowed_list:[[:space:]]0$' "/proc/$child/status" || [ ! -d "/proc/$child" ]; do sleep 0.01; done
	has "$(cat "/proc/$child/status")" '^Cpus_allowed_list:[[:space:]]0$'
done
kill -TERM "$perf"
wait "$perf"

# ---- across hosts: here the two are one ----

exec {served}< <(exec "$shunt" perf --serve 127.0.0.1:0 2>"$work/served")
server=$!
read -r line <&"$served"
has "$line" 'serves at 127.0.0.1, plain at port [0-9]+ and shunted at port [0-9]+$'
plain_port=${line#*plain at port }
plain_port=${plain_port%% *}
shunt_port=${line##* }

# stranger PORT: bytes from standard input, to a connection that then waits for the server's end of it.
stranger() {
	exec {socket}<>"/dev/tcp/127.0.0.1/$1"
	cat 2>/dev/null 1>&"$socket"
	cat <&"$socket" >"$work/answer" 2>/dev/null
	exec {socket}>&-
}
for port in "$plain_port" "$shunt_port"; do
	head -c 100 /dev/zero | stranger "$port"
	# A version that is none, a size beyond the limit, a share beyond 99, an index beyond the connections.
	greeting '\x40' '\x40' '\0\0\0\0\0\0' | sed 's/prf\x02/prf\x03/' | stranger "$port"
	greeting '\x40' '\x40\0\0\x40' '\0\0\0\0\0\0' | head -c 48 | stranger "$port"
	greeting '\x40' '\x40' '\x9\0\0\0\0\0' | stranger "$port"
	# Wrong bytes, and an end inside a request.
	{ greeting '\x40' '\x40' '\0\0\0\0\0\0'; printf wrong; } | stranger "$port"
done
[ "$(grep -c 'it is no client of this version' "$work/served")" = 8 ] || problem "strangers: $(cat "$work/served")"
[ "$(grep -c 'byte 0 of the requests is 0x77' "$work/served")" = 2 ] || problem "strangers: $(cat "$work/served")"
# One that says nothing keeps nobody waiting, nor does one that went away.
exec {silent}<>"/dev/tcp/127.0.0.1/$plain_port"
: >"/dev/tcp/127.0.0.1/$shunt_port"
# A crowd that says nothing is more than the server takes, and keeps nobody out.
exec {crowd}< <(ulimit -n "$(ulimit -Hn)" && exec python3 -c '
import signal, socket, sys
crowd = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(1200)]
print("here", flush=True)
signal.pause()' "$plain_port")
crowd_pid=$!
read -r line <&"$crowd"

expect 0 "$shunt" perf --to "127.0.0.1:$plain_port" --rounds 1 --seconds 0.3 --threads 2 --touch tx --rate 500 \
	--csv "$work/csv" --json "$work/json" rr:64:4K mix:75:25:64:4K:4
has "$out" '^Server 127.0.0.1: '
lacks "$out" 'FAILED'
narrow "$out"
if command -v jq >/dev/null; then
	jq -e '.server.address == "127.0.0.1" and (.models | length) == 4 and
		([.models[].transports[] | .name] | unique) == ["shunt", "tcp"] and
		([.models[].transports[].rounds[] | .lines_touched == .run_operations * 65 and
			.bytes_checked == .run_operations * 4160 and .cpu_seconds >= 0] | all) and
		([.models[].transports[] | select(.shunted) | .link.share > 0] | all)' \
		"$work/json" >/dev/null || problem "across hosts: $(cat "$work/json")"
fi
expect 0 "$shunt" perf --to "127.0.0.1:$plain_port" --transports tcp --rounds 1 --seconds 0.02 --buffers fresh \
	pingpong stream cluster:4 incast:8 mix:1:2 flow:100:3:20:4
lacks "$out" 'FAILED'
# The shunted port is no place to ask, and nobody listens at port 1.
expect 1 "$shunt" perf --to "127.0.0.1:$shunt_port" pingpong
has "$err" '--to 127.0.0.1:[0-9]+: .*start .shunt perf --serve'
expect 1 "$shunt" perf --to 127.0.0.1:1 pingpong
has "$err" '--to 127.0.0.1:1: Connection refused; start .shunt perf --serve'
has "$(cat "$work/served")" 'others came, and it had said nothing'
# Those who are turned away are counted, and not each is worth a line.
python3 -c '
import socket, sys
for _ in range(1000):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        sock.sendall(bytes(100))
        try:
            sock.recv(1)
        except ConnectionResetError:
            pass' "$plain_port"
[ "$(wc -l <"$work/served")" -lt 200 ] || problem "$(wc -l <"$work/served") lines about strangers"
has "$(cat "$work/served")" 'no more such lines for a minute'
kill "$crowd_pid"
exec {silent}>&-
kill -TERM "$server"
wait "$server" || problem "the server's end: $(cat "$work/served")"

# The sizes of clusters are found.
expect 0 "$shunt" perf --transports tcp --rounds 1 --seconds 0.01 cluster:medium:10 cluster:large:10
has "$out" '^cluster:medium:10 \([0-9]+\)( +tcp|$)'
has "$out" '^cluster:large:10 \([0-9]+\)( +tcp|$)'
narrow "$out"

if command -v gnuplot >/dev/null; then
	expect 0 "$shunt" perf --transports tcp --rounds 1 --seconds 0.05 --plot "$work/it's.svg" pingpong
	grep -q '<svg' "$work/it's.svg" || problem "no picture: $err"
fi

# ---- an end that fails ----

# Talks to a server of its own: says the greeting and then other bytes than it should.
exec {ready}< <(exec "$shunt" perf-end server 1 3>&1 >/dev/null 2>"$work/server")
server=$!
read -r port <&"$ready"
{ greeting '\x40' '\x40' '\0\0\0\0\0\0'; printf wrong; } >"/dev/tcp/127.0.0.1/$port"
wait "$server"
[ $? = 1 ] || problem "wrong bytes: the server did not fail"
has "$(cat "$work/server")" 'connection 0: byte 0 of the requests is 0x77 and should be 0x'

# A reader sees a line whose mark is of another message: here the sender never wrote them.
exec {ready}< <(exec "$shunt" perf-end server 1 3>&1 >/dev/null 2>"$work/server")
server=$!
read -r port <&"$ready"
{ greeting '\x40' '\x40' '\1\0\0\0\0\1'; head -c 64 /dev/zero; } >"/dev/tcp/127.0.0.1/$port"
wait "$server"
[ $? = 1 ] || problem "no marks: the server did not fail"
has "$(cat "$work/server")" 'connection 0: byte 0 of the requests is 0x00 and should be 0x01'

# The server is the first child.
"$shunt" perf --transports shunt --seconds 60 pingpong >"$work/out" 2>"$work/err" &
perf=$!
children "$perf" 2
kill -KILL "${found[0]}"
wait "$perf"
[ $? = 1 ] || problem "killed server: perf did not fail"
has "$(cat "$work/out")" 'pingpong +FAILED: shunt: the server was killed by signal 9'

# Interrupted, and nobody reads any more what it says: nothing is left.
mkfifo "$work/unread"
exec {reader}<>"$work/unread"
"$shunt" perf --seconds 60 pingpong >"$work/unread" 2>&1 {reader}<&- &
perf=$!
children "$perf" 2
exec {reader}<&-
kill -TERM "$perf"
wait "$perf"
[ $? = 130 ] || problem "interrupted: exit status not 130"
for child in "${found[@]}"; do
	! kill -0 "$child" 2>/dev/null || problem "child $child is still there"
done
[ -z "$(find "$work" -name 'shunt-perf-*')" ] || problem "it left $(ls "$work")"

finish
