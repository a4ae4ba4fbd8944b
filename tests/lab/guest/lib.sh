# shellcheck shell=bash
# For the tests in a guest: TAP and pairs of processes as in tests/calls, and the two ends of the cable:
# devices rxe0 and rxe1, addresses 10.77.0.1 and 10.77.0.2. Sourced.
# shellcheck disable=SC2034,SC2154,SC2086
# shellcheck source-path=SCRIPTDIR source=../../calls/lib.sh
. "${top_srcdir:?}/tests/calls/lib.sh"

# gid_index DEVICE: of its address by RoCEv2 over IPv4.
gid_index() {
	local gid
	for gid in /sys/class/infiniband/"$1"/ports/1/gids/*; do
		grep -qs '0000:ffff:0a4d' "$gid" && echo "${gid##*/}" && return
	done
	return 1
}

# patiently COMMAND…: until it succeeds, for ten seconds at most.
patiently() {
	local i
	for ((i = 0; i < 100; i++)); do
		"$@" && return
		sleep 0.1
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
	$wrap timeout 30 "${serve[@]}" >"$work/server" 2>&1 &
	pid=$!
	patiently "${ready[@]}" || rc=1
	$wrap timeout 30 "$@" >"$work/client" 2>&1 || rc=1
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
