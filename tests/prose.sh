#!/bin/bash
# SPDX-License-Identifier: MIT
# The prose rule (CONTRIBUTING.md), as far as prose.py can tell: documents, the manual page, and what the log, reasons and
# variables say to people; and the comments of the sources, each folder with so many long sentences at most.
# prose.sh FILE...: these alone. TAP.
set -u
cd "${top_srcdir:-"$(dirname "$0")/.."}" || exit
command -v python3 >/dev/null || { echo "1..0 # SKIP python3 is missing"; exit 77; }
tests=0
failures=0

check() { # NAME FILE...
	local name=$1 said
	shift
	tests=$((tests + 1))
	if said=$(python3 tests/prose.py "$@"); then
		echo "ok $tests - $name"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $name"
	fi
	printf '# %s\n' "${said//$'\n'/$'\n'# }"
}

if [ $# -gt 0 ]; then
	check "$*" "$@"
else
	for file in README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/dev/*.md tests/README.md tests/lab/README.md man/*.in; do
		check "$file" "$file"
	done
	mapfile -t tables < <(find core -name reason_table.h -o -name config_table.h -o -name tune_table.h | sort)
	mapfile -t sources < <(find core preload -name '*.c' | sort)
	check "reasons and variables" "${tables[@]}"
	check "messages" "${sources[@]}"
	while read -r folder long; do
		mapfile -t sources < <(find "$folder" -name '*.[ch]' | sort)
		check "comments in $folder" --comments "$long" "${sources[@]}"
	done <<-end
		core 10
		preload 2
		include 1
		tools 5
		tests 10
	end
fi
echo "1..$tests"
exit $((failures > 0))
