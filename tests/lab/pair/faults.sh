# SPDX-License-Identifier: MIT
# limit: 7200
# A wire that loses, delays, reorders, is cut or lets no RDMA through, during a transfer whose every byte is checked, shunted
# at both ends: every byte comes, in its place. A fault that comes during it hits a stream that is on the link: it begins
# when the link carries, and at least $share per cent of the bytes of each machine go by the link until then. One that is on
# from the beginning shows what a link is made of under it. The transfer goes on until enough has followed.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

share=90	# per cent of the bytes that have to go by the link before a fault
enough=3000000	# bytes, of both directions, before a fault and after it
shunt=$builddir/tools/shunt
export WITHIN=1200 TEST_LIMIT=3000 SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000 SHUNT_LOG=info SHUNT_DEVICE=verbs SHUNT_STATS=$work/stat.%p
# Without a fault nothing may take the stream off the link: an emulated machine stands still for a while when its host is
# busy. The rule about slow completions is on from the fault on.
slow=100	# ms: the default of slow_ms
export SHUNT_TUNE=${SHUNT_TUNE-},slow_ms=0,dead_ms=2000

need "$transfer" jq
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# --- this machine's end of a transfer, in the background; its transcript is in $work/said ---

ends=(server -a "$mine" -p "$port")
[ "$lab_self" = one ] || ends=(client "$port" -a "$theirs")

begin() { # WRAP
	rm -f "$work"/stat.* "$work/until"
	[ "$lab_self" = one ] || meet listens
	timeout $TEST_LIMIT $1 "$transfer" "${ends[@]}" -n 100G --until "$work/until" >"$work/said" 2>"$work/err" &
	pid=$!
	children+=("$pid")
	[ "$lab_self" = two ] || { within somebody_listens $port; meet listens; }
}

# What a direction has carried: "BYTES SUM".
carried() { # sent|received
	sed -n "s/.*$1 \([0-9]*\) sum \([0-9a-f]*\),.*/\1 \2/p" "$work/said"
}

# Both machines have seen enough. Each has what the other has sent.
end() {
	local rc=0
	: >"$work/until"
	wait "$pid" || rc=1
	cat "$work/err" >&2
	tell "sent $(carried sent)"
	hear || rc=1
	if [ -z "$(carried received)" ] || [ "$heard" != "sent $(carried received)" ]; then
		echo "the other has $heard, this one received $(carried received)" >&2
		cat "$work/said" >&2
		rc=1
	fi
	return $rc
}

# --- what has gone which way ---

sums='[.. | .totals? | select(. != null) | .tx, .rx] | "\(map(.tcp) | add // 0) \(map(.link) | add // 0)"'

# Of the shunted process here: "BYTES-BY-TCP BYTES-BY-LINK".
moved() {
	"$shunt" stat --json 2>/dev/null | jq -r "$sums"
}

# Both directions of the stream are on the link.
is_on_link() {
	"$shunt" stat --json 2>/dev/null |
		jq -e '[.[].streams[]? | select(.tx.track == "link" and .rx.track == "link")] | length > 0' >/dev/null
}

# Of this end's direction some has been on the link.
has_upgraded() {
	"$shunt" stat --json 2>/dev/null | jq -e '[.[].counters.upgrades] | add > 0' >/dev/null
}

shunted_pid() {
	"$shunt" stat --json 2>/dev/null | jq '.[0].pid'
}

mark() { # a process that is busy may give no statistics at once
	read -r tcp link < <(moved)
	[ "${link:-}" ]
}

# has_moved all|link: enough since `mark`.
has_moved() {
	local now_tcp now_link
	kill -0 "$pid" 2>/dev/null || return
	read -r now_tcp now_link < <(moved)
	[ "${now_link:-}" ] || return
	[ $((now_link - link + ($([ $1 = all ] && echo $((now_tcp - tcp)) || echo 0)))) -ge $enough ]
}

# percent TCP LINK
percent() {
	echo $((100 * $2 / ($1 + $2 + 1)))
}

# How often directions of this end left the link, and why.
causes() {
	cat "$work"/stat.* | jq -rs '[.[].left // {} | to_entries[] | select(.value > 0) | "\(.value) x \(.key)"] | unique | join(", ")'
}

# What has followed since `mark`.
followed() { # NAME
	local all_tcp all_link left
	read -r all_tcp all_link < <(cat "$work"/stat.* | jq -rs "$sums")
	left=$(causes)
	echo "# $lab_self: $1: after it $((all_link - link)) bytes by the link, $((all_tcp - tcp)) by TCP" \
		"($(percent $((all_tcp - tcp)) $((all_link - link))) % by the link); left the link: ${left:-never};" \
		"$(sed -n 's/^transfer [a-z]*: //p' "$work/err")"
}

# --- the faults ---

# The transfer is on the link, and stays there until both machines have seen that.
reach_link() {
	local from_tcp from_link rc=0
	within is_on_link || rc=1
	within mark || rc=1
	from_tcp=$tcp from_link=$link
	within has_moved link || rc=1
	meet "on the link"
	within mark || rc=1
	within watch_slow || rc=1
	before=$(percent $((tcp - from_tcp)) $((link - from_link)))
	return $rc
}

watch_slow() {
	"$shunt" adm "$(shunted_pid)" set slow_ms $slow >/dev/null
}

strike() { # FAULT
	fault_on $1 || return
	[ $1 = down ] || return 0
	sleep 3 # no line can come while the link is down
	fault_off down
}

# during FAULT: it comes to a stream that is on the link.
during() {
	local rc=0
	strike $1 || rc=1
	within has_moved all || rc=1
	meet "enough has followed"
	end || rc=1
	[ $1 = down ] || fault_off $1 || rc=1
	return $rc
}

# from_start FAULT: it is on before there is a connection.
from_start() {
	local rc=0
	meet "before $1"
	[ $1 = down ] || fault_on $1 || rc=1
	begin "$shunt_run"
	[ $1 != down ] || strike down || rc=1
	tcp=0 link=0
	[ $1 = block ] || within has_upgraded || rc=1
	within has_moved all || rc=1
	meet "enough has followed"
	end || rc=1
	[ $1 = down ] || fault_off $1 || rc=1
	return $rc
}

has_arrived() { # enough, whatever it is
	[ $(($(cat /sys/class/net/eth0/statistics/rx_bytes) - arrived)) -ge $enough ]
}

without_shunt() {
	arrived=$(cat /sys/class/net/eth0/statistics/rx_bytes)
	begin ""
	within has_arrived || return
	meet "enough has moved"
	end
}

shunted() {
	within has_moved all || return
	meet "enough has followed"
	end
}

check "a transfer without Shunt and without fault" without_shunt
begin "$shunt_run"
check "shunted, without fault: the link is reached" reach_link
check "shunted, without fault: at least $share % by the link ($before)" [ "$before" -ge $share ]
check "shunted, without fault: every byte comes" shunted
followed "without fault"
for fault in $faults; do
	name=$(fault_says $fault)
	check "$name, from the start: every byte comes" from_start $fault
	followed "$name, from the start"
	begin "$shunt_run"
	check "$name, during: the link is reached" reach_link
	check "$name, during: at least $share % by the link before it ($before)" [ "$before" -ge $share ]
	check "$name, during: every byte comes" during $fault
	followed "$name, during"
done
plan
