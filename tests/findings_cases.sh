# SPDX-License-Identifier: MIT
# Programs that are ill on purpose (tests/bench/sick), each beside the same load without its illness, and what the tools
# of the symptom table of docs/TROUBLESHOOTING.md say of them. For tests/findings.sh and tests/bench/paper/xr_e6.sh. Sourced after
# tests/calls/lib.sh.
#
#	MS		how long an illness holds a request up
#	REQUESTS	how many sends of which trace is kept before the tools are asked
#
# The rules are those of the table. All of them are applied to each run: a run with an illness must have its cause and
# no other, a run without must have none. The largest stage at the 90th percentile counts, and where an illness takes MS,
# only from half of that on: on a busy machine every stage grows, but one request in ten does not wait that long.
# shellcheck shell=bash disable=SC2016,SC2086,SC2154,SC2317

sick=$builddir/tests/bench/sick
tool=$builddir/tools/shunt
ms=${MS:-100} sends=${REQUESTS:-60}
request=65536

# --- a run ---

# ill KIND WAY COUNT [WORDS-OF-SHUNT_TUNE [SETTING...]]: a server of that kind and a client; sets server and client.
ill() {
	local kind=$1 way=$2 count=$3 words=${4:-} in
	shift $(($# < 4 ? $# : 4))
	start_telling env SHUNT_TUNE="poll_warn_us=$((ms * 500)),$words" "$@" $shunt_run "$sick" server "$kind" $request "$ms" 2> "$work/server.err"
	exec {in}<&-
	server=$server_pid
	env SHUNT_TRACE=0 SHUNT_TUNE="$words" "$@" $shunt_run "$sick" client "$server_port" "$way" $request "$count" 2> "$work/client.err" &
	client=$!
	children+=("$client")
}

well_again() {
	kill "$client" "$server"
	wait "$client" "$server"
} 2> /dev/null

# --- what the tools say: in $work/NAME.json ---

look() {
	"$tool" trace --json "$client" "$server" > "$work/trace.json" &&
		"$tool" trace slow --json "$server" > "$work/log.json" &&
		"$tool" stat --json "$client" "$server" > "$work/stat.json"
} 2> "$work/look.err"

traced() {
	look && [ "$(jq '.sends | length' "$work/trace.json")" -ge "$sends" ]
}

# Nothing has moved for a second.
idle() {
	look && jq -e '[.[].streams[].idle_ms] | length >= 2 and all(. != null and . >= 1000)' "$work/stat.json" > /dev/null
}

# Once it was well, the server is struck, or the client: then nothing moves any more.
struck() {
	within "$1" && kill -USR1 "$2" && within idle
}
server_struck() { struck traced "$server"; }
client_struck() { struck traced "$client"; }
reader_struck() { struck moves "$server"; }

# The device is given no more, because a limit is reached; or bytes move.
moves() {
	"$tool" top --json -n 1 -d 0.5 "$client" > "$work/top.json" &&
		jq -e '.processes[0].tx > 0' "$work/top.json" > /dev/null && look
} 2> "$work/look.err"

# The same after the beginning, in which links are made and rings grow.
flows() {
	local sends=500
	traced && moves
}

# --- the rules of the table ---

# stage NAME [MS]: where most of the time of one send in ten goes, at least so long.
stage() {
	jq -e --arg name "$1" --argjson least $((${2:-0} * 1000000)) '.stages | del(.all) | map_values(.p90_ns) |
		.[$name] >= $least and (.[$name] == (to_entries | map(.value) | max))' "$work/trace.json" > /dev/null
}

# The last send that was followed is a request, so nobody has answered it.
asked_last() {
	jq -e '.sends | length > 0 and (max_by(.called_ns).answer | not)' "$work/trace.json" > /dev/null
}

stat_says() {
	jq -e --argjson client "$client" --argjson server "$server" \
		'(.[] | select(.pid == $client)) as $c | (.[] | select(.pid == $server)) as $s | '"$1" "$work/stat.json" > /dev/null
}

# Every cause that the outputs point to.
causes() {
	stage poll $((ms / 2)) && jq -e '.[0].steps[] | select(.step == "poll").count > 0' "$work/log.json" > /dev/null &&
		echo "a program that is away between its polls"
	stage program $((ms / 2)) && echo "a program that reads slowly"
	stat_says '($s.streams | any(.recvq > 0 and .idle_ms >= 1000)) and ($c.streams | any(.sendq > 0 and .idle_ms >= 1000))' &&
		echo "a program that does not read"
	stat_says '[$s.streams[], $c.streams[]] | length > 0 and all(.recvq == 0 and .sendq == 0 and .idle_ms >= 1000)' && asked_last &&
		echo "a program that does not answer"
	stage credit && [ -s "$work/top.json" ] && jq -e '.processes[0] | .bound == "window_bytes" and .stalls > 0' "$work/top.json" > /dev/null &&
		echo "a window that is full"
	return 0
}

# What is in the outputs, in a line.
evidence() {
	local bound=-
	[ ! -s "$work/top.json" ] || bound=$(jq -r '.processes[0].bound' "$work/top.json")
	jq -rn --slurpfile trace "$work/trace.json" --slurpfile log "$work/log.json" --slurpfile stat "$work/stat.json" \
		--argjson client "$client" --argjson server "$server" --arg bound "${bound:-none}" '
		def of($pid; $name): [$stat[0][] | select(.pid == $pid).streams[][$name] // 0] | add // 0;
		def ms: . / 10000 | round / 100 | tostring;
		$trace[0].stages as $s | "p90 ms: credit " + ($s.credit.p90_ns | ms) + ", link " + ($s.link.p90_ns | ms) +
		", poll " + ($s.poll.p90_ns | ms) + ", program " + ($s.program.p90_ns | ms) + "; late polls " +
		([$log[0][0].steps[] | select(.step == "poll").count] | add | tostring) + "; Send-Q " + (of($client; "sendq") | tostring) +
		", Recv-Q " + (of($server; "recvq") | tostring) + ", idle " +
		([$stat[0][].streams[].idle_ms // 0] | min | tostring) + " ms; bound by " + $bound'
}

# judge NAME WANTED: ok if the outputs point there and nowhere else.
judge() {
	local found
	found=$(causes)
	if [ "$found" = "$2" ]; then
		ok "$1: ${2:-nothing}"
		echo "#    $(evidence)"
	else
		not_ok "$1: ${2:-nothing}"
		echo "# they point to: ${found:-nothing}"
		echo "# $(evidence)"
	fi
	[ -z "${SHOW:-}" ] || show
	rm -f "$work"/*.json
}

# As a person sees them.
show() {
	seen 2>&1 | sed 's/^/# /'
}

seen() {
	echo "--- shunt trace"
	"$tool" trace "$client" "$server" | head -n 12
	echo "--- shunt trace slow"
	"$tool" trace slow "$server" "$client" | tail -n 8
	echo "--- shunt stat --tcp"
	"$tool" stat --tcp "$client" "$server" | head -n 8
	echo "--- shunt top"
	"$tool" top -b -n 1 -d 0.5 "$client" "$server"
}

# --- the cases: each with its control ---

# one NAME WANTED READY KIND WAY COUNT [WORDS [SETTING...]]: READY says when the tools can be asked.
one() {
	local name=$1 wanted=$2 ready=$3
	shift 3
	ill "$@"
	if within "$ready"; then
		judge "$name" "$wanted"
	else
		not_ok "$name: it never came so far"
	fi
	well_again
}

find_stall() {
	one "an allocator stall" "a program that is away between its polls" traced stall ask 1
	one "the same without it" "" traced well ask 1
}

find_slow() {
	one "a slow reader" "a program that reads slowly" traced slow ask 1
}

find_deaf() {
	one "a program that goes deaf" "a program that does not read" reader_struck deaf flood 1
	one "a program that never reads" "a program that does not read" idle never flood 1
	one "the same load and a program that reads" "" moves sink flood 1
}

find_mute() {
	one "a program that goes mute" "a program that does not answer" server_struck mute ask 1
	one "an idle connection" "" client_struck well ask 1
}

# 64 streams into one reader, over a device that is slower than they are. A write takes it a millisecond.
incast_model="SHUNT_SOFT_MODEL=gbit=2,wqe=1000000,delay=5950"
find_incast() {
	one "an incast" "a window that is full" flows sink flood 64 ring_max=256K,window=128K "$incast_model"
	one "one client over the same device" "" traced well ask 1 window=128K "$incast_model"
}
