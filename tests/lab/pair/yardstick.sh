# SPDX-License-Identifier: MIT
# limit: 9000
# The device's own measure: messages of several sizes one way, and to and fro, between two machines. A plain loop of
# WRITE_WITH_IMM (tests/bench/raw_imm), polling and waiting for events; perftest's ib_write_bw and ib_send_lat; and one
# program of TCP over rsocket, Shunt and the kernel. Medians of turns that alternate. A table and no judgement, but with
# LAB_STRICT: from 4 KiB on Shunt has 0.97 of the better loop's bandwidth, below as many messages; 1.10 of its round trip;
# and in 6 of 7 turns it is not behind rsocket.
#	TURNS=3 SIZES="64 65536"	SIZES=all: from 8 bytes to 1 MiB
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

turns=${TURNS:-3}
sizes=${SIZES:-64 65536}	# bytes
[ "$sizes" != all ] || sizes="8 64 512 4096 65536 1048576"
warm=4000	# ms before a program of TCP is measured: Shunt has a link by then
window=64	# messages of the loop that are under way
raw=$builddir/tests/bench/raw_imm
pp=$builddir/tests/bench/pp
export SHUNT_TUNE=${SHUNT_TUNE-},slow_ms=0,dead_ms=10000 SHUNT_STATS=$work/stat.%p
need "$raw" "$pp" jq
need_shunt
peers_device
longest=120	# what hangs, or is slower by far, has failed: it has no figure
columns="raw events"
if command -v ib_write_bw ib_send_lat >/dev/null; then
	columns+=" perftest"
else
	[ "$lab_self" = one ] || echo "# perftest is not installed: its column is left out"
fi
columns+=" tcp rsocket shunt"
counted="requests signaled polls sleeps"	# what raw_imm -v and the statistics say of this end

# How many of a size are measured one way, and to and fro.
messages_of() { # SIZE
	local many=$((33554432 / $1))
	echo $((many < 32 ? 32 : many > 2000 ? 2000 : many))
}

trips_of() { # SIZE
	local many=$((16777216 / $1))
	echo $((many < 32 ? 32 : many > 500 ? 500 : many))
}

# WHO KIND SIZE COUNT; the client's figure is in $work/said: messages a second, nanoseconds.
of_verbs() {
	local option=''
	[ "$1" != events ] || option=-e
	wire_raw "$2" "$3" "$4" $window -v $option
}

# Between the first byte and the messages nothing is sent, so that nothing else is counted.
of_tcp() {
	local wrap
	wrap=$(wrap_of "$1")
	rm -f "$work"/stat.*
	between $wrap "$pp" server -a 10.78.0.1 -P $port -- listens $port -- \
		$wrap "$pp" client $port "$2" -a 10.78.0.1 -s "$3" -n "$4" -w $warm -q
}

of_perftest() {
	local program=ib_write_bw gid
	[ "$2" = rate ] || program=ib_send_lat
	gid=$(gid_index rxe0)
	between $program -F -d rxe0 -x "$gid" -s "$3" -n "$4" -p $port -- somebody_listens $port -- \
		$program -F -d rxe0 -x "$gid" -s "$3" -n "$4" -p $port 10.78.0.1
}

# The client's figure in $figure: Mbit/s or microseconds; nothing where there is none.
read_figure() { # WHO KIND SIZE
	case $1.$2 in
	perftest.rate) figure=$(awk -v size="$3" '$1 == size { printf "%.1f", $4 * 8.388608 }' "$work/said") ;;
	perftest.rtt) figure=$(awk -v size="$3" '$1 == size { printf "%.1f", $6 * 2 }' "$work/said") ;;
	*.rate) figure=$(raw_mbits "$3") ;;
	*.rtt) figure=$(awk '/^[0-9]+$/ { printf "%.1f", $1 / 1e3 }' "$work/said") ;;
	esac
}

packets() {
	echo $(($(hw_counter sent_pkts) + $(hw_counter rcvd_pkts)))
}

# What this end has done for the messages, in the order of $counted; nothing where nobody counts.
work_of() { # WHO
	case $1 in
	raw | events) awk '/^posted/ { print $2, $4, $8, $12 }' "$work/said" ;;
	shunt) cat "$work"/stat.* | jq -r '.counters | "\(.wr) \(.wr_signaled) \(.polls) \(.sleeps)"' ;;
	esac
}

# keep NAME NUMBER COUNT: a number for each message.
keep() {
	awk -v number="$2" -v count="$3" 'BEGIN { printf "%.1f\n", number / count }' >>"$work/$1"
}

# One turn. Machine two keeps the figure; each keeps what it has counted.
measure() { # WHO KIND SIZE COUNT
	local who=$1 kind=$2.$3 before number name names
	port=$((port + 1)) figure=''
	before=$(packets)
	case $who in
	raw | events) of_verbs "$@" ;;
	perftest) of_perftest "$@" ;;
	*) of_tcp "$@" ;;
	esac || { echo "$who $kind: failed, after $SECONDS s" >&2 && return; }
	[ "$lab_self" = one ] || read_figure "$who" "$2" "$3"
	echo "$who $kind: $figure, after $SECONDS s" >&2
	[ -z "$figure" ] || echo "$figure" >>"$work/$kind.$who"
	echo "${figure:-none}" >>"$work/$kind.$who.turns"
	[ "$who" != shunt ] || check_share "$kind, turn $turn" 99 "$work"/stat.*
	keep $kind.$who.packets $(($(packets) - before)) "$4"
	read -ra names <<<"$counted"
	for number in $(work_of "$who"); do
		name=${names[0]} names=("${names[@]:1}")
		keep $kind.$who.$name $number "$4"
	done
}

middle() { # KIND WHO
	[ ! -s "$work/$1.$2" ] || median <"$work/$1.$2"
}

# row NAME FUNCTION ARGUMENT…: a cell of each column.
row() {
	local who name=$1
	shift
	printf '# %-22s' "$name"
	for who in $columns; do
		printf ' %9s' "$("$@" $who)"
	done
	echo
}

figure_of() { # KIND WHO
	local middle
	middle=$(middle $1 $2)
	echo "${middle:-failed}"
}

# The figure of the better of the two loops.
loop_of() { # KIND
	local order=-g
	[[ $1 != rate.* ]] || order=-gr
	{ middle $1 raw; middle $1 events; } | sort $order | head -n 1
}

beside_loop() { # KIND WHO
	local mine loop
	mine=$(middle $1 $2) loop=$(loop_of $1)
	[ -z "$mine" ] || [ -z "$loop" ] || ratio $mine $loop
}

count_of() { # KIND WHAT WHO
	local middle
	middle=$(middle $1 $3.$2)
	echo "${middle:--}"
}

say() { # TEXT yes|no
	echo "# $1: $2"
	[ -z "${LAB_STRICT-}" ] || check "$1" [ "$2" = yes ]
}

# judge TEXT KIND OTHER LIMIT: has Shunt so much of the other's rate, and no more of its round trip? One without a figure is
# not before it.
judge() {
	say "$1" "$(awk -v kind=$2 -v shunt="$(middle $2 shunt)" -v other="$3" -v limit=$4 'BEGIN {
		print other == "" || (shunt != "" && (kind ~ /^rate/ ? shunt >= other * limit : shunt <= other * limit)) ? "yes" : "no" }')"
}

# Turn by turn; a seventh may be lost.
judge_turns() { # TEXT KIND OTHER
	say "$1" "$(paste "$work/$2.shunt.turns" "$work/$2.$3.turns" | awk -v kind=$2 '
		$2 != "none" && ($1 == "none" || (kind ~ /^rate/ ? $1 < $2 : $1 > $2)) { lost++ }
		END { print lost * 7 <= NR ? "yes" : "no" }')"
}

# Every other turn goes backwards: a machine that gets busier is so to all.
order_of() { # TURN
	local who order=''
	[ $(($1 % 2)) = 1 ] || { echo "$columns" && return; }
	for who in $columns; do order="$who $order"; done
	echo "$order"
}

for ((turn = 0; turn < turns; turn++)); do
	for size in $sizes; do
		for who in $(order_of $turn); do
			measure $who rate $size "$(messages_of $size)"
			measure $who rtt $size "$(trips_of $size)"
		done
	done
done

# counts KIND: what this end has done for each message, or round trip.
counts() {
	local what
	for what in packets $counted; do
		row "$what" count_of $1 $what
	done
}

head_line() { # TEXT
	printf '# %-22s' "$1"
	printf ' %9s' $columns
	echo
}

# In thousands of messages a second, of what was measured in Mbit/s.
messages_a_second() { # SIZE WHO
	local middle
	middle=$(middle rate.$1 $2)
	[ -z "$middle" ] || awk -v mbits="$middle" -v size=$1 'BEGIN { printf "%.2f", mbits * 1e3 / 8 / size }'
}

of_size() { # SIZE
	local bar=1 loop
	head_line "client, $1 bytes"
	row "one way, Mbit/s" figure_of rate.$1
	row "thousands a second" messages_a_second $1
	row "beside the loop" beside_loop rate.$1
	counts rate.$1
	row "to and fro, us" figure_of rtt.$1
	row "beside the loop" beside_loop rtt.$1
	counts rtt.$1
	check "$1 bytes: Shunt has figures" [ "$(middle rate.$1 shunt)" -a "$(middle rtt.$1 shunt)" ]
	[ "$1" -lt 4096 ] || bar=0.97
	loop=$(loop_of rate.$1)
	judge "$1 bytes: Shunt has $bar of the better loop's bandwidth" rate.$1 "$loop" $bar
	judge "$1 bytes: Shunt has 1.10 of the better loop's round trip" rtt.$1 "$(loop_of rtt.$1)" 1.10
	judge_turns "$1 bytes: Shunt is not behind rsocket, one way" rate.$1 rsocket
	judge_turns "$1 bytes: Shunt is not behind rsocket, to and fro" rtt.$1 rsocket
}

for size in $sizes; do
	if [ "$lab_self" = two ]; then
		of_size $size
	else
		head_line "server, $size bytes"
		counts rate.$size
		head_line "to and fro"
		counts rtt.$size
	fi
done
[ "$lab_self" = two ] || ok "there were $turns turns"
[ "$lab_self" = one ] || echo "# counts: for each message, or round trip; packets of the device, both ways"
meet over
plan
