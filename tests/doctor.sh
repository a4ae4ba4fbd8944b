#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt doctor names what is wrong: settings, limits, policies, a library that cannot be loaded, programs that no library
# gets into, peers without Shunt, connections that bypass it, other users' processes. It finds nothing where all is well.
set -u
. "${top_srcdir:?}/tests/lib.sh"
end=$top_srcdir/tests/doctor_end.py
library=$top_builddir/.libs/libshunt.so
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; scratch_remove' EXIT

# Ends read from it until they are killed.
mkfifo "$work/held" && exec {held}<>"$work/held"

# start COMMAND...: runs it until the test ends; its first line is in $said, its process id in $pid.
start() {
	local in
	exec {in}< <(exec "$@" <&"$held" 2>"$work/said.err")
	pid=$!
	read -r said <&"$in" || problem "$*: $(cat "$work/said.err")"
	pids+=("$pid")
}

# await PID STATE: its connection gets to it in the background.
await() {
	until "$shunt" stat --json "$1" 2>/dev/null | grep -q "\"state\": \"$2\""; do
		kill -0 "$1" 2>/dev/null || { problem "process $1 has ended" && return; }
		sleep 0.05
	done
}

# row GRADE CHECK PATTERN: among the rows in $out, whose lines are joined.
row() {
	has "$(sed -E ':a;N;$!ba;s/\n {21,}/ /g' <<<"$out")" "^  $1 +$2 .*$3"
}

expect 0 "$shunt" doctor --help
expect 2 "$shunt" doctor --wrong
expect 2 "$shunt" doctor abc
expect 2 "$shunt" doctor 0
expect 2 "$shunt" doctor --connection 127.0.0.1:1
expect 2 "$shunt" doctor --connection 127.0.0.1 127.0.0.1:1
expect 1 "$shunt" doctor 2147483647
row bad access 'no such process'

# A plan looks at nothing.
expect 2 "$shunt" doctor --plan peers=2
expect 2 "$shunt" doctor --plan connections=0
expect 2 "$shunt" doctor --plan connections=2,peers=3
expect 2 "$shunt" doctor --plan connections=2,device=card
expect 2 "$shunt" doctor --plan connections=2 $$
expect 0 bash -c "ulimit -n 200; exec '$shunt' doctor --plan connections=100"
row ok links '1 with 1 queue pairs'
row ok memlock 'not locked'
row ok nofile 114
expect 1 bash -c "ulimit -n 100; exec '$shunt' doctor --plan connections=100"
row bad nofile '114.* do: raise ulimit -n.* from 100$'
expect 1 bash -c "ulimit -l 4096; exec '$shunt' doctor --plan connections=1,device=verbs"
row bad memlock '7.6 MiB of locked memory in 2 regions.* do: raise ulimit -l'
# 64 completion queues have room for 2,048 lanes.
many=(bash -c "ulimit -n 4096; SHUNT_TUNE=lanes=8 exec '$shunt' doctor --plan connections=300,peers=300 \"\$@\"" bash)
expect 0 "${many[@]}"
row warn links '256 with 2048 queue pairs.* do: 44 connections stay on TCP'
expect 1 "${many[@]}" --strict
# Settings by which nothing has room.
expect 0 env SHUNT_TUNE=ring_min=64M,ring_max=64M,mr=64M,arena=16M "$shunt" doctor --plan connections=2
row warn links 'for 0 connections.* do: 2 connections stay on TCP'
expect 1 env SHUNT_TUNE=ring_min=64K,ring_max=64K,mr=64K bash -c "ulimit -l 4096; exec '$shunt' doctor --plan connections=100,device=verbs"
row bad memlock '16.1 MiB of locked memory in 201 regions'
expect 0 "$shunt" doctor --plan connections=256,peers=40,sets=4 --json
[ "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["schema"], d["links"], d["queue_pairs"], d["locked"]["used"])' <<<"$out")" = "1 40 103 0" ] ||
	problem "the JSON of a plan: $out"

# A machine and a shell where all is well.
expect 0 "$shunt" doctor
narrow "$out"
row ok library "$library"
row ok kernel Linux
row ok setting 'are valid'
expect 0 "$shunt" doctor --json
[ "$(python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["schema"], d["processes"])' <<<"$out")" = "1 []" ] ||
	problem "the JSON: $out"

# Settings of the shell.
expect 1 env SHUNT_TUNE=spin_us=abc "$shunt" doctor
row bad setting 'spin_us'
expect 0 env SHUNT_SPINUS=1 "$shunt" doctor
row warn setting 'no variable SHUNT_SPINUS; is it SHUNT_TUNE=spin_us'
expect 1 env SHUNT_SPINUS=1 "$shunt" doctor --strict
expect 0 env SHUNT_TUNE=poll=event,spin_us=9 "$shunt" doctor
row warn setting 'spin_us has no effect'
expect 1 env SHUNT_ENABLE=0 "$shunt" doctor
row bad policy 'SHUNT_ENABLE=0'
expect 1 env SHUNT_DEVICE=none "$shunt" doctor
row bad policy 'SHUNT_DEVICE=none'
expect 0 env SHUNT_MOCK=tcp SHUNT_FAULT=delay:us=1 "$shunt" doctor
row warn policy 'SHUNT_MOCK=tcp.* do: shunt adm'
row warn policy 'SHUNT_FAULT'
expect 1 env SHUNT_KEY="$work/none" "$shunt" doctor
row bad key 'No such file'
head -c 32 /dev/urandom >"$work/key" && chmod 644 "$work/key"
expect 1 env SHUNT_KEY="$work/key" "$shunt" doctor
row bad key 'others than .* have rights to it'
chmod 600 "$work/key"
expect 0 env SHUNT_KEY="$work/key" "$shunt" doctor
row ok key 'good file'
mkdir -m 777 "$work/dir" && chmod 777 "$work/dir"
expect 1 env SHUNT_DIR="$work/dir" "$shunt" doctor
row bad dir 'not sticky'
chmod 1777 "$work/dir"
expect 0 env SHUNT_DIR="$work/dir" "$shunt" doctor
row ok dir "$work/dir"

# Limits and filters of the shell.
expect 0 bash -c "ulimit -n 64; exec '$shunt' doctor"
row warn nofile '64 descriptors only.* do: raise ulimit -n'
# A sanitizer needs address space.
if ! grep -q -- '-fsanitize=[a-z,]*address' "$top_builddir/Makefile"; then
	expect 0 bash -c "ulimit -v 900000; exec '$shunt' doctor"
	row warn space 'ulimit -v unlimited'
fi
expect 0 "$top_builddir/tests/calls/lacking" netlink "$shunt" doctor
row warn sock_diag 'do: allow AF_NETLINK'

# A library that cannot be loaded.
# shellcheck disable=SC2016 # the inner shell expands it
if unshare --mount sh -c 'mount -t tmpfs -o noexec none "$1"' sh "$work" 2>/dev/null; then
	mkdir -p "$work/tree/tools" "$work/tree/.libs"
	cp "$shunt" "$work/tree/tools"
	expect 1 "$work/tree/tools/shunt" doctor
	row bad library 'make install'
	expect 1 unshare --mount sh -c 'mount -t tmpfs -o noexec none "$1/.libs" && cp "$2" "$1/.libs" &&
		exec "$1/tools/shunt" doctor' sh "$work/tree" "$library"
	row bad library 'cannot be loaded.* do: .*noexec'
fi

# A folder for all users on the file system of /run, and one of its own, as the unit mounts it.
options=$(sed -n 's/^Options=//p' "$top_srcdir/contrib/systemd/run-shunt.mount")
# shellcheck disable=SC2016 # the inner shell expands it
if unshare --mount sh -c 'mount -t tmpfs -o mode=755 none /run && mkdir -m 1777 /run/shunt' 2>/dev/null; then
	expect 0 unshare --mount sh -c 'mount -t tmpfs -o mode=755 none /run && mkdir -m 1777 /run/shunt && exec "$1" doctor' sh "$shunt"
	row warn run 'which any user can fill there.* do: mount a small tmpfs'
	expect 0 unshare --mount sh -c 'mount -t tmpfs -o mode=755 none /run && mkdir /run/shunt && mount -t tmpfs -o "$2" none /run/shunt &&
		[ "$(stat -c %u:%a /run/shunt)" = 0:1777 ] && ! head -c 2M /dev/zero 2>/dev/null >/run/shunt/full && : >/run/not-full &&
		exec "$1" doctor' sh "$shunt" "$options"
	row ok run 'no other user can take a name'
fi

# A connection on the link, and everything about its ends.
start "$shunt" run python3 "$end" server
server=$pid port=$said
start "$shunt" run python3 "$end" client "$port"
client=$pid
read -r own other <<<"$said"
await "$client" linked
await "$server" linked
expect 0 "$shunt" doctor "$server" "$client"
row ok version 'as this command'
row ok engine 'device soft'
row ok connections '1, of which 1 on a link'
lacks "$out" '^  (warn|bad) +connection '
expect 0 "$shunt" doctor --connection "$own" "$other"
row ok connection "$own $other is on the link"
expect 0 "$shunt" doctor --connection "$other" "$own"
expect 0 "$shunt" doctor --all
has "$out" "^process $server, python3"
has "$out" "^process $client, python3"
expect 1 "$shunt" doctor --connection "$own" 127.0.0.1:1
row bad connection 'no process'

# The operator's word.
expect 0 "$shunt" adm "$client" mock tcp
expect 0 "$shunt" doctor "$client"
row warn connection "$own $other: .*operator.* do: shunt adm"
expect 0 "$shunt" adm "$client" mock auto

# A peer without Shunt, at either end.
start python3 "$end" server
plain=$pid
start env SHUNT_TUNE=claim_ms=10 "$shunt" run python3 "$end" client "$said"
shunted=$pid
read -r own other <<<"$said"
expect 0 "$shunt" doctor "$shunted"
await "$shunted" plain
row warn connection "$own $other: the peer runs without Shunt \(the peer: python3, process $plain of user .* do: start it with .shunt run"
expect 1 "$shunt" doctor --connection "$own" "$other"
expect 1 "$shunt" doctor --strict "$shunted"
expect 1 "$shunt" doctor "$plain"
row bad library 'started without the library'
row warn connection "$other $own: .*the peer says: the peer runs without Shunt"

# What strangers have of a process.
start "$shunt" run python3 "$top_srcdir/tests/stat_fake.py" strangers
"$shunt" doctor "$pid" >"$work/out"
out=$(cat "$work/out")
row warn strangers 'have 3 of 64 links, 1 of 256 of them unproven, 0 of 64 co-listeners, 6 of 8192 GiB of addresses; 17 were refused.* do: '
kill "$pid"	# it answers anybody

# Settings of a process.
start env SHUNT_ENABLE=0 "$shunt" run python3 "$end" client "$port"
expect 1 "$shunt" doctor "$pid"
row bad policy 'SHUNT_ENABLE=0'
read -r own other <<<"$said"
expect 0 "$shunt" doctor "$server"
row warn connection "$other $own: the peer was started with SHUNT_ENABLE=0"
start env LD_PRELOAD="$library" SHUNT_TUNE=spin_us=abc SHUNT_X=1 python3 "$end" client "$port"
expect 1 "$shunt" doctor "$pid"
row bad setting spin_us
row warn setting SHUNT_X

# The process is asked for memory and descriptors by its own limits.
start bash -c "ulimit -n 64; exec '$shunt' run python3 '$end' client $port"
expect 0 "$shunt" doctor "$pid"
row warn nofile 'of 64 descriptors'

# A connection that a program has inherited bypasses Shunt.
start "$shunt" run python3 "$end" exec "$port"
read -r own other <<<"$said"
expect 0 "$shunt" doctor "$pid"
row warn connection "$own $other \(socket [0-9]+\): .*(bypasses Shunt|does not answer)"

# A stopped one cannot be asked.
start "$shunt" run python3 "$end" client "$port"
kill -STOP "$pid"
until grep -q '^State:.*(stopped)' "/proc/$pid/status"; do sleep 0.01; done
"$shunt" doctor "$pid" >"$work/out"
out=$(cat "$work/out")
row warn engine 'it is stopped, by a signal or a debugger'
row warn connections '[0-9]+; it could not be asked'
kill -CONT "$pid"

# Programs that no library gets into.
cc=${CC:-cc}
if $cc -static -o "$work/static" "$top_srcdir/tests/doctor_plain.c" 2>/dev/null; then
	start "$shunt" run "$work/static" "$port"
	expect 1 "$shunt" doctor "$pid"
	row bad program 'statically linked'
	read -r own other <<<"$said"
	expect 0 env SHUNT_TUNE=claim_ms=10 "$shunt" doctor "$server"
	row warn connection "$other $own: the peer runs without Shunt, and cannot run with it: it is statically linked"
fi
$cc -DLIKE_GO -o "$work/go" "$top_srcdir/tests/doctor_plain.c" || problem "no program that looks like one of Go"
start "$shunt" run "$work/go" "$port"
expect 0 "$shunt" doctor "$pid"
row warn program 'Go program \(no version\), and its table of functions'

# Its real user is another, as that of a worker of squid.
if [ "$(id -u)" = 0 ]; then
	start "$shunt" run python3 -c 'import os, sys; os.setresuid(65534, 0, 0); os.execvp(sys.argv[1], sys.argv[1:])' \
		python3 "$end" client "$port"
	expect 1 "$shunt" doctor "$pid"
	row bad program 'rights of its own \(AT_SECURE\), so LD_PRELOAD is ignored'
	read -r own other <<<"$said"
	expect 0 env SHUNT_TUNE=claim_ms=10 "$shunt" doctor "$server"
	row warn connection "$other $own: the peer runs without Shunt, and cannot run with it: it was started with rights of its own"
fi

# A library that was replaced after the start, and one of another version.
mkdir "$work/old"
cp "$library" "$work/old/libshunt.so"
version=$("$shunt" --version | cut -d ' ' -f 2)
sed -i "s/${version//./\\.}/9${version:1}/g" "$work/old/libshunt.so"
start env LD_PRELOAD="$work/old/libshunt.so" python3 "$end" client "$port"
read -r own other <<<"$said"
rm "$work/old/libshunt.so"
expect 0 "$shunt" doctor "$pid"
row warn library 'replaced or removed'
row warn version "version 9${version:1}, and this command is $version"

# Another user sees nothing of it.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" && mkdir -p "$work/pub/tools" "$work/pub/.libs"
	cp "$shunt" "$work/pub/tools" && cp "$library" "$work/pub/.libs"
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	expect 1 "${as_nobody[@]}" "$work/pub/tools/shunt" doctor "$server"
	row bad access 'only its user and root may'
	lacks "$out" "python3|$other"
	expect 0 "${as_nobody[@]}" "$work/pub/tools/shunt" doctor --all
	lacks "$out" "process $server"
	expect 1 "${as_nobody[@]}" "$work/pub/tools/shunt" doctor --connection "$own" "$other"
	lacks "$out" 'python3'
	# Of its own it sees all.
	cp "$end" "$work/pub/end.py"
	start "${as_nobody[@]}" "$work/pub/tools/shunt" run python3 "$work/pub/end.py" client "$port"
	expect 0 "${as_nobody[@]}" "$work/pub/tools/shunt" doctor "$pid"
	row ok connections '1, of which'
	row ok version 'as this command'
fi
finish
