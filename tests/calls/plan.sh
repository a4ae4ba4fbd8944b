#!/bin/bash
# SPDX-License-Identifier: MIT
# `shunt doctor --plan` says what footprint.sh measures, within 10 %: memory of a server and of a client with all
# connections in use and with all idle, links, queue pairs, registered memory, descriptors. As links within a host are,
# and with the lanes, stages and regions of those over an RDMA device.
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"
need "$builddir/tests/bench/short" jq
need_shunt
grep -q '^CFLAGS = .*-fsanitize=' "$builddir/Makefile" && {
	echo "1..0 # SKIP a sanitizer has memory of its own"
	exit 77
}

measure() { # AS SHAPE
	AS=$1 SHAPES=$2 bash "$here/../bench/footprint.sh" --json >"$work/$1.$2"
}

# The settings with which links of shared memory are as those of the device are: footprint.sh has the same.
planned() { # AS CONNECTIONS PEERS
	local tune=
	[ "$1" = verbs ] && tune=lanes=4,retain=always,inline=256
	SHUNT_TUNE=$tune "$builddir/tools/shunt" doctor --plan "connections=$2,peers=$3" --json
}

# What differs by more than a tenth. A client has no listener and no epoll set, for which the plan has three descriptors.
wrong() { # AS MEASURED PLANNED
	jq -rn --arg device "$1" --argjson has "$2" --argjson plan "$3" '
		def far($name; $planned; $measured):
			if ($planned - $measured | fabs) > $measured / 10 then "\($name): planned \($planned), measured \($measured)"
			else empty end;
		far("KiB in use"; $plan.memory.used / 1024; $has.used),
		if $device == "soft" then far("KiB idle"; $plan.memory.idle / 1024; $has.idle)
		else far("KiB registered"; $plan.registered.used / 1024; $has.registered) end,
		far("links"; $plan.links; $has.links),
		far("queue pairs"; $plan.queue_pairs; $has.queue_pairs),
		far("connections on links"; $plan.linked; $has.connections),
		(($plan.descriptors.own - ($has.descriptors - $has.plain_descriptors)) as $more |
			if $more < 0 or $more > 4 then "descriptors: \($more) more are planned than there are" else empty end)'
}

compare() { # AS SHAPE
	local line connections links differs count=0
	while read -r line; do
		connections=$(jq .connections <<<"$line") links=$(jq .links <<<"$line")
		differs=$(wrong "$1" "$line" "$(planned "$1" "$connections" "$links")" || echo "they cannot be compared")
		[ -z "$differs" ] || echo "# ${differs//$'\n'/$'\n'# }"
		check "as $1, $2: a $(jq -r .end <<<"$line")" [ -z "$differs" ]
		count=$((count + 1))
	done <"$work/$1.$2"
	check "as $1, $2: both ends were measured" [ $count = 2 ]
}

# Those within a host wait until rings are idle, so they wait together, and the others do not wait for them.
shapes="1x1x1 1x1x100 1x1x1000 4x4x25"
for shape in $shapes; do
	measure soft "$shape" &
done
for shape in $shapes; do
	measure verbs "$shape"
done
wait
for as in soft verbs; do
	for shape in $shapes; do compare "$as" "$shape"; done
done
plan
