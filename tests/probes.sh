#!/bin/bash
# SPDX-License-Identifier: MIT
# Probes (core/trace/probe.h): the library has those of the table in docs/dev/DEBUGGING.md and no others, and the example of
# contrib/ traces all of them. TAP.
set -u
cd "${top_srcdir:-"$(dirname "$0")/.."}" || exit
build=${top_builddir:-build}
grep -q -- '-DSHUNT_USDT=1' "$build/Makefile" || { echo "1..0 # SKIP built without sys/sdt.h"; exit 77; }
command -v readelf >/dev/null || { echo "1..0 # SKIP there is no readelf"; exit 77; }
tests=0
failures=0

same() { # NAME, THE ONE LIST, THE OTHER
	tests=$((tests + 1))
	if [ -n "$2" ] && [ "$2" = "$3" ]; then
		echo "ok $tests - $1"
	else
		failures=$((failures + 1))
		echo "not ok $tests - $1"
		printf '# %s\n# %s\n' "${2//$'\n'/ }" "${3//$'\n'/ }"
	fi
}

documented=$(sed -nE 's/^\| `shunt:(\w+)\(.*/\1/p' docs/dev/DEBUGGING.md | sort)
# shellcheck disable=SC2016 # the table's backticks
arguments=$(sed -nE 's/^\| `shunt:(\w+)\(([^)]*)\)`.*/\1 \2/p' docs/dev/DEBUGGING.md | awk '{ print $1, NF - 1 }' | sort)
notes=$(readelf -nW "$build/.libs/libshunt.so")
same "the library has the probes of the table" "$documented" \
	"$(sed -nE '/Provider: shunt$/{n;s/.*Name: //p}' <<<"$notes" | sort -u)"
same "with as many arguments" "$arguments" \
	"$(awk '/Name:/ { name = $2 } /Arguments:/ { print name, NF - 1 }' <<<"$notes" | sort -u)"
same "the sources have no others" "$documented" \
	"$(grep -rhoE 'SHUNT_PROBE[0-9]\(\w+' core preload --include=*.c | sed 's/.*(//' | sort -u)"
same "the example has all of them" "$documented" \
	"$(sed -nE 's/^usdt:.*:shunt:(\w+)$/\1/p' contrib/bpftrace/shunt.bt.in | sort -u)"

# Where bpftrace may ask the kernel, it finds them in the library, too.
listed=$(bpftrace -l "usdt:$(realpath "$build/.libs/libshunt.so"):shunt:*" 2>/dev/null) || listed=
if [ -n "$listed" ]; then
	same "bpftrace lists them" "$documented" "$(grep -o '[^:]*$' <<<"$listed" | sort -u)"
else
	echo "# bpftrace is not there, or may not run"
fi
echo "1..$tests"
exit $((failures > 0))
