#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/dev/MECHANISMS.md is true of the tree: files that it names exist, functions in brackets are in the file before them,
# variables are rows of core/base/config_table.h, each ID is there once, and sources cite no other IDs. TAP.
set -u
cd "${top_srcdir:-"$(dirname "$0")/.."}" || exit
list=docs/dev/MECHANISMS.md
tests=0
failures=0

# report NAME PROBLEMS: ok if there are none.
report() {
	tests=$((tests + 1))
	if [ -z "$2" ]; then
		echo "ok $tests - $1"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $1"
		printf '# %s\n' "${2//$'\n'/$'\n'# }"
	fi
}

[ -f "$list" ] || { echo "1..0 # SKIP there is no $list"; exit 77; }

# Words in backquotes that are paths of this repository.
# shellcheck disable=SC2016 # backticks of Markdown
paths() {
	grep -oE '`[A-Za-z_./0-9-]+`' "$list" | tr -d '`' | grep -E '/.*\.|\.md$' | grep -v '/$' | sort -u
}

missing() {
	while read -r path; do
		[ -e "$path" ] || echo "$path does not exist"
	done < <(paths)
}

# `FILE` (NAME): NAME is a word of FILE.
# shellcheck disable=SC2016 # backticks of Markdown
strangers() {
	local path name
	while read -r path name; do
		grep -qw -- "$name" "$path" 2>/dev/null || echo "$path has no $name"
	done < <(grep -oE '`[^`]+/[^`]+` \([a-zA-Z_0-9]+\)' "$list" | tr -d '`()')
}

variables() {
	while read -r name; do
		grep -qE "^[A-Z]+\(${name#SHUNT_}," core/base/config_table.h || echo "$name is no variable"
	done < <(grep -oE '\bSHUNT_[A-Z_]*[A-Z]\b' "$list" | sort -u)
}

# The IDs of the rows.
listed() {
	sed -nE 's/^\| ((RB|XR|HA|LN|SD|RX|CP|PF)-E?[0-9]+h?) \|.*/\1/p' "$list"
}

# A row has a state, what is built has a file, and what is done has a test.
# shellcheck disable=SC2016 # backticks of Markdown
unfounded() {
	grep -E '^\| [A-Z]{2}-E?[0-9]+h? \|' "$list" | awk -F' *[|] *' '
		$4 !~ /^(done|switch|n\/a)/ { print $2 ": no state: " $4 }
		$4 ~ /^(done|switch)/ && $5 !~ /`/ { print $2 ": no file" }
		$4 ~ /^(done|switch)/ && $6 !~ /`/ { print $2 ": no test" }'
}

cited() {
	local id
	while read -r id; do
		listed | grep -qx -- "$id" || echo "$id is cited in $(grep -rlE "\b${id/-/[-_]}\b" core preload tools tests include docs | head -n 3 | tr '\n' ' ')and is not in $list"
	done < <(grep -rhoE '\b(RB|XR|HA|LN|SD|RX|CP|PF)[-_]E?[0-9]+h?(_|\b)' --include='*.[ch]' --include='*.sh' --include='*.py' \
		--include='*.md' core preload tools tests include docs | sed 's/_$//; s/_/-/' | sort -u)
}

report "files that are named exist" "$(missing)"
report "functions that are named are in their files" "$(strangers)"
report "variables that are named exist" "$(variables)"
report "each ID has one row" "$(listed | sort | uniq -d)"
report "each row has a state, and where it is built a file and a test" "$(unfounded)"
report "IDs that sources cite have a row" "$(cited)"
echo "1..$tests"
exit $((failures > 0))
