# SPDX-License-Identifier: MIT
# limit: 9000
# Side by side in one run: plain TCP, rsocket (librspreload), SMC over rxe, Shunt. A table and no judgement, but with
# LAB_STRICT: Shunt must not be behind rsocket. What a peer cannot do is that peer's failure, not ours. Connections are
# measured as they go on, after their first seconds: how long they take to get there is what `links` shows.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

seconds=2	# of each iperf3
longest=1500	# seconds for any of them: what hangs has failed
impatient=120	# of peers, which may: what they cannot do is shown, not judged
warm=2	# seconds before that, and before the round trips
rounds=1	# the best one counts: two where it is judged
[ -z "${LAB_STRICT-}" ] || rounds=2
address=10.77.0.1
pp=$builddir/tests/bench/pp
need "$pp" redis-server redis-benchmark iperf3 jq
need_shunt
peers_device

# One number each, or nothing.
measure() { # WHAT WRAP
	local port=$((20000 + RANDOM % 10000))
	case $1 in
	rtt) served "$2" "$port" "$pp" server -a $address -P "$port" -- "$pp" client "$port" rtt -n 2000 -w "${warm}000" \
		-a $address ;;
	iperf3) served "$2" "$port" iperf3 -s -1 -p "$port" -- iperf3 -c $address -p "$port" -t $seconds \
		-O $warm -J |
		jq '.end.sum_received.bits_per_second / 1e6 | floor | select(. > 0)' ;;
	redis) served "$2" "$port" redis-server --save "" --appendonly no --dir "$work" --protected-mode no --port "$port" \
		--bind $address -- redis-benchmark -h $address -p "$port" -t get -n 6000 -c 1 --csv |
		sed -n 's/^"GET","\([0-9]*\).*/\1/p' ;;
	esac
}

better() { # WHAT A B: the better of two results, or the one that there is
	if [ -z "$2" ] || [ -z "$3" ]; then
		echo "$2$3"
	elif [ "$1" = rtt ]; then
		echo $(($2 < $3 ? $2 : $3))
	else
		echo $(($2 > $3 ? $2 : $3))
	fi
}

# AF_SMC needs the module, and a way to the address that is not lo.
smc_begin() {
	[ -f "$smc" ] || { echo "tests/bench/smc.so is not built" && return 1; }
	[ -d /sys/module/smc ] || busybox insmod "$lab_modules/kernel/net/smc/smc.ko" 2>&1 ||
		{ echo "the kernel has no smc" && return 1; }
	ip route add $address dev v1 src 10.77.0.2 table 103
	ip rule add pref 30 from 0.0.0.0/32 to $address iif lo lookup 103
}

smc_end() {
	ip rule del pref 30
	ip route flush table 103
	rmmod smc 2>/dev/null || busybox rmmod smc
}

# Of both devices: who sends none has fallen back to TCP.
packets() {
	echo $(($(hw_counter sent_pkts rxe0) + $(hw_counter sent_pkts rxe1)))
}

declare -A value=() sent=()
columns="tcp rsocket smc shunt"
for who in $columns; do
	if [ $who = smc ]; then
		why=$(smc_begin) || { skip smc "$why" && continue; }
	fi
	sent[$who]=$(packets)
	limit=$longest
	[[ $who != rsocket && $who != smc ]] || limit=$impatient
	for what in rtt iperf3 redis; do
		for ((round = 0; round < rounds; round++)); do
			v=$(measure $what "$(wrap_of $who)")
			echo "$who $what: ${v:-failed}, after $SECONDS s" >&2
			[ "$v" ] || break
			value[$what.$who]=$(better $what "${value[$what.$who]-}" "$v")
		done
		[[ $who = rsocket || $who = smc ]] || check "$who: $what" [ "${value[$what.$who]-}" ]
	done
	sent[$who]=$(($(packets) - sent[$who]))
	[ $who != smc ] || smc_end
done

printf '# %-8s %10s %10s %10s %10s\n' "" $columns
for what in rtt iperf3 redis; do
	printf '# %-8s' $what
	for who in $columns; do
		printf ' %10s' "${value[$what.$who]:-failed}"
	done
	echo
done
printf '# %-8s' packets
for who in $columns; do
	printf ' %10s' "${sent[$who]:--}"
done
echo
[ "${sent[smc]-}" != 0 ] || echo "# smc has sent nothing by rxe: it has fallen back to TCP"
echo "# rtt: nanoseconds for 8 bytes and back; iperf3: Mbit/s; redis: GETs a second of 1 client; packets: of rxe"

# behind WHAT: is Shunt worse than rsocket?
behind() {
	local rsocket=${value[$1.rsocket]-} shunt=${value[$1.shunt]-}
	[ "$rsocket" ] || return 1
	[ "$(better "$1" "$shunt" "$rsocket")" != "$shunt" ]
}
for what in rtt iperf3 redis; do
	answer=yes
	! behind $what || answer=no
	echo "# Shunt is not behind rsocket, $what: $answer"
	[ -z "${LAB_STRICT-}" ] || check "Shunt is not behind rsocket, $what" [ $answer = yes ]
done
plan
