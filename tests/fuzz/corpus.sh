#!/bin/bash
# SPDX-License-Identifier: MIT
# Every fuzzer with the inputs of corpus/ and regress/: what was interesting once, and what was a bug once. TAP.
set -u
build=${top_builddir:-.}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d) || exit
trap 'rm -rf "$work"' EXIT
n=0

for inputs in "$here"/corpus/*/; do
	name=$(basename "$inputs")
	n=$((n + 1))
	if find "$inputs" "$here/regress/$name" -type f -print0 2> /dev/null |
		xargs -0 "$build/tests/fuzz/$name" > "$work/said" 2>&1; then
		echo "ok $n - $name: $(find "$inputs" "$here/regress/$name" -type f 2> /dev/null | wc -l) inputs"
	else
		tail -n 40 "$work/said" | sed 's/^/# /'
		echo "not ok $n - $name"
		failed=1
	fi
done
echo "1..$n"
[ -z "${failed-}" ]
