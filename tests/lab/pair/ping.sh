#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 1800
# shunt ping between two machines: a sound path is measured, and each of eight set-ups that are broken is named, one after
# the other. Machine one answers, two asks.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=10000,dead_ms=1000,slow_ms=0,refused_ms=0
need jq setpriv rdma nft
need_shunt

for secret in good other; do
	printf 'sixteen bytes or more: %s\n' "$secret" >"$work/$secret"
	chmod 600 "$work/$secret"
done

# --- the ends ---

answers() {
	exec "$shunt" ping --serve "0.0.0.0:$port"
}

# The answering end without Shunt.
answers_plain() {
	exec "$shunt" ping-end server 0.0.0.0 "$port"
}

answers_older() {
	exec "$builddir/tests/lab/older" 10.78.0.1 "$port"
}

nobody_answers() {
	exec sleep 1000000
}

answers_unlocked() {
	chmod 666 /dev/infiniband/*
	ulimit -l 64
	exec setpriv --reuid 65534 --regid 65534 --clear-groups "$shunt" ping --serve "0.0.0.0:$port"
}

asks() {
	"$shunt" ping --json -c 5 -W 15 "10.78.0.1:$port"
}

asks_elsewhere() {
	"$shunt" ping --json -c 5 -W 5 "10.78.0.77:$port"
}

# Another user than root, who may lock little memory.
asks_unlocked() {
	chmod 666 /dev/infiniband/*
	(ulimit -l 64 && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$shunt" ping --json -c 5 -W 15 \
		"10.78.0.1:$port")
}

# --- what is broken, at one machine or at both; each has a way back ---

unplug() {
	rdma link delete rxe0
}
unplug_undo() {
	rdma link add rxe0 type rxe netdev eth0
	WITHIN=60 within grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
}
lower() {
	ip link set eth0 down
}
lower_undo() {
	ip link set eth0 up
	WITHIN=60 within grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state
}
narrow() {
	nft -f - <<-END
		table inet lab {
			chain in { type filter hook input priority 0; udp dport 4791 udp length > 600 counter drop; }
		}
	END
}
narrow_undo() {
	nft delete table inet lab
}
block() {
	fault_on block
}
block_undo() {
	fault_off block
}
narrow_end() {
	narrow
	ip link set eth0 mtu 1400
}
narrow_end_undo() {
	ip link set eth0 mtu 1500
	narrow_undo
}
# Another address of machine one's wire, which leads to the one that it has.
translate() {
	nft -f - <<-END
		table ip lab {
			chain out { type nat hook output priority -100; ip daddr 10.78.0.77 dnat to 10.78.0.1; }
		}
	END
}
translate_undo() {
	nft delete table ip lab
}
nothing() { :; }
nothing_undo() { :; }

# --- one case ---

# says FILTER: does the answer that was heard?
says() {
	jq -e "$1" "$work/said" >/dev/null || ! cat "$work/said" "$work/err" >&2
}

ends_with() {
	[ "$status" = "$1" ]
}

# way NAME STATUS FILTER [one=FAULT] [two=FAULT] [answers=FUNCTION] [asks=FUNCTION] [1SETTING…] [2SETTING…]: a setting
# is VARIABLE=VALUE of that machine's end.
way() {
	local name=$1 wanted=$2 filter=$3 one=nothing two=nothing end=answers ask=asks word settings=() server
	shift 3
	for word in "$@"; do
		case $word in
		one=*) one=${word#*=} ;;
		two=*) two=${word#*=} ;;
		answers=*) end=${word#*=} ;;
		asks=*) ask=${word#*=} ;;
		1*) [ "$lab_self" = two ] || settings+=("${word#1}") ;;
		2*) [ "$lab_self" = one ] || settings+=("${word#2}") ;;
		esac
	done
	if [ "$lab_self" = one ]; then
		"$one"	# first: a device that a process uses is not let go of
		(
			[ ${#settings[@]} = 0 ] || export "${settings[@]}"
			exec >"$work/said" 2>"$work/err"
			"$end"
		) &
		server=$!
		children+=("$server")
		[ "$end" = nobody_answers ] || within somebody_listens $port
	fi
	meet listens
	if [ "$lab_self" = two ]; then
		"$two"
		(
			[ ${#settings[@]} = 0 ] || export "${settings[@]}"
			"$ask"
		) >"$work/said" 2>"$work/err"
		status=$?
		"${two}_undo"
		check "$name is named" says ".targets[0] | $filter"
		check "$name: exit status $wanted" ends_with "$wanted"
		jq -r '.targets[0] | "# \(.cause): \(.says)"' "$work/said"
	fi
	meet asked
	if [ "$lab_self" = one ]; then
		check "$name: the answering end has lived" kill -0 "$server"
		"${one}_undo"
		kill "$server"
		wait "$server"
	fi
	meet mended
	port=$((port + 1))
}

sound='.verdict == "link" and .rendezvous.way == "rdma_cm" and .link.setup_ns > 0 and .link.write_ns > 0 and
	.link.echo_ns > 0 and .tcp.rtt_ns > 0'

way "a sound path, measured," 0 "$sound"
way "no device here" 1 '.cause == "no-device" and (.says | test("here"))' two=unplug
way "no device there" 1 '.cause == "no-device" and (.says | test("there$|there,"))' one=unplug
way "port down" 1 '.cause == "port-down"' two=lower
way "MTU of the path" 1 '.cause == "mtu"' one=narrow
way "MTU of an end" 1 '.cause == "mtu" and (.says | test("MTU 1500 here, 1400 there"))' one=narrow_end
way "little memory here" 1 '.cause == "memlock" and (.says | test("here"))' asks=asks_unlocked
way "little memory there" 1 '.cause == "memlock" and (.says | test("there"))' answers=answers_unlocked
way "firewall here" 1 '.cause == "firewall"' two=block
way "firewall there" 1 '.cause == "firewall"' one=block
way "nobody at the port" 1 '.verdict == "unreachable" and .cause == "refused"' answers=nobody_answers
way "a program without Shunt" 1 '.cause == "no-shunt"' answers=answers_plain
way "another wire version" 1 '.cause == "other-version" and .rendezvous.version > 0' answers=answers_older
way "another key" 1 '.cause == "other-key"' "1SHUNT_KEY=$work/good" "2SHUNT_KEY=$work/other"
way "a key there alone" 1 '.cause == "other-key"' "1SHUNT_KEY=$work/good"
way "a key here alone" 1 '.cause == "other-key"' "2SHUNT_KEY=$work/good"
way "a key is wanted here" 1 '.cause == "no-key"' 2SHUNT_TRUST=key
way "translated" 1 '.cause == "translated" and (.says | test("10.78.0.77"))' two=translate asks=asks_elsewhere
way "one key, measured," 0 "$sound" "1SHUNT_KEY=$work/good" "2SHUNT_KEY=$work/good"
plan
