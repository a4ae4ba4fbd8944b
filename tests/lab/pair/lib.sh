# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For the tests of two machines, which run the same script: $lab_self is one or two. They have addresses $mine and
# $theirs and a device rxe0 each, and agree about order by lines over a TCP connection of the script's. Sourced.
# shellcheck disable=SC2034,SC2154,SC2317
# shellcheck source-path=SCRIPTDIR source=../guest/lib.sh
. "${BASH_SOURCE%/*}/../guest/lib.sh"

if [ "$lab_self" = one ]; then
	mine=10.78.0.1 theirs=10.78.0.2 mine6=fd78::1 theirs6=fd78::2
else
	mine=10.78.0.2 theirs=10.78.0.1 mine6=fd78::2 theirs6=fd78::1
fi
port=7800
longest=1500	# seconds that a command of both may take: only what hangs takes so long
patience=1800	# that one machine waits for the other, which may have had such a command

# --- agreeing about order ---

# A port of its own for each script: nothing that is left of the one before is in the way.
peer_find() {
	local i meeting=$((7000 + $(cksum <<<"$0" | cut -d ' ' -f 1) % 500))
	if [ "$lab_self" = one ]; then
		coproc busybox nc -l -p "$meeting"
		children+=("$COPROC_PID")
		exec {from_peer}<&"${COPROC[0]}" {to_peer}>&"${COPROC[1]}"
	else
		for ((i = 0; i < patience * 2; i++)); do
			{ exec {from_peer}<>"/dev/tcp/$theirs/$meeting"; } 2>/dev/null && break
			sleep 0.5
		done
		to_peer=$from_peer
	fi
	meet start || { echo "Bail out! the other machine is not there" && exit 99; }
}

tell() {
	echo "$*" >&"$to_peer"
}

# hear: the other's next line, in $heard.
hear() {
	IFS= read -r -t "$patience" heard <&"$from_peer"
}

# await LINE: the other's next line is this one.
await() {
	heard=
	hear && [ "$heard" = "$*" ] && return
	echo "waited for '$*', heard '$heard'" >&2
	return 1
}

# meet WORD: both are here. Without that nothing that follows makes sense.
meet() {
	tell "$1" && await "$1" && return
	echo "Bail out! the other machine is not at '$1'"
	exit 99
}

# between SERVER-COMMAND… -- READY-COMMAND… -- CLIENT-COMMAND…: as `both`, the server on machine one and the
# client on two. What mine says is in $work/said. Did both end well?
between() {
	local serve=() ready=() pid rc=0
	while [ "$1" != -- ]; do serve+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do ready+=("$1") && shift; done
	shift
	if [ "$lab_self" = one ]; then
		timeout "$longest" "${serve[@]}" >"$work/said" 2>&1 &
		pid=$!
		within "${ready[@]}" || rc=1
		meet ready
		wait "$pid" || rc=1
	else
		meet ready
		timeout "$longest" "$@" >"$work/said" 2>&1 || rc=1
	fi
	tell "ended $rc"
	hear || rc=1
	[ $rc = 0 ] || tail -n 20 "$work/said" >&2
	[ $rc = 0 ] && [ "$heard" = "ended 0" ]
}

# between_them COMMAND…: does it succeed on one of the two machines?
between_them() {
	local rc=0
	"$@" || rc=1
	tell "said $rc"
	hear || return
	[ $rc = 0 ] || [ "$heard" = "said 0" ]
}

# either COMMAND…: until it succeeds on one of the two machines.
either() {
	local until=$((SECONDS + patience))
	until between_them "$@"; do
		[ $SECONDS -lt $until ] || return 1
	done
}

wire_rping() { # ADDRESS-OF-ONE COUNT
	between rping -s -a "$1" -V -C "$2" -- cm_listens -- rping -c -a "$1" -V -C "$2"
}

wire_pingpong() { # [OPTION…]
	between ibv_rc_pingpong -c -d rxe0 -g "$(gid_index rxe0)" "$@" -- somebody_listens 18515 -- \
		ibv_rc_pingpong -c -d rxe0 -g "$(gid_index rxe0)" "$@" 10.78.0.1
}

wire_iperf() { # [OPTION…]
	between iperf3 -s -1 -J -p $port -- somebody_listens $port -- iperf3 -c 10.78.0.1 -J -p $port "$@"
}

# The plain loop of WRITE_WITH_IMM (tests/bench/raw_imm): at the client, messages a second or nanoseconds.
wire_raw() { # rtt|rate BYTES COUNT WINDOW [OPTION…]
	local raw=$builddir/tests/bench/raw_imm kind=$1 size=$2 count=$3 window=$4
	shift 4
	between "$raw" server -a 10.78.0.1 -P $port "$@" -- cm_listens -- \
		"$raw" client $port "$kind" -a 10.78.0.1 -s "$size" -n "$count" -w "$window" "$@"
}

# Mbit/s of machine two's last wire_raw at that size.
raw_mbits() { # BYTES
	awk -v size="$1" '/^[0-9]+$/ { printf "%.1f", $1 * size * 8 / 1e6 }' "$work/said"
}

# What was received by machine two's last wire_iperf, in bytes.
iperf_received() {
	jq '.end.sum_received.bytes | floor' "$work/said"
}

# --- loads that go on until enough is counted ---

# Bytes of both directions of the process $pid by TCP, by the link, and its device, in $tcp, $link and $device. A process that
# is busy may not answer.
look() {
	read -r tcp link device < <("$shunt" stat --json "$pid" 2>/dev/null |
		jq -r '.[0] | "\(.totals.tx.tcp + .totals.rx.tcp) \(.totals.tx.link + .totals.rx.link) \(.device)"')
	[[ "$tcp $link" =~ ^[0-9]+\ [0-9]+$ ]]
}

has_carried() { # BYTES
	look && [ "$link" -ge "$1" ]
}

# load NAME SERVER… -- CLIENT…: the server on machine one, on two a client that runs until enough is counted.
load() {
	local name=$1 serve=()
	shift
	while [ "$1" != -- ]; do serve+=("$1") && shift; done
	shift
	[ "$lab_self" = two ] || set -- "${serve[@]}"
	[ "$lab_self" = one ] || meet "$name listens"
	$shunt_run "$@" >"$work/said" 2>&1 &
	pid=$!
	children+=("$pid")
	if [ "$lab_self" = one ]; then
		check "$name: the server listens" within somebody_listens $port
		meet "$name listens"
	else
		count "$name"
		kill "$pid"
	fi
	meet "$name is counted"
	{ kill "$pid"; wait "$pid"; } 2>/dev/null
	tr '\r' '\n' <"$work/said" | grep -av -e rps= -e '^ *$' >&2
}

# --- faults of the wire ---
#
# fault_on NAME and fault_off NAME do this machine's part; both machines call them. What is blocked is blocked where
# it arrives: rxe never completes a MAD that a rule drops on its way out, and whoever has sent it hangs in the kernel
# (cm_destroy_id, Linux 6.1).

faults="loss1 loss5 delay reorder down block"

fault_on() {
	case $1 in
	loss1) tc qdisc add dev eth0 root netem loss 1% ;;
	loss5) tc qdisc add dev eth0 root netem loss 5% ;;
	delay) tc qdisc add dev eth0 root netem delay 50ms ;;
	reorder) tc qdisc add dev eth0 root netem delay 5ms reorder 75% 50% ;;
	down) [ "$lab_self" = two ] || ip link set eth0 down ;; # two must have a way to start to connect
	block) nft -f - <<-END ;;
		table inet lab {
			chain in { type filter hook input priority 0; udp dport 4791 counter drop; }
		}
	END
	*) return 1 ;;
	esac
}

fault_off() {
	case $1 in
	loss? | delay | reorder) tc qdisc del dev eth0 root ;;
	down) [ "$lab_self" = two ] || ip link set eth0 up ;;
	block) nft delete table inet lab ;;
	*) return 1 ;;
	esac
}

fault_says() {
	case $1 in
	loss1) echo "1 % of packets lost" ;;
	loss5) echo "5 % of packets lost" ;;
	delay) echo "50 ms of delay each way" ;;
	reorder) echo "packets out of order" ;;
	down) echo "a link that is down for 3 s" ;;
	block) echo "UDP port 4791 blocked" ;;
	esac
}

peer_find
