#!/bin/bash
# SPDX-License-Identifier: MIT
# Latency is not bought: what the default modes of batching (hybrid) and polling (adaptive) make of p50 and p99,
# beside the best of the single modes, at low and at high load. All modes take turns in every round; medians. The default
# is measured twice: what the two differ by is what this machine cannot tell.
#
#	ROUNDS=9 LENGTH=0.5 latency.sh
# shellcheck disable=SC2086	# lists are words
# shellcheck source-path=SCRIPTDIR source=paper/common.sh
set -u
ROUNDS=${ROUNDS:-9} LENGTH=${LENGTH:-0.5}
. "$(dirname "$0")/paper/common.sh"
need_shunt

# Low: one request at a time, without and with idle time before it. High: each of 16 connections has 16 requests
# outstanding, from two threads; and bulk streams beside small requests.
low="pingpong cluster:small"
high="flow:64:16:0:16 mix"

# beside NAME DEFAULT: each percentile of DEFAULT and that of the best other mode.
beside() {
	awk -F, -v ours="$2" -v low="$low" '
		function ratios(top, bottom) {
			return sprintf("p50 %.2f p99 %.2f rate %.2f", top[order[k], 1] / (bottom[order[k], 1] + !bottom[order[k], 1]),
				top[order[k], 2] / (bottom[order[k], 2] + !bottom[order[k], 2]), top[order[k], 3] / bottom[order[k], 3])
		}
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["round"] != "median" || $3 == "tcp" { next }
		{
			name = $1 ($2 == "" ? "" : "/" $2)
			if (!(name in seen)) { seen[name] = 1; order[++n] = name }
			split("p50_us p99_us operations_per_second", fields, " ")
			for (i = 1; i <= 3; i++) {
				value = $at[fields[i]]; key = name SUBSEP i
				if ($3 == ours) mine[key] = value
				else if ($3 == "again") again[key] = value
				else if (!(key in best) || (i < 3 ? value < best[key] : value > best[key])) {
					best[key] = value; who[key] = $3
				}
			}
		}
		END {
			printf "%-22s %24s %24s %26s\n", "model", "p50 us (best other)", "p99 us (best other)",
				"requests/s (best other)"
			for (k = 1; k <= n; k++) {
				printf "%-22s", order[k]
				for (i = 1; i <= 3; i++) {
					key = order[k] SUBSEP i
					printf i < 3 ? " %8.2f %8.2f %-6s" : " %8.0f %8.0f %-6s", mine[key], best[key], who[key]
				}
				printf "   %s   (%s)\n", ratios(mine, best), ratios(again, mine)
			}
		}' "$out/$1.csv"
}

# measure NAME DEFAULT VARIABLE MODES SETTINGS
compare_modes() {
	local name=$1 ours=$2 variable=$3 modes=$4 settings=$5 mode variants=()
	for mode in $modes; do
		variants+=(--variant "$mode=$variable=$mode$settings")
	done
	variants+=(--variant "again=$variable=$ours$settings")
	perf "$name" --transports tcp "${variants[@]}" --threads 2 $low $high
	echo "--- $name: $ours against the best of ${modes/ $ours/}; the last columns are ratios, and those of $ours to itself"
	beside "$name" "$ours"
	echo
}

compare_modes batching hybrid SHUNT_TUNE=batch "single merge chain hybrid" ""
compare_modes batching-modelled hybrid SHUNT_TUNE=batch "single merge chain hybrid" ",SHUNT_SOFT_MODEL=$model"
compare_modes polling adaptive SHUNT_TUNE=poll "event batch hybrid busy adaptive" ""
