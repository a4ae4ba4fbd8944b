# SPDX-License-Identifier: MIT
# Shared by the scripts of this folder: knobs, tables from shunt perf, redis and model_iops, pictures. Sourced.
#
#	OUT=folder	where pictures and their data go; a new one under /tmp if not given
#	ROUNDS=3	rounds, in which all that is compared takes turns; medians are shown
#	LENGTH=0.4	seconds of one measurement
#	REQUESTS=100000	of one run of redis-benchmark
#	MODEL=connectx3	cost model of the soft device, where one is used
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# shellcheck source-path=SCRIPTDIR source=../../calls/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../measure.sh
. "$(dirname "${BASH_SOURCE[0]}")/../measure.sh"

rounds=${ROUNDS:-3}
length=${LENGTH:-0.4}
requests=${REQUESTS:-100000}
model=${MODEL:-connectx3}
scratch paper "${OUT:-}"
out=$scratch
# Pictures and data stay, if there are any and nobody has interrupted us.
ended() {
	[ $? -gt 128 ] || [ -z "$(ls -A "$out")" ] || scratch_keep "$out"
	clean_up
}
trap ended EXIT
trap 'exit 143' TERM
shunt=${shunt_run% run}
model_iops=$builddir/tests/bench/model_iops
batch=$builddir/tests/engine/batch
modes="single merge chain hybrid"
modelled=m-${modes// / m-}	# the same with the model, for redis_rounds

# The testbed (RB-E12).
machine() {
	local cpu memory
	cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
	memory=$(awk '$1 == "MemTotal:" { printf "%.0f", $2 / 1048576 }' /proc/meminfo)
	echo "machine: ${cpu:-$(uname -m)}, $(nproc) of them, $memory GB; Linux $(uname -r); TCP" \
		"$(cat /proc/sys/net/ipv4/tcp_congestion_control)"
}

# heading FIGURE PAPER: what the paper shows there.
heading() {
	echo "=== $1"
	echo "paper: $2"
	echo "here:  no RNIC, both ends on one host; pictures and data in $out"
	machine
	echo
}

# not_here TEXT: what cannot be shown.
not_here() {
	echo
	echo "not here: $1"
}

# --- shunt perf ---

# perf NAME OPTIONS...: runs it, with its figures in $out/NAME.csv.
perf() {
	local name=$1
	shift
	$shunt perf --rounds "$rounds" --seconds "$length" --csv "$out/$name.csv" "$@" \
		> "$work/$name.table" 2> "$work/$name.err" || {
		cat "$work/$name.table" "$work/$name.err"
		exit 1
	}
}

# perf_modes NAME SETTINGS OPTIONS...: perf of TCP and every mode of batching; SETTINGS, "" or ",VARIABLE=VALUE",
# go with each mode.
perf_modes() {
	local name=$1 settings=$2 mode variants=()
	shift 2
	for mode in $modes; do
		variants+=(--variant "$mode=SHUNT_TUNE=batch=$mode$settings")
	done
	perf "$name" --transports tcp "${variants[@]}" "$@"
}

# perf_table NAME COLUMN...: medians. A column is LABEL=FIELD, LABEL=FIELD/op for each operation, or
# LABEL=FIELD/us for each operation in microseconds.
perf_table() {
	local name=$1
	shift
	awk -F, -v columns="$*" '
		BEGIN { n = split(columns, column, " ") }
		NR == 1 {
			for (i = 1; i <= NF; i++)
				at[$i] = i
			printf "%-18s %-14s", "model", "transport"
			for (i = 1; i <= n; i++) {
				split(column[i], part, "=")
				printf " %11s", part[1]
			}
			print ""
		}
		$at["round"] == "median" {
			printf "%-18s %-14s", $1 ($2 == "" ? "" : "/" $2), $3
			for (i = 1; i <= n; i++) {
				split(column[i], part, "=")
				field = part[2]
				us = sub("/us$", "", field)
				each = sub("/op$", "", field)
				value = $at[field]
				if (value != "" && us)
					printf " %11.2f", 1e6 * value / $at["run_operations"]
				else if (value == "")
					printf " %11s", "-"
				else if (each)
					printf " %11.3f", value / $at["run_operations"]
				else
					printf (value >= 1000 ? " %11.0f" : " %11.2f"), value
			}
			print ""
		}' "$out/$name.csv"
}

# to_single N TITLE: a perf_table with one more column, the N-th of each mode against that of single.
to_single() {
	awk -v n="$1" -v title="$2" '
		NR == 1 { printf "%s %11s\n", $0, title; next }
		$2 == "single" { base = $n }
		{ printf "%s %11s\n", $0, $2 == "tcp" ? "-" : sprintf("%.2f", base ? $n / base : 0) }'
}

# perf_grid NAME FIELD[/op]: a line for each model, a column for each transport that has the field, for a
# picture.
perf_grid() {
	awk -F, -v field="$2" '
		BEGIN { each = sub("/op$", "", field) }
		NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
		$at["round"] == "median" {
			value = $at[field]
			if (value == "") next
			m = $1 ($2 == "" ? "" : "/" $2)
			if (!(m in known)) { known[m]; models[++nm] = m }
			if (!($3 in seen)) { seen[$3]; kinds[++nk] = $3 }
			v[m, $3] = each ? value / $at["run_operations"] : value
		}
		END {
			printf "model"
			for (k = 1; k <= nk; k++) printf " %s", kinds[k]
			print ""
			for (i = 1; i <= nm; i++) {
				printf "%s", models[i]
				for (k = 1; k <= nk; k++) printf " %s", v[models[i], kinds[k]]
				print ""
			}
		}' "$out/$1.csv" > "$out/$1.${2%%/*}.dat"
	echo "$out/$1.${2%%/*}.dat"
}

# --- redis ---

# redis_trace WHO WRAP ARGUMENTS...: records requests/s, p99 in ms, and the work requests and doorbells
# of both ends. A fixed number of requests, and -t with one test.
redis_trace() {
	local who=$1 wrap=$2 stat rps p99
	shift 2
	stat=$(mktemp -d "$work/stat.XXXXXX")
	SHUNT_STATS=$stat/%p start_redis "$wrap"
	SHUNT_STATS=$stat/%p timeout 120 $wrap redis-benchmark -p "$server_port" -d 64 --csv "$@" 2> /dev/null |
		tail -1 | tr -d '"' > "$work/line"
	kill "$server_pid"
	wait "$server_pid" 2> /dev/null
	IFS=, read -r _ rps _ _ _ _ p99 _ < "$work/line"
	record rps "$who" "${rps:-0}"
	record p99 "$who" "${p99:-0}"
	record wr "$who" "$(counter wr "$stat"/*)"
	record bell "$who" "$(counter doorbells "$stat"/*)"
	record control "$who" "$(counter wr_control "$stat"/*)"
	record bytes "$who" "$(counter wr_bytes "$stat"/*)"
}

# redis_rounds WHO...: in each round redis_trace of what $pipelined says, by each of WHO: tcp, MODE, or m-MODE.
pipelined="SET, 50 clients, pipeline 16"
redis_rounds() {
	local round who wrap
	for ((round = 1; round <= rounds; round++)); do
		for who; do
			case $who in
			tcp) wrap="" ;;
			m-*) wrap="env SHUNT_TUNE=${SHUNT_TUNE-},batch=${who#m-} SHUNT_SOFT_MODEL=$model $shunt_run" ;;
			*) wrap="env SHUNT_TUNE=${SHUNT_TUNE-},batch=$who $shunt_run" ;;
			esac
			redis_trace "$who" "$wrap" -t set -c 50 -P 16 -n "$requests"
		done
	done
}

# --- registered memory ---

# Sends that the device fetches: out of registered memory into which they are copied, or where they are, registered.
mrs="preMR dynMR"
mr_settings() {
	case $1 in
	preMR) echo ,inline=64,mr_threshold=0 ;;
	dynMR) echo ,inline=64,mr_threshold=1 ;;
	esac
}

# mr_trace MODE MR MODELLED BYTES COUNT: COUNT blocking sends of so many bytes by each of 4 threads, on a connection each.
# Records, as MR.MODELLED.BYTES.MODE, MB/s, and the work requests, doorbells and registered sends of both ends. MODELLED:
# real or model.
mr_trace() {
	local mode=$1 mr=$2 modelled=$3 bytes=$4 count=$5 stat wrap rate who=$2.$3.$4.$1
	stat=$(mktemp -d "$work/stat.XXXXXX")
	wrap="env SHUNT_STATS=$stat/%p SHUNT_TUNE=${SHUNT_TUNE-},batch=$mode$(mr_settings "$mr")"
	[ "$modelled" = real ] || wrap+=" SHUNT_SOFT_MODEL=$model"
	wrap+=" $shunt_run"
	rate=$(measure_pp "$wrap" "$wrap" rate -m blocking -q -w 100 -p 4 -s "$bytes" -n "$count")
	record rate "$who" "$(awk -v r="${rate:-0}" -v b="$bytes" 'BEGIN { print r * 4 * b / 1e6 }')"
	record wr "$who" "$(counter wr "$stat"/*)"
	record bell "$who" "$(counter doorbells "$stat"/*)"
	record pins "$who" "$(counter sends_registered "$stat"/*)"
}

# mr_rounds BYTES...: in each round mr_trace of every mode, of both kinds of memory, without a model and with it.
mr_rounds() {
	local round bytes mr mode modelled
	for ((round = 1; round <= rounds; round++)); do
		for bytes; do
			for modelled in real model; do
				for mr in $mrs; do
					for mode in $modes; do
						mr_trace $mode $mr $modelled $bytes $((mr_bytes / 4 / bytes))
					done
				done
			done
		done
	done
}
mr_bytes=${MR_BYTES:-67108864}

# --- model_iops ---

# iops_table open|window|adapted: of what it prints, the lines of the table without a window, of that with one or of that
# of windows that adapt, as numbers: threads, kIOPS, requests and bytes in flight, mean us, misses in %, pauses.
iops_table() {
	awk -v which="$1" '
		BEGIN { table = "open" }
		/^window/ { table = "window" }
		/^adapted/ { table = "adapted" }
		table == which && $1 + 0 { print $1, $2, $3, $4, $5, $6 + 0, $7 }'
}

# iops_beside A B: two such tables side by side: the second's kIOPS is $8.
iops_beside() {
	LC_ALL=C join <(LC_ALL=C sort -k1,1 "$1") <(LC_ALL=C sort -k1,1 "$2") | sort -g
}

# --- pictures ---

# draw NAME: a gnuplot script from standard input makes $out/NAME.svg.
draw() {
	command -v gnuplot > /dev/null || {
		echo "no picture: gnuplot is missing"
		return
	}
	{
		echo "set terminal svg size 900,420 background '#ffffff' font 'sans,13'"
		echo "set output '$out/$1.svg'"
		echo "set key outside right top noenhanced; set grid ytics lc rgb '#dddddd'; set border 3"
		echo "set xtics nomirror; set ytics nomirror"
		cat
	} > "$work/$1.gp"
	gnuplot "$work/$1.gp" || echo "no picture: gnuplot failed"
}

# draw_iops NAME TITLE: draw by threads, with kIOPS to the left and on axes x1y2 what is in flight.
draw_iops() {
	{
		echo "set title '$2' noenhanced"
		echo "set xlabel 'IO threads'; set ylabel 'kIOPS'; set y2label 'in flight'; set y2tics"
		echo "set yrange [0:*]; set y2range [0:*]"
		cat
	} | draw "$1"
}

# bars NAME TITLE UNIT DATA [COMMAND]: DATA has a line for each group and a column for each bar.
bars() {
	draw "$1" << END
set title "$2" noenhanced
set ylabel "$3"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set xtics noenhanced
set yrange [0:*]
${5:-}
columns = $(awk 'NR == 1 { print NF }' "$4")
plot for [i = 2:columns] '$4' using i:xtic(1) title columnheader(i)
END
}
