#!/bin/bash
# SPDX-License-Identifier: MIT
# libshunt.so exports the calls of preload/calls.h and nothing else, and needs nothing but libc.
set -eu

calls=${top_srcdir:?}/preload/calls.h
library=${top_builddir:?}/.libs/libshunt.so
# shellcheck source-path=SCRIPTDIR source=scratch.sh
. "$top_srcdir/tests/scratch.sh"
scratch exports
work=$scratch

[ -f "$calls" ] || { echo "there is no $calls"; exit 77; }

cat >"$work/names.c" <<-'END'
	#include "preload/calls.h"
	#define ROW(ret, name, ...) CALL #name
	SHUNT_CALLS(ROW)
	SHUNT_OWN_CALLS(ROW)
	SHUNT_API_CALLS(ROW)
END
$CC -E -P -I"$top_srcdir" -I"$top_srcdir/include" "$work/names.c" |
	grep -o 'CALL "[a-zA-Z0-9_]*' | cut -d'"' -f2 | sort >"$work/table"
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort >"$work/exports"

[ -s "$work/table" ] || { echo "no calls found in $calls"; exit 1; }
sort -c -u "$work/table" || { echo "a call is in the table twice"; exit 1; }
diff -u --label table --label exports "$work/table" "$work/exports" || exit 1

objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }' |
	grep -vE '^(libc\.so\.|ld-linux|lib(a|ub|t)san\.so\.|libgcc_s\.so\.)' >"$work/needed" || true
[ ! -s "$work/needed" ] || { echo "needs more than libc:"; cat "$work/needed"; exit 1; }
echo "$(wc -l <"$work/table") calls"
