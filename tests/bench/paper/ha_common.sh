# SPDX-License-Identifier: MIT
# Shared by ha_e1.sh to ha_e8.sh: Haechi's node and ten clients on the soft device, at 1:$SCALE of its rates. Sourced.
#
#	SCALE=400	a node of 1570000/SCALE requests a second, clients of 400000/SCALE each
#	PERIODS=10	that count, of a second each
#	WARM=2		before them
#	DEPTH=64	requests that a burst keeps outstanding; 8 in ha_e3.sh and ha_e7.sh
#
# The paper has 64 outstanding, 0.16 ms of a client's own rate. At 1:400 they are 64 ms of it. Where a client is to run
# out of time at the end of a period, that is too much.
# shellcheck shell=bash disable=SC2034,SC2119,SC2154
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need python3
need_shunt

scale=${SCALE:-400} periods=${PERIODS:-10} warm=${WARM:-2} depth=${DEPTH:-64}
node=$((1570000 / scale)) own=$((400000 / scale))	# requests a second: C_G and C_L
export PYTHONDONTWRITEBYTECODE=1 SCALE=$scale
PYTHONPATH=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH
sink=$work/sink

# A client's own NIC deals with a request in so many ns, the node in so many: client_model.
own_ns=$((1000000000 / own)) node_ns=$((1000000000 / node))
client_model="block=$own_ns,sink=$node_ns,sinkfile=$sink"

# sink_says PERCENT: a command that leaves so much of the node's capacity. The second word of the file is added to
# what a request takes.
sink_says() {
	echo "python3 -c 'import struct; f = open(\"$sink\", \"r+b\"); f.seek(8); f.write(struct.pack(\"=Q\", $((node_ns * 100 / $1 - node_ns))))'"
}

# A node that is slow by the model is no reason to leave the link (slow_ms).
#
# ha NAME OPTIONS...: a run of `shunt perf qos`, in $out/NAME.json; what its node says at the end in $out/NAME.node.json.
ha() {
	local name=$1
	shift
	rm -f "$sink" "$out/$name.node.json"
	SHUNT_TUNE=poll=event $shunt perf qos --periods "$periods" --warm "$warm" --depth "$depth" \
		--client SHUNT_SOFT_MODEL="$client_model" --client SHUNT_TUNE=batch=single --client SHUNT_TUNE=frag=4096 \
		--client SHUNT_TUNE=ring_min=2M --server SHUNT_TUNE=ring_min=2M \
		--client SHUNT_TUNE=slow_ms=0 --server SHUNT_TUNE=slow_ms=0 \
		--at "$((periods + 1)):$shunt stat --json \$SERVER_PID > '$out/$name.node.json'" \
		--json "$out/$name.json" "$@" > "$out/$name.txt" 2> "$work/$name.err" || {
		cat "$out/$name.txt" "$work/$name.err"
		exit 1
	}
}

# shares DISTRIBUTION TOTAL: ten numbers with commas.
shares() {
	python3 -c 'import ha, sys; print(*ha.shares(sys.argv[1], int(sys.argv[2])), sep=",")' "$1" "$2"
}

# rules RESERVED,... [CAPACITY]: requests a second, by client. The capacity is the node's, or as it is said.
rules() {
	local i=0 reserved
	printf 'period 1s; capacity %s' "${2:-$(kops "$node")}"
	for reserved in ${1//,/ }; do
		i=$((i + 1))
		printf '; class c%d declared=c%d reserve=%s' $i $i "$(kops "$reserved")"
	done
}

kops() {
	printf '%d.%03dKops' $(($1 / 1000)) $(($1 % 1000))
}

# plus NUMBER,... MORE: MORE added to each.
plus() {
	local number sum=
	for number in ${1//,/ }; do
		sum+=,$((number + $2))
	done
	echo "${sum#,}"
}

# percent N: of the node's capacity.
percent() {
	echo $((node * $1 / 100))
}

# judge ARGUMENTS...: Python from standard input, with ha.py; its status is the script's.
judge() {
	python3 - "$out" "$@"
}
