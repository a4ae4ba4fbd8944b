#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 3600
# SHUNT_KEY on two machines: with one secret they are linked; with two, or with one between them, both say why they are not;
# SHUNT_TRUST=key without a secret, and one that others can read, link nothing. Every answer is right each time.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000,refused_ms=0 SHUNT_LOG=warn
key='the hosts have no common key (SHUNT_KEY)'
need redis-server python3 jq
need_shunt

secret() { # NAME TEXT MODE
	printf '%s\n' "$2" >"$work/$1"
	chmod "$3" "$work/$1"
}
secret good "the same sixteen bytes and more" 600
secret other "not the same sixteen bytes at all" 600
secret open "the same sixteen bytes and more" 644

stat_says() { # PID FILTER
	local said
	said=$("$shunt" stat --json "$1" 2>/dev/null)
	jq -e "$2" <<<"$said" >/dev/null || ! echo "$said" >&2
}

by_link() { # PID
	stat_says "$1" '.[0].totals.tx.link > 100000'
}

stays() { # PID REASON
	stat_says "$1" "[.. | .reasons? // empty | to_entries[] | select(.key == \"$2\" and .value > 0)] | length > 0"
}

counts() { # PID NAME
	stat_says "$1" "[.. | .$2? // empty | numbers] | add > 0"
}

# serve [SETTING…]: machine one's redis; and two's client is to know.
serve() {
	env "$@" $shunt_run redis-server --port $port --bind 0.0.0.0 --protected-mode no --save "" --dir "$work" >/dev/null \
		2>"$work/err" &
	server=$!
	children+=("$server")
	within somebody_listens $port || echo "nobody listens" >&2
}

# ask [SETTING…]
ask() {
	env "$@" $shunt_run python3 "${BASH_SOURCE%/*}/keys.py" 10.78.0.1 $port >"$work/asked" 2>"$work/err" &
	client=$!
	children+=("$client")
}

is_over() { # PID
	! kill -0 "$1" 2>/dev/null
}

# One that hangs says where it stands.
ends_well() { # PID
	kill "$1"
	WITHIN=60 within is_over "$1" || { "$shunt" stat --json "$1" >&2; cat "/proc/$1"/task/*/stack >&2; kill -9 "$1"; }
	wait "$1"
}

# with NAME SETTING-OF-ONE SETTING-OF-TWO EXPECTED-OF-ONE… -- EXPECTED-OF-TWO…: a command, which is given the process.
with() {
	local name=$1 one=$2 two=$3 of_one=() of_two=()
	shift 3
	while [ "$1" != -- ]; do of_one+=("$1") && shift; done
	shift
	of_two=("$@")
	[ "$lab_self" = two ] || serve $one
	meet listens
	if [ "$lab_self" = two ]; then
		ask $two
		check "$name: client: ${of_two[*]}" within "${of_two[0]}" "$client" "${of_two[@]:1}"
	fi
	meet asked
	[ "$lab_self" = two ] || check "$name: server: ${of_one[*]}" within "${of_one[0]}" "$server" "${of_one[@]:1}"
	meet seen
	if [ "$lab_self" = two ]; then
		check "$name: every answer was right" ends_well "$client"
	fi
	meet over
	cat "$work/err" >&2
	[ "$lab_self" = two ] || { kill "$server" && wait "$server"; }
	port=$((port + 1))
}

# A queue pair dies, and the stream returns to a link that is made anew on the same channel.
returns() { # PID
	[ -n "${failed_over-}" ] || { by_link "$1" && "$shunt" adm "$1" failover >/dev/null && failed_over=1; } || return
	counts "$1" streams_returned
}

lives() { # PID
	kill -0 "$1"
}

warns() { # PID TEXT
	grep -q "$2" "$work/err"
}

with "without a key" "" "" by_link -- by_link
with "one key" "SHUNT_KEY=$work/good SHUNT_TUNE=$SHUNT_TUNE,return_ms=500" "SHUNT_KEY=$work/good SHUNT_TUNE=$SHUNT_TUNE,return_ms=500" by_link -- returns
with "one key, demanded" "SHUNT_KEY=$work/good SHUNT_TRUST=key" "SHUNT_KEY=$work/good SHUNT_TRUST=key" by_link -- by_link
# An acceptor waits for a claim as long as it may take.
export SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=5000
with "two keys" SHUNT_KEY=$work/good SHUNT_KEY=$work/other stays "$key" -- stays "$key"
with "a key of one" SHUNT_KEY=$work/good "" counts gate_other_keys -- stays "$key"
with "a key of two" "" SHUNT_KEY=$work/good warns "another key than this one" -- stays "$key"
with "a key demanded by two" "" SHUNT_TRUST=key lives -- stays "$key"
with "a key that others can read" "" SHUNT_KEY=$work/open lives -- stays "$key"
[ "$lab_self" = one ] || check "its message says why" warns 0 "chmod 640"
plan
