#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt report: one file that its owner alone may read, that overwrites nothing, and that holds everything but what
# connections carry, secrets, other variables, and with --anonymous addresses.
set -u
. "${top_srcdir:?}/tests/lib.sh"
end=$top_srcdir/tests/doctor_end.py
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; scratch_remove' EXIT

mkfifo "$work/held" && exec {held}<>"$work/held"

# start COMMAND...: runs it until the test ends; its first line is in $said, its process id in $pid.
start() {
	local in
	exec {in}< <(exec "$@" <&"$held" 2>"$work/said.err")
	pid=$!
	read -r said <&"$in" || problem "$*: $(cat "$work/said.err")"
	pids+=("$pid")
}

# unpack FILE: its files are below $work/all, and all their bytes in $work/bytes.
unpack() {
	rm -rf "$work/all" && mkdir "$work/all"
	tar xf "$1" -C "$work/all" || problem "tar: $1"
	files=$work/all/shunt-report
	cat "$1" >"$work/bytes"
}

# without TEXT: it is nowhere in the report.
without() {
	! grep -qaF -- "$1" "$work/bytes" || problem "the report has $1"
}

expect 0 "$shunt" report --help
expect 2 "$shunt" report --wrong
expect 2 "$shunt" report something

# Two ends, with a secret each way: on the link, in a file, in variables.
ip address add 10.77.0.1/32 dev lo 2>/dev/null && export END_HOST=10.77.0.1
head -c 24 /dev/urandom | base64 | tr -d '\n/+' >"$work/key" && chmod 600 "$work/key"
export SHUNT_TRACE=0 SHUNT_TUNE=slow_us=1 SHUNT_KEY=$work/key SHUNT_PASSPHRASE=hidden-word-1 PASSWORD=hidden-word-2
start "$shunt" run python3 "$end" server
port=$said server=$pid
start env SHUNT_TUNE=slow_us=1,spin_us=7 "$shunt" run python3 "$end" client "$port" payload-of-the-program
client=$pid
read -r own other <<<"$said"
until "$shunt" stat --json "$client" 2>/dev/null | grep -q '"state": "linked"'; do
	kill -0 "$client" 2>/dev/null || { problem "the client has ended" && break; }
	sleep 0.05
done

expect 0 "$shunt" report -o "$work/one.tar"
listed=$(sed -nE 's/^ +[0-9]+  //p' <<<"$out" | sort)
[ "$listed" = "$(tar tf "$work/one.tar" | sort)" ] || problem "the list and the tar differ: $listed"
[ "$(stat -c %a "$work/one.tar")" = 600 ] || problem "the mode is $(stat -c %a "$work/one.tar")"
unpack "$work/one.tar"
for file in versions.txt devices.json doctor.json stat.json environment.txt limits.txt sockets.txt \
	"processes/$server/limits" "processes/$client/status" "processes/$client/maps" "processes/$client/namespaces.txt" \
	"processes/$client/log.json" "processes/$server/trace.json"; do
	[ -s "$files/$file" ] || problem "there is no $file"
done
has "$(cat "$files/processes/$client/environment.txt")" '^SHUNT_TUNE=slow_us=1,spin_us=7$'
has "$(cat "$files/processes/$client/environment.txt")" '^SHUNT_PASSPHRASE=\(not shown\)$'
has "$(cat "$files/processes/$client/maps")" 'libshunt.so'
lacks "$(cat "$files/processes/$client/maps")" 'python3'
for json in "$files"/*.json "$files"/processes/*/*.json; do
	python3 -m json.tool "$json" >/dev/null || problem "no JSON: $json"
done
python3 -c '
import json, sys
stat, doctor = (json.load(open(name)) for name in sys.argv[1:3])
pids = {int(pid) for pid in sys.argv[3:5]}
assert {process["pid"] for process in stat} >= pids, stat
assert {process["pid"] for process in doctor["processes"]} >= pids, doctor
assert any(stream["local"] == sys.argv[5] and stream["state"] == "linked"
           for process in stat for stream in process["streams"]), stat
' "$files/stat.json" "$files/doctor.json" "$server" "$client" "$own" || problem "the statistics or the doctor lack a process"
without payload-of-the-program
without "$(cat "$work/key")"
without hidden-word

# Nothing is overwritten, and no link followed.
cp "$work/one.tar" "$work/copy"
expect 1 "$shunt" report -o "$work/one.tar"
has "$err" 'File exists'
cmp -s "$work/one.tar" "$work/copy" || problem "the file was overwritten"
ln -s "$work/elsewhere" "$work/link"
expect 1 "$shunt" report -o "$work/link"
[ ! -e "$work/elsewhere" ] || problem "a link was followed"
expect 1 "$shunt" report -o "$work/nowhere/x.tar"
expect 1 "$shunt" report -o /dev/full

# A name of its own, and the list as JSON.
expect 0 env -C "$work" "$(realpath "$shunt")" report --json
file=$(python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["schema"] == 1 and d["entries"]; print(d["file"])' <<<"$out")
[ -s "$work/$file" ] || problem "there is no $file"

# A secret in the place of its file.
expect 0 env SHUNT_KEY=hidden-word-3 "$shunt" report -o "$work/two.tar"
unpack "$work/two.tar"
without hidden-word
has "$(cat "$files/environment.txt")" '^SHUNT_KEY=\(not shown\)$'

# Addresses have names, the same in all files.
expect 0 "$shunt" report --anonymous -o "$work/three.tar"
unpack "$work/three.tar"
if [ "${END_HOST:-}" ]; then
	without 10.77.0.1
	has "$(cat "$files/stat.json")" "\"host[0-9]+:${own##*:}\""
	name=$(grep -oE "host[0-9]+:${own##*:}" "$files/stat.json" | head -n 1)
	has "$(cat "$files/stat.json")" "${name%:*}:${other##*:}"
fi

# Another user's report has nothing of these processes.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" && mkdir -p "$work/pub/tools" "$work/pub/.libs" && mkdir -m 777 "$work/theirs" && chmod 777 "$work/theirs"
	cp "$shunt" "$work/pub/tools" && cp "$top_builddir/.libs/libshunt.so" "$work/pub/.libs"
	expect 0 env -u SHUNT_KEY setpriv --reuid=65534 --regid=65534 --clear-groups "$work/pub/tools/shunt" report -o "$work/theirs/x.tar"
	unpack "$work/theirs/x.tar"
	[ ! -e "$files/processes" ] || problem "another user has $(ls "$files/processes")"
	without "$own"
fi
finish
