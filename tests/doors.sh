#!/bin/bash
# SPDX-License-Identifier: MIT
# Doors of processes that mean no good to who asks there: each of the tools comes to its end. With SO_PASSRIGHTS, and without it.
set -u
. "${top_srcdir:?}/tests/lib.sh"
fakes=()
trap 'kill "${fakes[@]}" 2>/dev/null; scratch_remove' EXIT

# Another user, where that can be had. An equal may do anything to our own engine, which ping has.
stranger=()
python=python3
other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
for candidate in /usr/bin/python3 python3; do
	if [ "$(id -u)" = 0 ] && "${other[@]}" "$candidate" -c 'open("'"$top_srcdir"'/tests/reach/enemy.py")' 2>/dev/null; then
		stranger=("${other[@]}")
		python=$candidate
		break
	fi
done

# fake DOOR HOW: its process id is $fake, its port $port.
fake() {
	local in
	exec {in}< <(exec "${stranger[@]}" "$python" "$top_srcdir/tests/doors_fake.py" "$@")
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
	[ ${#stranger[@]} = 0 ] || fake tcp "$how"
	for kernel in "" "$top_builddir/tests/calls/lacking passrights"; do
		# shellcheck disable=SC2086 # several words
		{
			ends $kernel "$shunt" stat
			ends $kernel "$shunt" stat "$stat"
			ends $kernel "$shunt" trace slow
			ends $kernel "$shunt" adm "$adm" help
			ends $kernel "$shunt" doctor
			[ ${#stranger[@]} = 0 ] || ends $kernel "$shunt" ping -c 1 -W 1 "127.0.0.1:$port"
		}
	done
	kill "${fakes[@]}"
	fakes=()
done
# Who asks one process by its number comes to no other's door: that may be full, or silent.
fakes=()
python3 "$top_srcdir/tests/doors_fake.py" stat counts >"$work/stat" &
fakes+=($!)
python3 "$top_srcdir/tests/doors_fake.py" adm counts >"$work/adm" &
fakes+=($!)
for door in stat adm; do
	until grep -q . "$work/$door"; do sleep 0.05; done
done
mkfifo "$work/held" && exec {held}<>"$work/held"
exec {in}< <(exec "$shunt" run python3 "$top_srcdir/tests/doctor_end.py" server <&"$held")
fakes+=($!)
read -r port <&"$in"
server=${fakes[-1]}
expect 0 "$shunt" stat "$server"
has "$out" "pid $server"
expect 0 "$shunt" trace slow "$server"
expect 0 "$shunt" adm "$server" help
ends "$shunt" ping -c 1 -W 1 "127.0.0.1:$port"
for door in stat adm; do
	lacks "$(cat "$work/$door")" came
done

# asked HOW: how many doors of one stranger a look asks.
asked() {
	local in told
	mkfifo "$work/told" && exec {told}<>"$work/told"
	exec {in}< <(ulimit -n 6000 && exec "${stranger[@]}" "$python" "$top_srcdir/tests/doors_fake.py" stat "$1" <"$work/told" {told}>&-)
	read -r fake _ <&"$in"
	fakes+=("$fake")
	ends "$shunt" stat
	exec {told}>&-
	rm "$work/told"
	read -r asked <&"$in"
}

# Of one stranger 4,096 doors are asked, and 256 at a time: silent ones have their time together.
if [ ${#stranger[@]} = 0 ] || { [ "$(ulimit -Hn)" != unlimited ] && [ "$(ulimit -Hn)" -lt 6000 ]; }; then
	echo "not tested: a stranger with more than 4,096 doors"
else
	asked many
	[ "$asked" -le 4096 ] || problem "$asked doors of one stranger are asked"
	asked crowd
	[ "$asked" = 256 ] || problem "$asked silent doors of one stranger are asked"
fi

# The memory of who asks is bounded, whatever comes. A sanitizer needs more.
# shellcheck disable=SC2317 # expect calls it
most() {
	python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=False)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, "MB")' "$@"
}
if ! grep -q -- '-fsanitize=[a-z,]*address' "$top_builddir/Makefile"; then
	exec {in}< <(exec python3 "$top_srcdir/tests/stat_fake.py" larger)
	read -r large <&"$in"
	fakes+=("$large")
	expect 0 most "$shunt" stat "$large"
	has "$err" "process $large: its streams are left out"
	[ "$(awk '/ MB$/ { print $(NF - 1) }' <<<"$out")" -lt 300 ] || problem "memory: $out"
fi
finish
