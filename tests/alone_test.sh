#!/bin/bash
# SPDX-License-Identifier: MIT
# alone.sh: a namespace of its own, and nobody left in it, however its command comes to its end. TAP.
# shellcheck disable=SC2016,SC2034,SC2086,SC2317 # called by name
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=scratch.sh
. "$here/scratch.sh"
scratch test
alone=$here/alone.sh
n=0 failed=0

check() { # NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name" && failed=1
	fi
}

within() {
	local until=$((SECONDS + ${WITHIN:-120}))
	until "$@"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.05
	done
}

ends_with() { # STATUS COMMAND...
	local status=$1
	shift
	"$alone" "$@"
	[ $? = "$status" ]
}

hears_int() {
	# shellcheck disable=SC2016 # of the inner shell
	ends_with 3 bash -c 'trap "exit 3" INT; kill -INT $$; sleep 60'
}

takes_input() {
	[ "$(echo line | "$alone" cat)" = line ]
}

# A name and a port that another run has, too.
takes() {
	"$alone" python3 -c '
import socket
a = socket.socket(socket.AF_UNIX)
a.bind("\0shunt-alone-test")
b = socket.socket()
b.bind(("127.0.0.1", 7777))
b.listen()
print("taken", flush=True)
input()' 2>&1
}

two_at_once() {
	local one two first second said=0
	mkfifo "$scratch/one" "$scratch/two"
	takes < "$scratch/one" > "$scratch/one.said" &
	first=$!
	takes < "$scratch/two" > "$scratch/two.said" &
	second=$!
	exec {one}> "$scratch/one" {two}> "$scratch/two"
	within grep -q . "$scratch/one.said" && within grep -q . "$scratch/two.said" || said=1
	exec {one}>&- {two}>&-
	wait "$first" "$second"
	grep -q '^taken' "$scratch/one.said" && grep -q '^taken' "$scratch/two.said" && [ $said = 0 ]
}

# --- nobody is left: each process of the command holds a lock of its own file ---

# Two that sleep, of which one does not listen to TERM and has left its session.
cat > "$scratch/command" <<'END'
exec 2> /dev/null
case $1 in
deafest) trap '' TERM && : > "$2.up" && while true; do sleep 1000; done ;;
deaf) trap '' TERM && : > "$2.up" && sleep 1000 && sleep 1000 ;;
*) setsid flock "$1.2" bash "$0" deaf "$1" & flock "$1.1" sleep 1000 ;;
esac
END

begin() { # NAME COMMAND...: sets $pid
	held=$scratch/$1
	shift
	"$@" env --default-signal=INT "$alone" bash "$scratch/command" "$held" &
	pid=$!
	within test -e "$held.up"
}

is_free() {
	flock -n "$held.1" true && flock -n "$held.2" true
}

left_by() { # SIGNAL
	begin "$1" || return
	! is_free || return
	kill -"$1" "$pid"
	within is_free && ! wait "$pid"
}

# One that never ends by itself.
left_by_deaf() {
	held=$scratch/deaf
	ALONE_PATIENCE=1 "$alone" flock "$held.1" bash "$scratch/command" deafest "$held" &
	pid=$!
	within test -e "$held.up" || return
	: > "$held.2"
	! is_free || return
	kill -TERM "$pid"
	within is_free && ! wait "$pid"
} 2> /dev/null

left_by_end() {
	held=$scratch/end
	"$alone" bash -c 'setsid flock "$0.1" sleep 1000 & until [ -e "$0.1" ] && ! flock -n "$0.1" true; do sleep 0.05; done' "$held"
	: > "$held.2"
	within is_free
}

# The process that started the guard is killed: nobody has told the guard.
left_by_parent() {
	begin parent bash -c '"$@" & wait' - || return
	! is_free || return
	kill -KILL "$pid"
	within is_free
}

if "$alone" true 2>&1 | grep -q 'no namespaces'; then
	echo "1..0 # SKIP there are no namespaces to be had"
	exit 77
fi
check "the status is the command's" ends_with 7 sh -c 'exit 7'
check "of one that is killed, too" ends_with 137 sh -c 'kill -KILL $$'
check "the command hears SIGINT" hears_int
check "and has the standard input" takes_input
check "two at once have one name and one port" two_at_once
check "the command ends: nobody is left" left_by_end
for signal in TERM INT HUP KILL; do
	check "SIG$signal to the guard: nobody is left" left_by $signal
done
check "a command that does not listen: nobody is left" left_by_deaf
check "the guard's parent is killed: nobody is left" left_by_parent
echo "1..$n"
exit $failed
