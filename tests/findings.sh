#!/bin/bash
# SPDX-License-Identifier: MIT
# Do the tools point to the cause? Each illness of tests/findings_cases.sh, and its control without one; and every command
# of the symptom table of docs/TROUBLESHOOTING.md is one that there is. TAP.
#
#	SHOW=1 findings.sh [CASE...]	also what a person sees
# shellcheck disable=SC2317 # called by name
# shellcheck source-path=SCRIPTDIR source=calls/lib.sh
set -u
source=${top_srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
. "$source/tests/calls/lib.sh"
# shellcheck source=findings_cases.sh
. "$source/tests/findings_cases.sh"
need jq "$sick"
need_shunt

# Of the table: `shunt ... PID` and the like.
# shellcheck disable=SC2016 # backticks of Markdown
commands() {
	sed -n '/^### Symptoms/,/^### /p' "$source/docs/TROUBLESHOOTING.md" | grep '^| ' | grep -oE '`shunt [^`]*(PID|HOST:PORT)[^`]*`' | tr -d '`'
}

# Each command does something, on processes that run. What ends only by hand is asked for one look.
find_table() {
	local line words problems="" count=0
	ill well ask 1
	within traced
	while read -r line; do
		count=$((count + 1))
		line=${line//PID/$server}
		line=${line//HOST:PORT/127.0.0.1:$server_port}
		read -ra words <<< "$line"
		case $line in
		"shunt top"*) words+=(-b -n 1 -d 0.1) ;;
		"shunt trace --seconds"*) words[3]=1 ;;
		esac
		[ "${words[0]}" = shunt ] && "$tool" "${words[@]:1}" > "$work/said" 2>&1 && [ -s "$work/said" ] ||
			problems+="$line: $(head -n 1 "$work/said")"$'\n'
	done < <(commands | sort -u)
	well_again
	[ "$count" -ge 8 ] || problems+="$count commands only"
	check "each command of the table of symptoms works" [ -z "$problems" ]
	[ -z "$problems" ] || echo "# $problems"
}

[ $# -gt 0 ] || set -- stall slow deaf mute incast table
for name; do
	"find_$name"
done
plan
