# SPDX-License-Identifier: MIT
# limit: 2400
# Many connections between two processes are one link, and with it few QPs; how long the way to the link is, beside
# connections of rdma_cm.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

connections=1000
most_qps=4 # of a link, at each end
many=$builddir/tests/calls/many
upgrade=$builddir/tests/bench/upgrade
need "$many" "$upgrade" jq cmtime
need_device "$lab_device"
ulimit -n 65536
export SHUNT_STATS=$work/stat.%p

# An echo server; sets server_pid and server_port.
serve() {
	start_telling $shunt_run "$many" server 2>>"$work/err"
}

# The QPs that programs have, of all devices.
qps() {
	rdma resource show qp | grep -c 'type RC'
}

crowd() {
	local client served out
	serve || return
	mkfifo "$work/answers" "$work/stay"
	exec {out}<>"$work/stay"
	TEST_LINK=900000 $shunt_run "$many" client "$server_port" $connections 3 idle <"$work/stay" {out}<&- >"$work/answers" 2>>"$work/err" &
	client=$!
	children+=("$client")
	exec {in2}<"$work/answers"
	read -r -t 1000 _ served <&"$in2"
	had=$(qps)
	spread=$("$builddir/tools/shunt" stat --json | jq -c '[.. | objects | .lanes? | arrays | .[].streams]')
	exec {out}>&- # the client's standard input ends
	wait "$client" && wait "$server_pid" || return
	[ "$served" -ge $((connections * 3)) ]
}

before=$(qps)
check "$connections connections are served" crowd
sort "$work/err" | uniq -c | head -n 5 >&2
echo "# $((had - before)) QPs; upgrades: $(cat "$work"/stat.* | jq -c .counters.upgrades | paste -sd ' ');" \
	"links: $(cat "$work"/stat.* | jq -c .counters.links | paste -sd ' ')"
check "at both ends $connections were upgraded" [ "$(counter upgrades "$work"/stat.*)" -ge $((2 * connections)) ]
# At the end of a process: the first to end may have ended the other's.
check "they were one link" jq -es 'map(.counters.links) | add >= 1 and max == 1' "$work"/stat.*
! is_verbs || check "there are QPs, no more than $most_qps at each end" [ $((had - before)) -gt 0 -a $((had - before)) -le $((2 * most_qps)) ]
echo "# streams of each lane: $spread"
check "they are spread over lanes evenly" jq -e 'length > 0 and min > 0 and max - min <= 2' <<<"$spread"
check_device "the link is over RDMA" "$work"/stat.*
check "no QP is left" [ "$(qps)" = "$before" ]

# Microseconds from connect() to the first answer by the link: of the first connection, which makes the link, and of later ones.
times() {
	serve && timeout 1000 $shunt_run "$upgrade" "$server_port" 21 900 >"$work/times" && wait "$server_pid" &&
		[ "$(grep -vcx 0 "$work/times")" = 21 ]
}
check "each of 21 connections is upgraded" times
echo "# microseconds to the link: the first $(sed -n 1p "$work/times"), the second $(sed -n 2p "$work/times")," \
	"median of those after it $(tail -n +3 "$work/times" | median)"

# What rdma_cm takes for each, without Shunt: the total of its steps to a connection.
cm() { # COUNT
	local server rc=0
	timeout 500 cmtime -c "$1" >&2 & # it stays when its connections are gone
	server=$!
	within cm_listens && timeout 400 cmtime -s 10.77.0.1 -c "$1" >"$work/client" || rc=1
	kill $server
	wait $server 2>/dev/null
	return $rc
}
# A process that may not lock the memory of a link stays on TCP and says why; root without its capability may lock only
# what the limit allows. The connections stay until it has been said, by the end that is asked first for its part.
poor() {
	local shunt_run="setpriv --bounding-set=-ipc_lock prlimit --memlock=65536 $shunt_run" client out rc=0
	local -x SHUNT_LOG=warn	# a file gets messages only where they are asked for
	serve || return
	exec {out}<>"$work/stay"
	$shunt_run "$many" client "$server_port" 3 3 idle <"$work/stay" {out}<&- >"$work/poor.answers" 2>"$work/poor" &
	client=$!
	children+=("$client")
	within grep -q "cannot be locked (ulimit -l)" "$work/poor" "$work/err" || rc=1
	exec {out}>&-
	wait "$client" && wait "$server_pid" && grep -q "^served 9$" "$work/poor.answers" && [ $rc = 0 ]
}
if is_verbs; then
	check "without memory that may be locked three connections are served, and it is said" poor
fi

for count in 1 20; do
	check "cmtime, $count at once" cm $count
	sed -n 's/^\(.*[a-z]\) *: *\([0-9.]*\) .* \([0-9.]*\)$/\1 \3/p' "$work/client" |
		awk -v n=$count '/^(create|resolve|connect)/ { sum += $NF; if ($1 == "connect") c = $NF }
			END { printf "# rdma_cm, %d at once: %.0f microseconds for each, %.0f of it in connect\n", n, sum, c }'
done
plan
