# Shared by the scripts of this folder: knobs, tables from shunt perf and redis, pictures. Sourced.
#
#	OUT=folder	where pictures and their data go; a new one under /tmp if not given
#	ROUNDS=3	rounds, in which all that is compared takes turns; medians are shown
#	LENGTH=0.4	seconds of one measurement
# shellcheck shell=bash disable=SC2034,SC2086,SC2154
# shellcheck source-path=SCRIPTDIR source=../../calls/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../calls/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../measure.sh
. "$(dirname "${BASH_SOURCE[0]}")/../measure.sh"

rounds=${ROUNDS:-3}
length=${LENGTH:-0.4}
out=${OUT:-$(mktemp -d /tmp/shunt-paper.XXXXXX)}
mkdir -p "$out"
shunt=${shunt_run% run}
model_iops=$builddir/tests/bench/model_iops
batch=$builddir/tests/sim/batch
modes="single merge chain hybrid"

# heading FIGURE PAPER: what the paper shows there.
heading() {
	echo "=== $1"
	echo "paper: $2"
	echo "here:  $(nproc) cores, no RNIC, both ends on one host; pictures and data in $out"
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
