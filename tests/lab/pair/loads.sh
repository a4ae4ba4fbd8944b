# SPDX-License-Identifier: MIT
# limit: 7200
# iperf3, and a client of redis that checks every answer, both shunted at both ends, while queue pairs are killed, the wire
# is cut, and RDMA is blocked: they go on over TCP while RDMA is away, and return to the link when they can. How long they
# pause is said, beside the pause of plain TCP on a wire that is cut, and judged by nobody: that is the machine's, too.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
cut=5		# s that the wire is down, at least
kills=3
enough=400000	# bytes, of both directions: more than what is under way
logs=/tmp/lab/loads	# what both say stays there
mkdir -p $logs
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},dead_ms=500,slow_ms=0,return_ms=500,return_max_ms=1000
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000 SHUNT_LOG=info
need iperf3 redis-server python3 jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# --- the loads: WRAP; on machine one a server, on two a client that runs until it is ended ---

iperf_serves() {
	exec $1 iperf3 -s -1 -p $port
}

iperf_asks() {
	exec $1 iperf3 -c "$theirs" -p $port -R -t 86400 -i 0.1 --forceflush
}

# Of its lines from standard input, the longest time without a byte, in ms.
iperf_pause() {
	awk '$4 == "sec" {
		split($3, time, "-")
		if ($5 + 0)
			still = 0
		else if (!still++)
			from = time[1]
		if (still && time[2] - from > most)
			most = time[2] - from
	} END { printf "%d\n", most * 1000 }'
}

iperf_is_right() {
	! grep -q "error" $logs/asks.err
}

redis_serves() {
	exec $1 redis-server --port $port --bind "$mine" --protected-mode no --save "" --appendonly no --dir "$work"
}

redis_asks() {
	exec $1 python3 "${BASH_SOURCE%/*}/keys.py" "$theirs" $port
}

redis_pause() {
	awk '$1 == "pause" && $2 > most { most = $2 } END { print most + 0 }'
}

redis_is_right() {
	grep -q '^checked [1-9]' $logs/asks
}

# --- running one ---

begin() { # LOAD WRAP
	load=$1
	if [ "$lab_self" = one ]; then
		"${load}_serves" "$2" >$logs/serves 2>$logs/serves.err &
		pid=$!
		children+=("$pid")
		within somebody_listens $port
		meet "$load listens"
	else
		meet "$load listens"
		"${load}_asks" "$2" >$logs/asks 2>$logs/asks.err &
		pid=$!
		children+=("$pid")
	fi
}

end() {
	[ "$lab_self" = one ] || { kill "$pid"; wait "$pid"; } 2>/dev/null
	meet "$load is over"
	[ "$lab_self" = two ] || { kill "$pid"; wait "$pid"; } 2>/dev/null
}

# --- what is seen of it: of the process here ---

# A number of its statistics, in $number. It may be too busy to give any at once.
look() { # EXPRESSION
	number=$("$shunt" stat --json "$pid" 2>/dev/null | jq ".[0] | $1")
	[[ $number =~ ^[0-9]+$ ]]
}

# Bytes of both directions by a track.
moved() { # TRACK
	look ".totals | .tx.$1 + .rx.$1"
}

grows() { # TRACK BEFORE
	moved $1 && [ "$number" -gt $(($2 + enough)) ]
}

carries() { # TRACK: more than now
	within moved $1 && within grows $1 "$number"
}

fails() { # BEFORE
	look .counters.failovers && [ "$number" -gt "$1" ]
}

mark() {
	marked=$(wc -l <$logs/asks)
	within look .counters.streams_returned
	returned=$number
}

pause() {
	tail -n +$((marked + 1)) $logs/asks | "${load}_pause"
}

# The stream has come back to a link.
has_returned() {
	look .counters.streams_returned && [ "$number" -gt "$returned" ]
}

returns() { # NAME
	check "$load: $1: it returns to the link" within has_returned
	check "$load: $1: which carries it" carries link
}

say_pause() { # NAME
	echo "# $load: $1: a pause of $(pause) ms"
}

# --- what happens to it ---

nothing() {
	[ "$lab_self" = two ] || return 0
	mark
	check "$load: without a fault: the link carries it" carries link
	say_pause "without a fault"
}

killed() {
	local i
	[ "$lab_self" = two ] || { meet "queue pairs were killed"; return 0; }
	for ((i = 1; i <= kills; i++)); do
		mark
		check "$load: killed, $i: a queue pair" within "$shunt" adm "$pid" failover
		returns "killed, $i"
		say_pause "killed, $i"
	done
	meet "queue pairs were killed"
}

# Until machine one has found out; no line can come meanwhile.
wire_cut() {
	local before
	[ "$lab_self" = one ] || mark
	meet "before the wire is cut"
	if [ "$lab_self" = one ]; then
		within look .counters.failovers
		before=$number
		fault_on down
		sleep $cut
		check "$load: the wire is cut: it is found out" within fails "$before"
		fault_off down
	fi
	meet "the wire is whole again"
	if [ "$lab_self" = two ]; then
		returns "the wire is cut"
		say_pause "the wire is cut"
	fi
	meet "the wire was cut"
}

# The first bytes that TCP carries may be those that the link has lost; behind it nothing of the link comes any more.
blocked() {
	local before
	[ "$lab_self" = one ] || { mark; within moved tcp; before=$number; }
	meet "before RDMA is blocked"
	fault_on block
	meet "RDMA is blocked"
	if [ "$lab_self" = two ]; then
		check "$load: RDMA is blocked: it goes on over TCP" within grows tcp "$before"
		within moved link
		before=$number
		check "$load: RDMA is blocked: it stays there" carries tcp
		within moved link
		check "$load: RDMA is blocked: nothing goes by the link" [ "$number" = "$before" ]
		say_pause "RDMA is blocked"
	fi
	meet "it has gone on"
	fault_off block
	[ "$lab_self" = one ] || returns "RDMA is free again"
	meet "it has returned"
}

has_paused() {
	plain=$(pause)
	[ "$plain" -ge $((cut * 900)) ]
}

plain_tcp() {
	begin $1 ""
	[ "$lab_self" = one ] || { within grep -q "sec.*bits/sec" $logs/asks && marked=$(wc -l <$logs/asks); }
	meet "before plain TCP's wire is cut"
	[ "$lab_self" = two ] || { fault_on down; sleep $cut; fault_off down; }
	meet "the wire is whole again"
	if [ "$lab_self" = two ]; then
		WITHIN=60 within has_paused # its answer may come later: the kernel doubles its patience
		echo "# $1: plain TCP, the wire is cut for $cut s: a pause of $plain ms"
	fi
	end
}

under_load() {
	[ "$shown" ] || plain_tcp $1	# with the first load; it is the wire's and the kernel's, not the load's
	shown=1
	begin $1 "$shunt_run"
	[ "$lab_self" = one ] || check "$1: it is on the link" within grows link 0
	nothing
	killed
	wire_cut
	blocked
	end
	[ "$lab_self" = one ] || check "$1: every answer was right" "${1}_is_right"
}

shown=''
under_load iperf
under_load redis
plan
