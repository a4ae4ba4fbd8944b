#!/bin/bash
# SPDX-License-Identifier: MIT
# Rules: lines of shunt.conf, SHUNT_RULES and `shunt adm PROCESS rules`, each by the connections that it decides.
set -u
. "${top_srcdir:?}/tests/lib.sh"

expect 0 python3 "$top_srcdir/tests/rules.py" "$shunt" "$top_builddir/.libs/libshunt.so" "$work"

# A wrong line is named with file and line.
printf 'rule port=1 tcp\nrule port=x tcp\n' >"$work/conf"
chmod 644 "$work/conf"
expect 2 env SHUNT_CONF="$work/conf" "$shunt" config
has "$err" "^shunt config: $work/conf:2: 'x': port is a port"

# The others are shown as they are understood, and SHUNT_RULES takes their place.
printf 'rule tcp port=1-1 # one\nrule link\n' >"$work/conf"
expect 0 env SHUNT_CONF="$work/conf" "$shunt" config
has "$out" '^rule port=1 tcp$'
expect 0 env SHUNT_CONF="$work/conf" "$shunt" config --json
has "$(tr -d ' \n' <<<"$out")" '"rules":\["ruleport=1tcp","rulelink"\]'
expect 0 env SHUNT_CONF="$work/conf" SHUNT_RULES=off "$shunt" config
lacks "$out" '^rule'
finish
