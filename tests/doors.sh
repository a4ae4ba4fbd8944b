#!/bin/bash
# SPDX-License-Identifier: MIT
# Doors of processes that mean no good to who asks there: each of the tools comes to its end. With SO_PASSRIGHTS, and without it.
set -u
. "${top_srcdir:?}/tests/lib.sh"
fakes=()
trap 'kill "${fakes[@]}" 2>/dev/null; scratch_remove' EXIT

# fake DOOR HOW: its process id is $fake, its port $port.
fake() {
	local in
	exec {in}< <(exec python3 "$top_srcdir/tests/doors_fake.py" "$@")
	read -r fake port <&"$in" || problem "no $*"
	fakes+=("$fake")
}

# ends COMMAND…: whatever it says. Its own deadline is 5 s for a look; what hangs takes hours.
ends() {
	local status=0
	timeout -s KILL 100 "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	out=$(cat "$work/out")
	err=$(cat "$work/err")
	[ "$status" -lt 124 ] || problem "$*: does not end: $status $out $err"
}

for how in lingers lingers-later lingers-behind; do
	fake stat "$how" && stat=$fake
	fake adm "$how" && adm=$fake
	fake tcp "$how"
	for kernel in "" "$top_builddir/tests/calls/lacking passrights"; do
		# shellcheck disable=SC2086 # several words
		{
			ends $kernel "$shunt" stat
			ends $kernel "$shunt" stat "$stat"
			ends $kernel "$shunt" log
			ends $kernel "$shunt" adm "$adm" help
			ends $kernel "$shunt" doctor
			ends $kernel "$shunt" ping -c 1 -W 1 "127.0.0.1:$port"
		}
	done
	kill "${fakes[@]}"
	fakes=()
done
finish
