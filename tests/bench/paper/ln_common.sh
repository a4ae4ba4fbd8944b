# SPDX-License-Identifier: MIT
# For the scripts of On Limitations of Network Acceleration: requests with small questions and answers of a given size, one
# after the other, by `shunt perf`. One end touches what it sends or scans what it gets. Sourced.
#
#	SIZES="4 16 …"	of answers, in bytes, K or M
#	ROUNDS=3	rounds, in which all that is compared takes turns
#	LENGTH=0.2	seconds of one measurement
#	PIN=0,1		the processors of the server and of the client; none: where the scheduler puts them
#	PERF="OPTIONS"	more options of shunt perf
#
# On machines of their own the ends would not share a processor. A process that starts with one processor never spins
# (PF-32), so ends are pinned when they run.
# shellcheck shell=bash disable=SC2034,SC2046,SC2086,SC2154
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_shunt
all_sizes="4 16 64 256 1K 4K 16K 64K 256K 1M 4M 16M"
question=64

pin=${PIN:-$([ "$(nproc)" -gt 1 ] && echo 0,1 || echo none)}
server_cpu=${pin%,*} client_cpu=${pin#*,}
mkfifo "$work/never" && exec {never}<> "$work/never"

# ln_models SIZE...: the models of answers of these sizes.
ln_models() {
	local size
	for size; do
		echo "rr:$question:$size"
	done
}

# ln_record CASE SIZES OPTIONS...: a round of one case over TCP and shunted. Records the median time of a request in us as
# t, CASE.SIZE.TRANSPORT.
ln_record() {
	local name=$1 sizes=$2 model transport us perf
	shift 2
	$shunt perf --rounds 1 --seconds "$length" --csv "$work/ln.csv" ${PERF:-} "$@" $(ln_models $sizes) \
		> "$work/ln.table" 2> "$work/ln.err" &
	perf=$!
	children+=("$perf")
	[ "$pin" = none ] || pin_ends $perf
	wait $perf || {
		cat "$work/ln.table" "$work/ln.err"
		exit 1
	}
	while read -r model transport us; do
		[ "$us" ] || {
			echo "no request of $model over $transport has ended in $length s: LENGTH is too short"
			exit 1
		}
		record t "$name.${model##*:}.$transport" "$us"
		echo "$name ${model##*:} $transport $us" >> "$out/ln.rounds"
	done < <(awk -F, '
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
		$at["round"] == 1 { print $1, $3, $at["p50_us"] }' "$work/ln.csv")
}

# pin_ends PERF: while it runs, each end that it has started gets its processor. That is within its first 0.1 seconds, which
# do not count.
pin_ends() {
	local pid cpu pids state seen=" "
	while read -r _ _ state _ < "/proc/$1/stat" && [ "$state" != Z ]; do
		read -r pids < "/proc/$1/task/$1/children"	# no newline ends it
		for pid in $pids; do
			[[ $seen = *" $pid "* ]] && continue
			case $(tr '\0' ' ' < "/proc/$pid/cmdline") in
			*" perf-end server "*) cpu=$server_cpu ;;
			*" perf-end client "*) cpu=$client_cpu ;;
			*) continue ;;
			esac
			taskset -acp "$cpu" "$pid" > /dev/null && seen+="$pid "
		done
		read -rt 0.02 -u "$never"
	done
} 2> /dev/null

# ln_time CASE SIZE TRANSPORT: the median of its rounds.
ln_time() {
	get_median t "$1.$2.$3"
}

# ln_spread CASE SIZE TRANSPORT: the standard deviation of its rounds, in percent of their mean.
ln_spread() {
	awk '{ n++; s += $1; q += $1 * $1 }
		END { m = s / n; v = q / n - m * m; printf "%.0f", (n > 1 && m && v > 0) ? 100 * sqrt(v * n / (n - 1)) / m : 0 }' \
		"$work/r.t.$1.$2.$3"
}

# more A B: how much longer B takes than A, in percent.
more() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%+.1f", a ? 100 * (b / a - 1) : 0 }'
}

# ln_lines SIZE: cache lines of an answer.
ln_lines() {
	echo $((($(numfmt --from=iec "$1") + 63) / 64))
}

# ln_one_host: what differs from two machines with a network card each.
ln_one_host() {
	not_here "a network card that reads memory, and a wire. Both ends share the last-level cache. Over Shunt the other core
copies what a card would fetch, out of a ring that the sender has written: $1"
}
