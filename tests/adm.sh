#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt adm: commands, the ways to ask wrongly, clients that are slow or hostile, and other users.
# shellcheck disable=SC2317	# functions are called by name
set -u
. "${top_srcdir:?}/tests/lib.sh"
transfer=$top_builddir/tests/calls/transfer/transfer

# A server that waits for its client: its engine is there, and nothing else happens.
start_waiting

expect 0 "$shunt" adm "$server" help
has "$out" '^set NAME VALUE$'
expect 0 "$shunt" adm "$server" set spin_us 7
has "$out" '^spin_us=7$'

# Refused by the process, in one line that says why.
for words in "wrong" "help me" "set spin_us 7us" "set rq 64" "set SHUNT_NONE 1"; do
	# shellcheck disable=SC2086
	expect 1 "$shunt" adm "$server" $words
	has "$err" "^shunt adm: process $server: "
	[ "$(wc -l <<<"$err")" = 1 ] || problem "not one line: $err"
done
expect 1 "$shunt" adm "$server" "set  spin_us 7"
expect 1 "$shunt" adm "$server" $'help\n'

# Refused before it is asked.
expect 2 "$shunt" adm
expect 2 "$shunt" adm "$server"
expect 2 "$shunt" adm abc help
expect 2 "$shunt" adm 0 help
expect 2 "$shunt" adm -1 help
expect 2 "$shunt" adm "$server" "$(printf '%600s' x)"
expect 0 "$shunt" adm --help
expect 1 "$shunt" adm $$ help
has "$err" 'runs without Shunt|may not be examined'
expect 1 "$shunt" adm 2147483647 help
has "$err" 'no such process'

descriptors() {
	find "/proc/$server/fd" -mindepth 1 | wc -l
}

# Clients that say nothing, too much, or nothing that is one: the others are answered all the same, and at once.
before=$(descriptors)
cat >"$work/hostile.py" <<'PYTHON'
import socket, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import door
name = door.find(sys.argv[1], "adm")
def come():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(name)
    s.settimeout(30)
    return s
def ask(text):
    s = come()
    s.send(text)
    return s.recv(5000)
silent = [come() for i in range(100)]
start = time.monotonic()
assert ask(b"help")[:1] == b"+"
assert time.monotonic() - start < 1, "the silent ones are waited for"
assert ask(b"x" * 100000)[:1] == b"-"
assert ask(b"help\0") [:1] == b"-"
assert ask(bytes(range(256)))[:1] == b"-"
rights = come()
try:                        # refused since Linux 6.16 (SO_PASSRIGHTS)
    socket.send_fds(rights, [b"help"], [0, 1, 2])
    assert rights.recv(5000)[:1] == b"+"
except PermissionError:
    rights.close()
for i in range(200):        # who does not wait for the answer
    s = come()
    s.send(b"help")
    s.close()
assert ask(b"help")[:1] == b"+"
PYTHON
expect 0 python3 "$work/hostile.py" "$server" "$top_srcdir/tests/calls"
expect 0 "$shunt" adm "$server" help
[ "$(descriptors)" -le "$before" ] || problem "$(descriptors) descriptors, $before before"

# Faults while it runs.
expect 0 "$shunt" adm "$server" fault "delay:us=5;seed=3"
expect 1 "$shunt" adm "$server" fault "kill:q=1"
has "$err" "rule 1 \(kill\): there is no key 'q'"
expect 0 "$shunt" adm "$server" fault
has "$out" 'no faults'

# Another user may neither read nor command; root may, whoever the process is of.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$work" && cp "$shunt" "$work/shunt"
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	expect 1 "${as_nobody[@]}" "$work/shunt" adm "$server" set spin_us 9
	has "$err" 'no answer|Connection reset|Broken pipe'
	expect 1 "${as_nobody[@]}" "$work/shunt" stat "$server"
	expect 0 "${as_nobody[@]}" "$work/shunt" stat
	lacks "$out" "pid $server"
	expect 0 "$shunt" stat "$server"
	cp "$top_builddir/.libs/libshunt.so" "$transfer" "$work"
	mkfifo "$work/other"
	LD_PRELOAD=$work/libshunt.so "${as_nobody[@]}" "$work/transfer" server -n 0 >"$work/other" 2>&1 &
	other=$!
	read -r _ _ <"$work/other"
	expect 0 "$shunt" adm "$other" set spin_us 9
	expect 0 "${as_nobody[@]}" "$work/shunt" adm "$other" set spin_us 9
	# All that nobody sees are nobody's.
	expect 0 "${as_nobody[@]}" "$work/shunt" adm --all set spin_us 9
	has "$out" "^$other +transfer +done "
	lacks "$out" "^$server "
	expect 1 "${as_nobody[@]}" "$work/shunt" adm --user root set spin_us 9
	has "$err" 'there is no such process that lets you in'
	expect 1 "${as_nobody[@]}" "$work/shunt" adm "$server" "$other" set spin_us 9
	has "$out" "^$other +transfer +done "
	has "$out" "^$server +[a-z-]+ +silent "
	expect 0 "$shunt" adm --user nobody set spin_us 9
	has "$out" "^$other +transfer +done "
	lacks "$out" "^$server "
	kill "$other"
	wait "$other" 2>/dev/null
fi

# Many at once: a row for each, in one table or one object.
mkfifo "$work/second"
"$shunt" run "$transfer" server -n 0 >"$work/second" 2>/dev/null &
second=$!
exec {second_fd}<"$work/second"
read -r _ _ <&"$second_fd"
expect 0 "$shunt" adm "$server" "$second" set spin_us 8
has "$out" '^PROCESS +PROGRAM +OUTCOME +ANSWER$'
has "$out" "^$server +transfer +done +spin_us=8$"
has "$out" "^$second +transfer +done +spin_us=8$"
expect 0 "$shunt" adm --program 'transf*' --user "$(id -u)" set spin_us 9
has "$out" "^$server +transfer +done +spin_us=9$"
has "$out" "^$second +transfer +done +spin_us=9$"
expect 0 "$shunt" adm --json --program transfer --user "$(id -un)" help
python3 - "$server" "$second" 3<"$work/out" <<'PYTHON'  || problem "the JSON is not as it should be: $out"
import json, sys
said = json.load(open("/dev/fd/3"))
assert said["schema"] == 1
rows = {row["pid"]: row for row in said["processes"]}
for pid in map(int, sys.argv[1:]):
    assert rows[pid]["outcome"] == "done" and rows[pid]["program"] == "transfer" and "set NAME" in rows[pid]["answer"]
PYTHON
# One refuses, or is none: the others' answers are there all the same.
expect 1 "$shunt" adm "$server" "$second" set rq 64
has "$out" "^$second +transfer +refused +rq is read when a link is made"
expect 1 "$shunt" adm "$server" 2147483647 set spin_us 8
has "$out" "^$server +transfer +done "
has "$out" '^2147483647 +- +silent +.*no such process'
expect 1 "$shunt" adm --program no-such-program help
has "$err" 'there is no such process that lets you in'
expect 0 "$shunt" adm --all set spin_us 8
has "$out" "^$second +transfer +done "
for words in "--all" "--user" "--user no-such-user help" "--program" "--wrong help" "--json" "--json $server" "--user -1 help"; do
	# shellcheck disable=SC2086
	expect 2 "$shunt" adm $words
done
# A stopped one says nothing, and keeps no other's answer.
kill -STOP "$second"
while grep -q '^State:.*(\(running\|sleeping\|disk sleep\))' /proc/"$second"/task/*/status; do sleep 0.01; done
expect 1 "$shunt" adm "$server" "$second" set spin_us 8
has "$out" "^$server +transfer +done "
has "$out" "^$second +transfer +silent +it is stopped, by a signal"
kill -CONT "$second"
kill "$second"
wait "$second" 2>/dev/null

# It still serves.
expect 0 "$transfer" client "$port" -n 0
wait "$server" || problem "the server ended with $?"
finish
