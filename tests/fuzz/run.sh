#!/bin/bash
# SPDX-License-Identifier: MIT
# Fuzzes: RUNS=10000000 run.sh [NAME...], or SECONDS_EACH=60 run.sh. In the folder of a build with --enable-fuzz.
# MOST=64: with inputs of no more bytes. Of link, these reach in a minute what long ones do, at twice the speed.
# What is found is in fuzz/, beside the corpora that have grown there; the exit status says whether there is any.
# A line for each: runs, runs a second, covered edges.
set -u
build=${top_builddir:-.}
here=$(cd "$(dirname "$0")" && pwd)
names=("$@")
runs=${RUNS:--1}
seconds=${SECONDS_EACH:-0}
[ "$runs$seconds" != -10 ] || runs=10000000
export ASAN_OPTIONS=detect_stack_use_after_return=0:${ASAN_OPTIONS-} UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS-}

[ ${#names[@]} -gt 0 ] || for each in "$here"/corpus/*/; do names+=("$(basename "$each")"); done
for name in "${names[@]}"; do
	mkdir -p "fuzz/$name" || exit
	known=("$here/corpus/$name")
	[ ! -d "$here/regress/$name" ] || known+=("$here/regress/$name")
	# Texts may be long; a script that is does no more than several that are short.
	case $name in conf | config | device | model | qos_rules) most=2000 ;; *) most=250 ;; esac
	[ "$name" != go ] || most=8192
	most=${MOST:-$most}
	if "$build/tests/fuzz/$name" -runs="$runs" -max_total_time="$seconds" -max_len="$most" -len_control=0 \
		-entropic=0 -timeout=60 -rss_limit_mb=4096 -artifact_prefix="fuzz/$name-" -print_final_stats=1 \
		"fuzz/$name" "${known[@]}" > "fuzz/$name.log" 2>&1; then
		result=ok
	else
		result=FOUND failed=1
		tail -n 30 "fuzz/$name.log"
	fi
	printf '%-10s %s %s\n' "$name" "$result" "$(awk '
		/^stat::number_of_executed_units/ { runs = $2 } /^stat::average_exec_per_sec/ { speed = $2 }
		$3 == "cov:" { edges = $4 } END { print runs " runs", speed "/s", edges " edges" }' "fuzz/$name.log")"
done
[ -z "${failed-}" ]
