# limit: 480
# A wire that loses, delays, reorders, is cut or lets no RDMA through, before and during a transfer whose every byte
# is checked, shunted at both ends: every byte comes, in its place.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

device=verbs	# of both ends; where the build does not know it: auto
share=0		# per cent of the bytes that have to go by the link under faults that let RDMA through
# In each direction; with less the end may be there before a fault that comes during it.
declare -A bytes=([before]=2M [during]=20M)
export TEST_WARM=300 TEST_LIMIT=80 SHUNT_CLAIM_MS=10000 SHUNT_LOG=info

need "$transfer"
need_shunt
if ! knows_device $device; then
	echo "# this build does not know SHUNT_DEVICE=$device: auto instead"
	device=auto
fi
export SHUNT_DEVICE=$device SHUNT_STATS=$work/stat.%p

# This machine's end of a transfer, in the background; its transcript is in $work/said.
pause=0
ends=(server -a "$mine" -p "$port")
[ "$lab_self" = one ] || ends=(client "$port" -a "$theirs")
begin() { # WRAP before|during
	local wrap=$1
	rm -f "$work"/stat.*
	[ "$lab_self" = one ] || { meet listens; sleep "$pause"; }
	timeout $TEST_LIMIT $wrap "$transfer" "${ends[@]}" -n "${bytes[$2]}" >"$work/said" 2>"$work/err" &
	pid=$!
	children+=("$pid")
	[ "$lab_self" = two ] || { within somebody_listens $port; meet listens; }
}

end() {
	local rc=0
	wait "$pid" || rc=1
	cat "$work/err" >&2
	meet "the transfer is over"
	return $rc
}

# The transcript without the port.
said() {
	grep -v '^port' "$work/said"
}

# Some bytes have come since `begin`.
moved() {
	[ $(($(cat /sys/class/net/eth0/statistics/rx_bytes) - start)) -gt 9000000 ]
}

# transfer_under FAULT before|during: as the one without fault?
transfer_under() {
	local fault=$1 when=$2 rc=0
	start=$(cat /sys/class/net/eth0/statistics/rx_bytes)
	if [ "$when" = before ] && [ $fault != down ]; then
		meet "before $fault"
		fault_on $fault || rc=1
		begin "$shunt_run" "$when"
	elif [ "$when" = before ]; then
		pause=1 begin "$shunt_run" "$when" # no line can come when the link is down: time has to do
		fault_on $fault || rc=1
	else
		begin "$shunt_run" "$when"
		within moved || rc=1
		fault_on $fault || rc=1
		kill -0 "$pid" 2>/dev/null || { echo "the transfer was over before the fault" >&2 && rc=1; }
	fi
	if [ $fault = down ]; then
		sleep 3
		fault_off $fault || rc=1
	fi
	end || rc=1
	[ $fault = down ] || fault_off $fault || rc=1
	diff "$work/plain.$when" <(said) >&2 || rc=1
	return $rc
}

for when in before during; do
	begin "" $when
	check "a transfer of ${bytes[$when]} without Shunt and without fault" end
	said >"$work/plain.$when"
done
begin "$shunt_run" during
check "shunted, without fault" end
check "it said the same" diff "$work/plain.during" <(said)
echo "# $lab_self: without fault: $(sed -n 's/^transfer [a-z]*: //p' "$work/err"), $(link_share "$work"/stat.*) % on the link"
for fault in $faults; do
	for when in before during; do
		name="$(fault_says $fault), $when"
		check "$name: every byte comes" transfer_under $fault $when
		on_link=$(link_share "$work"/stat.*)
		echo "# $lab_self: $name: $(sed -n 's/^transfer [a-z]*: //p' "$work/err"), $on_link % on the link," \
			"device $(devices_used "$work"/stat.*)"
		[ $fault = block ] || check "$name: at least $share % on the link" [ "${on_link:-0}" -ge $share ]
	done
done
plan
