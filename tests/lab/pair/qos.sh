#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 3600
# SHUNT_QOS between two machines: a node on one, its clients on two. A limit holds on the link; two classes that send all the
# time each have what is reserved for them in whole periods, and together no more than the capacity. Batches are taken
# from the pool by the device's FETCH_AND_ADD; the monitor fills it by the device's atomics, too. Tokens are counted, by both
# ends' own books. `capacity auto` measures the device.
# shellcheck shell=bash disable=SC2016,SC2034,SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

shunt=$builddir/tools/shunt
flow=${BASH_SOURCE%/*}/flow.py
slow="the device is too slow, or this process did not run"	# for a profile, which an emulated machine may be
limit=244140	# 8Mbit, in thousandths of a token a second
logs=/tmp/lab/qos	# what both say stays there
mkdir -p $logs
export SHUNT_DEVICE=verbs SHUNT_TUNE=${SHUNT_TUNE-},claim_ms=60000,slow_ms=0,dead_ms=10000 SHUNT_LOG=info
need python3 jq "$builddir/tests/soft/conform"
need_shunt
knows_device verbs || { echo "1..0 # SKIP this build does not know SHUNT_DEVICE=verbs" && exit 77; }

# says PID FILTER: of the statistics of a process, as $process, and its .qos. What was seen last stays.
says() {
	"$shunt" stat --json "$1" >$logs/stat 2>/dev/null && cp $logs/stat "$logs/stat.$1" &&
		jq -e ".[0] as \$process | .[0].qos | $2" $logs/stat >/dev/null || ! cat $logs/stat >&2
}

# comes PID FILTER: it is so sometime. To look takes a good part of an emulated processor.
comes() {
	local until=$((SECONDS + WITHIN))
	until says "$@" 2>/dev/null; do
		[ $SECONDS -lt $until ] || { says "$@"; return; }
		sleep 1
	done
}

serve() { # RULES
	SHUNT_QOS=$1 $shunt_run python3 "$flow" sink "$mine" $port >/dev/null 2>$logs/node.err &
	server=$!
	children+=("$server")
	within somebody_listens $port || echo "nobody listens" >&2
}

send_as() { # CLASS [BYTES]: its process is in $client
	SHUNT_QOS_CLASS=$1 $shunt_run python3 "$flow" source "$theirs" $port $2 >$logs/$1 2>$logs/$1.err &
	client=$!
	children+=("$client")
}

conforms() { # TEST
	timeout 300 "$builddir/tests/soft/conform" --device verbs:rxe0 "SD_02_$1" >$logs/$1 2>&1 && grep -q "PASSED.* 1 test" $logs/$1 || ! cat $logs/$1 >&2
}

is_over() { # PID
	! kill -0 "$1" 2>/dev/null
}

ends_well() { # PID CLASS
	local sent came
	kill "$1"
	WITHIN=300 within is_over "$1" || { "$shunt" stat --json "$1" >&2; return 1; }
	read -r _ sent _ came <$logs/$2
	echo "$2: sent $sent, came $came" >&2
	[ "$sent" = "$came" ] && [ "$sent" -gt 0 ]
}

# --- what the monitor builds on ---

for name in a_queue_pair_may_be_its_own_peer atomics; do
	check "the device: $name" conforms $name
done

# --- a limit ---

# Both machines have the limit's tokens by their own time. A bucket saves 20 ms of it; what the client had before it had heard
# of the limit is not in these numbers.
may_have="\$process.uptime_ms * $limit / 1e6 + 20e-6 * $limit + 16"

[ "$lab_self" = two ] || serve "class bulk declared=bulk limit=8Mbit; class rest"
meet listens
if [ "$lab_self" = two ]; then
	send_as bulk
	check "limit: the client knows it" comes "$client" ".links[0] | .class == \"bulk\" and .told and .limit == $limit"
	check "limit: it has sent much by the link" comes "$client" '.links[0].tokens > 1000'
	check "limit: by RDMA" says "$client" '$process.device | startswith("verbs")'
	check "limit: a token is for 4 KiB" says "$client" '.links[0] | .bytes <= 4096 * .tokens'
	check "limit: no more than it has by now" says "$client" ".links[0].tokens <= $may_have"
	check "limit: which has made bytes wait" says "$client" '.links[0].waits > 0'
	echo "# limit: $(jq -c '.[0].qos.links[0] | {limit, tokens, bytes, waits, achieved}' $logs/stat), thousandths of tokens a second"
fi
meet "much was sent"
if [ "$lab_self" = one ]; then
	check "limit: the node has counted no more" says "$server" ".links[0] | .arrived > 500 and .arrived <= $may_have"
	check "limit: nobody was held" says "$server" '(.links | all(.held == 0)) and (.classes | all(.cheats == 0))'
fi
meet "it was counted"
[ "$lab_self" = one ] || check "limit: every byte has come" ends_well "$client" bulk

# --- reservations ---

# whole FIRST: periods since then in which both machines have run, and in the one before: nine tenths of the capacity were
# taken. A busy host lets an emulated machine stand still, for a whole period at times.
whole() {
	echo "(.periods | map(select(.number >= $1)) | . as \$all | [range(length - 1) | select([\$all[., . + 1] |" \
		"(.classes | map(.[1]) | add) >= 0.9 * .capacity] | all) | \$all[.]])"
}

# all_within FIRST: a token is counted in the period in which it arrives. So a period may have some of the one before; of all
# since FIRST these are less than a hundredth.
all_within() {
	echo ".periods | map(select(.number >= $1)) | 1.01 * (map(.capacity) | add) >= (map(.classes[][1]) | add)"
}

meet "before reservations"
[ "$lab_self" = two ] || check "reservations: rules" "$shunt" adm "$server" qos \
	'period 2s; capacity 10Mbit; class a declared=a reserve=60%; class b declared=b reserve=20%'
meet "there are rules"
if [ "$lab_self" = two ]; then
	send_as a
	a=$client
	send_as b
	b=$client
	check "reservations: client a is of its class" comes "$a" '.links[0].class == "a"'
	check "reservations: client b is of its class" comes "$b" '.links[0].class == "b"'
fi
meet "both send"
if [ "$lab_self" = one ]; then
	check "reservations: the node knows them" comes "$server" '.classes | all(.clients == 1)'
	first=$(jq '.[0].qos.period + 1' $logs/stat)	# the first of which both have all
	check "reservations: there are four whole periods" comes "$server" "$(whole "$first") | length >= 4"
	check "reservations: each class has 99 % of its own in each" says "$server" \
		"$(whole "$first") | all(.classes | all(.[0] > 0 and .[1] >= 0.99 * .[0]))"
	check "reservations: both no more than the capacity" says "$server" "$(all_within "$first")"
	check "reservations: what is reserved is what the rules say" says "$server" \
		"$(whole "$first") | all(.capacity as \$all | .classes[0][0] == (\$all * 0.6 | floor) and .classes[1][0] == (\$all * 0.2 | floor))"
	check "reservations: the rest is taken from the pool" says "$server" '.classes | map(.pooled) | add > 100'
	check "reservations: the monitor uses the device's atomics" says "$server" '.monitor == "device"'
	check "reservations: nobody was held" says "$server" '(.links | all(.held == 0)) and (.classes | all(.cheats == 0))'
	"$shunt" adm "$server" qos periods | tee $logs/periods | head -n 8 | sed 's/^/# /'
	"$shunt" adm "$server" qos | tee $logs/qos | sed 's/^/# /'
fi
meet "periods have gone by"

# --- what one leaves the other has ---

idle_from=3000000	# bytes: it has been on the link then
if [ "$lab_self" = two ]; then
	check "all of b's bytes have come" ends_well "$b" b
	send_as b $idle_from
	b=$client
	check "conversion: an idle b is of its class" comes "$b" '.links[0].class == "b"'
fi
meet "b is there again"
if [ "$lab_self" = one ]; then
	check "conversion: the node knows it" comes "$server" '.links | length == 2'
	converted=$(jq '.[0].qos.classes[1].converted' $logs/stat)
	first=$(jq '.[0].qos.period + 1' $logs/stat)
	later=".periods | map(select(.number >= $first))"
	check "conversion: its reports come, and what it leaves goes to the pool" comes "$server" ".classes[1].converted > $converted + 100"
	check "conversion: four periods go by" comes "$server" ".period > $first + 3"
	check "conversion: a has some of it" comes "$server" "$later | any(.classes[0][1] > 1.02 * (.capacity - .classes[1][0]))"
	check "conversion: both no more than the capacity" says "$server" "$(all_within "$first")"
	"$shunt" adm "$server" qos periods | tee $logs/converted | head -n 4 | sed 's/^/# /'
fi
meet "a has had more"

# --- the capacity is measured ---

if [ "$lab_self" = one ]; then
	check "auto: rules" "$shunt" adm "$server" qos 'capacity auto; class a declared=a reserve=60%; class b declared=b reserve=20%'
	check "auto: the device is measured" comes "$server" '.capacity | .kind == "auto" and .mean > 0'
	echo "# auto: $(jq -c '.[0].qos.capacity' $logs/stat) $(grep -o 'the capacity cannot be.*' $logs/node.err)"
	check "auto: which did not fail" [ "$(grep "the capacity cannot be measured" $logs/node.err | grep -vc "$slow")" = 0 ]
fi
meet "it was measured"
if [ "$lab_self" = two ]; then
	check "all of a's bytes have come" ends_well "$a" a
	check "all of the idle b's bytes have come" ends_well "$b" b
fi
meet over
plan
