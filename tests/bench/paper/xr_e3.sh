#!/bin/bash
# SPDX-License-Identifier: MIT
# X-RDMA, Figure 8: 4,096 connections are set up. Here between two processes of one host: the time from connect() to the
# first answer that TCP has not carried, and the queue pairs that were made; tests/lab/guest/links.sh has the same over
# rxe beside rdma_cm. The number of queue pairs is judged.
#
#	ROUNDS=3 CONNECTIONS=4096 xr_e3.sh
# shellcheck disable=SC2086,SC2154	# commands to put before others are several words; measure.sh's
# shellcheck source-path=SCRIPTDIR source=common.sh
set -u
. "$(dirname "$0")/common.sh"
many=$builddir/tests/calls/many
upgrade=$builddir/tests/bench/upgrade
need "$many" "$upgrade" jq
need_shunt
connections=${CONNECTIONS:-4096}
ulimit -n $((connections + 1000)) || skip_all "descriptors are limited to $(ulimit -n)"

heading "XR-E3 (X-RDMA, Figure 8): establishment" \
	"3,946 us with rdma_cm, 2,451 us with a cache of queue pairs; 4,096 connections take 10 s and 3 s"

made=0
for ((round = 1; round <= rounds; round++)); do
	rm -f "$work"/stat.*
	in=''
	SHUNT_STATS=$work/stat.%p start_telling $shunt_run "$many" server
	from=$(date +%s.%N)
	SHUNT_STATS=$work/stat.%p $shunt_run "$upgrade" "$server_port" "$connections" 20 > "$work/times" || exit
	record seconds all "$(awk -v a="$from" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')"
	wait "$server_pid"
	record us first "$(head -n 1 "$work/times")"
	record us median "$(tail -n +2 "$work/times" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }')"
	upgraded=$(counter upgrades "$work"/stat.*)
	[ "$upgraded" -ge $((2 * connections)) ] || { echo "xr_e3.sh: $upgraded of $((2 * connections)) ends came to the link" >&2; exit 1; }
	made=$(counter queue_pairs_created "$work"/stat.*)
	[ "$made" -le 8 ] || { echo "xr_e3.sh: $made queue pairs were made" >&2; exit 1; }
done
echo "--- $connections connections, medians of $rounds rounds"
printf '%-44s %10.1f\n' "the first: device, link and claim, ms" "$(awk -v us="$(get_median us first)" 'BEGIN { print us / 1e3 }')"
printf '%-44s %10.0f\n' "later ones, median, us" "$(get_median us median)"
printf '%-44s %10.1f\n' "all, one after the other, s" "$(get_median seconds all)"
printf '%-44s %10d\n' "queue pairs of both ends" "$made"
