# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For the tests in guests: TAP and pairs of processes as in tests/calls. In one guest there are two ends of a
# cable: devices rxe0 and rxe1, addresses 10.77.0.1 and 10.77.0.2. Sourced.
# shellcheck disable=SC2034,SC2154,SC2086
# shellcheck source-path=SCRIPTDIR source=../../calls/lib.sh
. "${top_srcdir:?}/tests/calls/lib.sh"
WITHIN=600	# seconds: only what hangs takes so long

# check NAME COMMAND…: one that fails shows what it has said on stderr.
check() {
	local name=$1
	shift
	if "$@" 2>"$work/check.err"; then
		ok "$name"
	else
		not_ok "$name"
		tail -n 20 "$work/check.err" | sed 's/^/#   /'
	fi
	cat "$work/check.err" >&2
}

# gid_index DEVICE: of its address by RoCEv2 over IPv4.
gid_index() {
	local gid
	for gid in /sys/class/infiniband/"$1"/ports/1/gids/*; do
		grep -qsE '0000:ffff:0a4[de]' "$gid" && echo "${gid##*/}" && return
	done
	return 1
}

# both WRAP SERVER-COMMAND… -- READY-COMMAND… -- CLIENT-COMMAND…: a server, and when READY succeeds a
# client, each with WRAP before it. What they say is in $work/server and $work/client. Do both end well?
both() {
	local wrap=$1 serve=() ready=() pid rc=0
	shift
	while [ "$1" != -- ]; do serve+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do ready+=("$1") && shift; done
	shift
	$wrap timeout 300 "${serve[@]}" >"$work/server" 2>&1 &
	pid=$!
	within "${ready[@]}" || rc=1
	$wrap timeout 300 "$@" >"$work/client" 2>&1 || rc=1
	wait "$pid" || rc=1
	[ $rc = 0 ] || tail -n 20 "$work/server" "$work/client" >&2
	return $rc
}

somebody_listens() {
	grep -q ":$(printf %04X "$1") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6
}

cm_listens() {
	rdma resource show cm_id | grep -q "state LISTEN"
}

# pingpong WRAP SERVER-DEVICE CLIENT-DEVICE [OPTION…]: each message is checked. They meet over TCP.
pingpong() {
	local wrap=$1 server=$2 client=$3
	shift 3
	both "$wrap" ibv_rc_pingpong -c -d "$server" -g "$(gid_index "$server")" "$@" -- somebody_listens 18515 -- \
		ibv_rc_pingpong -c -d "$client" -g "$(gid_index "$client")" "$@" 127.0.0.1
}

# rping_pair WRAP: over the cable, by the connection manager; it checks each message too.
rping_pair() {
	both "$1" rping -s -a 10.77.0.1 -V -C 100 -- cm_listens -- rping -c -a 10.77.0.1 -I 10.77.0.2 -V -C 100
}

# hw_counter NAME [DEVICE]: a counter of rxe.
hw_counter() {
	cat "/sys/class/infiniband/${2:-rxe0}/ports/1/hw_counters/$1"
}

# link_share FILE…: of all bytes in these statistics, sent and received, how many hundredths went by the link,
# cut to a whole number; of those after the first 256 KiB of each stream, if there are any.
link_share() {
	cat "$@" | jq -s 'map(.totals | .tx, .rx) | (map(.late) | add) as $late |
		if $late > 0 then 100 * (1 - (map(.late_tcp) | add) / $late)
		else 100 * (map(.link) | add) / ((map(.link + .tcp) | add) + 0.001) end | floor'
}

# check_share NAME PERCENT FILE…: what was measured went by the link.
check_share() {
	local name=$1 wanted=$2 share
	shift 2
	share=$(link_share "$@")
	check "$name: at least $wanted % of the bytes by the link (${share:-none})" [ "${share:-0}" -ge "$wanted" ]
}

# link_bytes FILE…: that were sent by the link.
link_bytes() {
	cat "$@" | jq -s 'map(.totals.tx.link) | add'
}

# The devices that processes say they use.
devices_used() {
	cat "$@" | jq -rs 'map(.device) | unique | join(", ")'
}

# check_device NAME FILE…: processes that had streams on a link say that it was over RDMA. Nothing without RDMA.
check_device() {
	local name=$1
	shift
	is_verbs || return 0
	check "$name" jq -es 'map(select(.counters.upgrades > 0) | .device | startswith("verbs")) | length > 0 and all' "$@"
}

# knows_device DEVICE: does this build take it as SHUNT_DEVICE?
knows_device() {
	SHUNT_DEVICE=$1 $shunt_run true 2>/dev/null
}

# need_device DEVICE: all of a test is left out where the build does not know it. From then on it is used.
need_device() {
	knows_device "$1" || {
		echo "1..0 # SKIP this build does not know SHUNT_DEVICE=$1"
		exit 77
	}
	export SHUNT_DEVICE=$1
	# A guest stands still for a while when its host is busy: that takes no connection off the link.
	export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000
}

# The device that the tests of Shunt over RDMA are about. LAB_DEVICE=soft tries the tests themselves without one.
lab_device=${LAB_DEVICE:-verbs:rxe0}

# What only an RDMA device can show is not asked of another one.
is_verbs() {
	[[ ${SHUNT_DEVICE:-} = verbs* ]]
}

# --- what an application has moved, by Shunt's statistics, by the network interface and by rxe ---

# All bytes on a track of TCP go through lo; a packet of rxe carries up to 1024 bytes.
gauge_begin() {
	rm -f "$work"/stat.*
}

# From here on it counts, in the midst of a run of CLIENT: until there is a link all goes by TCP. The device is looked at
# first, as bytes move while shunt stat starts. A run that was over too soon has no gauge_link.
gauge_mark() { # CLIENT
	local now
	while kill -0 "$1" 2>/dev/null && ! link_carries; do
		sleep 0.01
	done
	gauge_lo=$(cat /sys/class/net/lo/statistics/tx_bytes)
	gauge_sent=$(hw_counter sent_pkts)
	gauge_wrong=$(wrong_of_rxe)
	now=$("$builddir/tools/shunt" stat --json | jq -r "$gauge_sums")
	gauge_tcp='' gauge_link=''
	[[ ! $now =~ ^[0-9]+\ [0-9]+$ ]] || gauge_tcp=${now% *} gauge_link=${now#* }
}

# More than its first megabytes.
link_carries() {
	local now
	now=$("$builddir/tools/shunt" stat --json | jq -r "$gauge_sums")
	[[ ${now#* } =~ ^[0-9]+$ ]] && [ "${now#* }" -gt 4000000 ]
}

# What was sent, by TCP and by the link. shunt stat gives a list of processes, files are one each.
gauge_sums='[.. | .totals? | select(. != null) | .tx] | "\(map(.tcp) | add) \(map(.link) | add)"'

# Receiver not ready, retries for that, and packets that are missing: none of them may be on a wire without faults.
wrong_of_rxe() {
	echo "$(hw_counter rcvd_rnr_err) $(hw_counter send_rnr_err) $(hw_counter retry_rnr_exceeded_err)" \
		"$(hw_counter out_of_seq_request)"
}

# Have the processes that have ended moved enough by the link since gauge_mark?
gauge_enough() {
	local now
	[ "$gauge_link" ] || return
	now=$(cat "$work"/stat.* | jq -rs "$gauge_sums")
	[ $((${now#* } - gauge_link)) -gt 10000000 ]
}

# gauge_end NAME SHARE: the results of what has happened since gauge_mark, by the processes that have ended.
gauge_end() {
	local name=$1 wanted=$2 now linked tcp share lo packets
	now=$(cat "$work"/stat.* | jq -rs "$gauge_sums")
	tcp=$((${now% *} - gauge_tcp)) linked=$((${now#* } - gauge_link))
	share=$((100 * linked / (linked + tcp + 1)))
	lo=$(($(cat /sys/class/net/lo/statistics/tx_bytes) - gauge_lo))
	packets=$(($(hw_counter sent_pkts) - gauge_sent))
	echo "# $name: $linked bytes by the link, $tcp by TCP, $lo on lo, $packets packets of rxe, device $(devices_used "$work"/stat.*)"
	check "$name: at least $wanted % of the bytes by the link" [ "${share:-0}" -ge "$wanted" ]
	check "$name: there were enough to tell" [ "$linked" -gt 10000000 ]
	check_device "$name: the link is over RDMA" "$work"/stat.*
	is_verbs || return
	check "$name: at least $wanted % of them not on lo" [ $((100 * lo)) -le $(((100 - wanted) * linked + 10000000)) ]
	check "$name: the packets of rxe can have carried them" [ $((packets * 1024)) -ge "$linked" ]
	check "$name: rxe has missed nothing" [ "$(wrong_of_rxe)" = "$gauge_wrong" ]
}

# cmocka_report COUNT: what a program with cmocka says becomes ours, line by line; it must run so many tests at least.
cmocka_report() {
	local line name='' ran=0
	while IFS= read -r line; do
		echo "$line" >&2
		case $line in
		"# "*) echo "$line" ;;
		"[ RUN      ] "*) name=${line#*] } ran=$((ran + 1)) ;;
		"[       OK ] $name") ok "$name" && name='' ;;
		"[  FAILED  ] $name") not_ok "$name" && name='' ;;
		"[==========] "*"run.") break ;;
		esac
	done
	[ -z "$name" ] || not_ok "$name: the program ended in its midst"
	[ "$ran" -ge "$1" ] || not_ok "only $ran tests"
}

# --- Shunt beside others ---

rspreload=$(ldconfig -p | sed -n 's/.*librdmacm.so.1.* => \(.*\)\/.*/\1/p' | head -n 1)/rsocket/librspreload.so
smc=$builddir/tests/bench/.libs/smc.so

# Sets the device by which wrap_of has Shunt measured.
peers_device() {
	device=$lab_device
	knows_device "$device" && return
	echo "# this build does not know SHUNT_DEVICE=$device: Shunt is measured with auto"
	device=auto
}

wrap_of() {
	case $1 in
	tcp) ;;
	rsocket) echo "env LD_PRELOAD=$rspreload" ;;
	smc) echo "env LD_PRELOAD=$smc" ;;
	shunt) echo "env SHUNT_DEVICE=$device $shunt_run" ;;
	traced) echo "env SHUNT_DEVICE=$device SHUNT_TRACE=0 $shunt_run" ;;
	esac
}

# Somebody listens there: as the kernel knows it, or by rdma_cm, which rsocket uses alone.
listens() {
	somebody_listens "$1" || rdma resource show cm_id | grep -q "state LISTEN.*:$1"
}

# served WRAP PORT SERVER… -- CLIENT…: what the client says, with both under WRAP. $limit seconds are for it.
served() {
	local wrap=$1 port=$2 serves=() pid rc=0
	shift 2
	while [ "$1" != -- ]; do serves+=("$1") && shift; done
	shift
	timeout -k 1 $((limit + 5)) $wrap "${serves[@]}" >"$work/server" 2>&1 &
	pid=$!
	WITHIN=$limit within listens "$port" && timeout -k 1 $limit $wrap "$@" 2>"$work/client" || rc=1
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $rc = 0 ] || tail -n 3 "$work/server" "$work/client" >&2
	return $rc
}
