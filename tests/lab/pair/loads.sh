# limit: 1500
# iperf3, and a client of redis that checks every answer, both shunted at both ends, while queue pairs are killed, the wire
# is cut, and RDMA is blocked: they go on over TCP, return to the link when they can, and pause no longer than it takes to
# find out and a second. What plain TCP makes of a wire that is cut is shown beside it.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
detected=500	# ms: SHUNT_DEAD_MS
cut=5		# s that the wire is down
kills=3
patience=600	# s: one waits while queue pairs of the other are killed
logs=/tmp/lab/loads	# what both say stays there
mkdir -p $logs
export SHUNT_DEVICE=verbs SHUNT_DEAD_MS=$detected SHUNT_RETURN_MS=500 SHUNT_RETURN_MAX_MS=1000 SHUNT_CLAIM_MS=10000 SHUNT_LOG=info
need iperf3 redis-server python3 jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# --- the loads: WRAP; on machine one a server, on two a client that runs until it is ended ---

iperf_serves() {
	exec $1 iperf3 -s -1 -p $port
}

iperf_asks() {
	exec $1 iperf3 -c "$theirs" -p $port -R -t 1000 -i 0.1 --forceflush
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

# --- what machine two sees of it ---

# Bytes of both directions by a track.
moved() {
	"$shunt" stat --json "$pid" 2>/dev/null | jq ".[0].totals | .tx.$1 + .rx.$1"
}

grows() { # TRACK BEFORE
	[ "$(moved $1)" -gt $((${2:-0} + 200000)) ] 2>/dev/null
}

# How often the stream has come back to a link.
came_back() {
	"$shunt" stat --json "$pid" 2>/dev/null | jq '.[0].counters.streams_returned'
}

mark() {
	marked=$(wc -l <$logs/asks)
	returned=$(came_back)
}

pause() {
	tail -n +$((marked + 1)) $logs/asks | "${load}_pause"
}

has_returned() {
	kill -0 "$pid" 2>/dev/null && [ "$(came_back)" -gt "$returned" ] 2>/dev/null
}

returns() { # NAME
	check "$load: $1: it returns to the link" within has_returned
}

returns_and_carries() { # NAME
	returns "$1"
	check "$load: $1: which carries it" within grows link "$(moved link)"
}

pause_is_short() { # NAME MS MOST
	echo "# $load: $1: a pause of $2 ms"
	check "$load: $1: no more than $3 ms" [ "$2" -le "$3" ]
}

# --- what happens to it ---

nothing() {
	[ "$lab_self" = two ] || return 0
	mark
	sleep 3
	usual=$(pause)
	echo "# $load: without a fault: a pause of $usual ms"
	most=$((usual + detected + 1000))
}

killed() {
	local i pauses=()
	[ "$lab_self" = two ] || { meet "queue pairs were killed"; return 0; }
	for ((i = 0; i < kills; i++)); do
		mark
		"$shunt" adm "$pid" failover >/dev/null || not_ok "$load: killing a queue pair"
		returns "killed, $((i + 1))"
		pauses+=("$(pause)")
	done
	echo "# $load: a queue pair is killed: pauses of ${pauses[*]} ms, median $(printf '%s\n' "${pauses[@]}" | median)"
	pause_is_short "a queue pair is killed, worst" "$(printf '%s\n' "${pauses[@]}" | sort -n | tail -1)" $most
	meet "queue pairs were killed"
}

# Ends when bytes move again.
cut_wire() {
	[ "$lab_self" = two ] || { fault_on down; sleep $cut; fault_off down; }
	meet "the wire is whole again"
}

wire_cut() { # MOST
	[ "$lab_self" = one ] || mark
	meet "before the wire is cut"
	cut_wire
	if [ "$lab_self" = two ]; then
		returns_and_carries "the wire is cut for $cut s"
		pause_is_short "the wire is cut for $cut s" "$(pause)" $((plain + most))
	fi
	meet "the wire was cut"
}

blocked() {
	local before
	[ "$lab_self" = one ] || mark
	meet "before RDMA is blocked"
	fault_on block
	if [ "$lab_self" = two ]; then
		sleep 1	# what was on its way
		check "$load: RDMA is blocked: it goes on over TCP" within grows tcp "$(moved tcp)"
		sleep 2
		before=$(moved link)
		check "$load: RDMA is blocked: it stays there" within grows tcp "$(moved tcp)"
		check "$load: RDMA is blocked: nothing goes by the link" [ "$(moved link)" = "$before" ]
		pause_is_short "RDMA is blocked" "$(pause)" $most
	fi
	meet "it has gone on"
	fault_off block
	[ "$lab_self" = one ] || returns_and_carries "RDMA is free again"
	meet "it has returned"
}

has_paused() {
	plain=$(pause)
	[ "$plain" -ge $((cut * 900)) ]
}

plain_tcp() {
	begin $1 ""
	[ "$lab_self" = one ] || { sleep 2; mark; }
	meet "before plain TCP's wire is cut"
	cut_wire
	if [ "$lab_self" = two ]; then
		sleep 2
		within has_paused # its answer may come later: the kernel doubles its patience
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
WITHIN=240 under_load iperf
WITHIN=240 under_load redis
[ "$lab_self" = two ] || ok "this end has served"
plan
