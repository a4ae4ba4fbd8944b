# SPDX-License-Identifier: MIT
# limit: 5000
# RDMAbox, Figure 12 (RB-E11): iperf3 by the size of a block, both ways: plain TCP, Shunt over rxe and rsocket. A table;
# what is judged is that Shunt gives a figure for each.
#	BLOCKS="4K 64K 1M"
# shellcheck shell=bash disable=SC2086,SC2154 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

blocks=${BLOCKS:-4K 16K 64K 128K 256K 1M}
address=10.77.0.1
limit=600
need iperf3 jq
need_shunt
peers_device

# Mbit/s at the receiver; nothing where it cannot be measured.
rate() { # WHO BLOCK [-R]
	local who=$1 block=$2 port=$((20000 + RANDOM % 10000))
	shift 2
	served "$(wrap_of "$who")" "$port" iperf3 -s -1 -p "$port" -- iperf3 -c $address -p "$port" -t 2 -O 2 -l "$block" -J "$@" |
		jq '.end.sum_received.bits_per_second / 1e6 | floor | select(. > 0)'
}

columns="tcp shunt rsocket"
printf '# %-6s %6s %10s %10s %10s\n' way block $columns
for way in write read; do
	back=
	[ $way = write ] || back=-R
	for block in $blocks; do
		line="" shunt=
		for who in $columns; do
			[ $who != rsocket ] || limit=60
			mbits=$(rate $who $block $back)
			[ $who != rsocket ] || limit=600
			[ $who != shunt ] || shunt=$mbits
			line+=$(printf ' %10s' "${mbits:-failed}")
		done
		printf '# %-6s %6s%s\n' $way $block "$line"
		check "Shunt: iperf3, $way, blocks of $block" [ "${shunt:-0}" -gt 0 ]
	done
done
echo "# Mbit/s at the receiver"
plan
