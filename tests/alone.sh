#!/bin/bash
# SPDX-License-Identifier: MIT
# alone.sh [-n] COMMAND...: in namespaces of its own, as root or as a user who may make some. Other tests and services of
# the machine then have none of its ports, addresses and abstract names. All processes that it starts end with it, however
# it ends: by itself, by a signal, or because the process that started it has ended. -n: on the machine's network.
# Where no namespaces are to be had it says so, and the command runs without. The command finds ALONE=yes or no in its
# environment: does it have a network of its own?
#
# Three processes: the guard, which passes signals on; the first process of the namespace, without which none lives there;
# the command. The guard's death ends the first (--pdeathsig, --kill-child). A signal to the guard ends all of them: those
# that do not listen after $patience seconds.
# shellcheck disable=SC2317 # handlers of signals
set -u

patience=${ALONE_PATIENCE:-20}
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/${BASH_SOURCE[0]##*/}
given=("$@")
spaces=(--pid --fork --kill-child --mount-proc)
if [ "${1-}" = -n ]; then
	shift
else
	spaces+=(--net)
fi
# A shell's command in the background has these two ignored, and could not have them back otherwise.
heard=(env --default-signal=INT --default-signal=QUIT)

# Until the process has ended, and not only until a signal has come. Sets $status.
await() {
	while true; do
		wait "$1"
		status=$?
		kill -0 "$1" || return
	done
} 2> /dev/null

# --- the first process of the namespace ---

# Everything but this shell.
end_all() {
	kill -TERM -1
	{ sleep "$patience" && kill -KILL "$child"; } &
} 2> /dev/null

if [ "${1-}" = --first ]; then
	shift
	command=("${heard[@]}" "$@")
	if [[ " ${spaces[*]} " = *" --net "* ]]; then
		export ALONE=yes
		ip link set lo up || exit 99
	fi
	[ "$(id -u)" = 0 ] || command=(setpriv --inh-caps=-all --ambient-caps=-all "${command[@]}")
	trap end_all TERM
	"${command[@]}" <&0 &
	child=$!
	await "$child"
	exit "$status"
fi

# --- the guard ---

if [ "${ALONE_GUARD-}" != $$ ]; then
	ALONE_GUARD=$$ exec setpriv --pdeathsig TERM "$self" "${given[@]}"
fi
unset ALONE_GUARD
# A version manager's python3 is a script that takes ten times as long to start as the real one, and tests start hundreds.
if read -r -n 2 magic < "$(type -P python3)" && [ "$magic" = '#!' ]; then
	folder=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))') && PATH=${folder:+$folder:}$PATH
fi 2> /dev/null
[ "$(id -u)" = 0 ] || spaces+=(--map-current-user --keep-caps)
probe=(true)
[[ " ${spaces[*]} " = *" --net "* ]] && probe=(ip link set lo up)
if ! unshare "${spaces[@]}" "${probe[@]}" 2> /dev/null; then
	echo "alone.sh: there are no namespaces to be had; ports and names of the machine may be in the way" >&2
	ALONE=no exec "$@"
fi

# The first process, once it listens: until then it would not hear.
first() {
	first=$(< "/proc/$guarded/task/$guarded/children")
	first=${first%% *}
	[ "$first" ] && grep -qE '^SigCgt:.*[4-7c-f][0-9a-f]{3}$' "/proc/$first/status"
} 2> /dev/null

pass_on() {
	local told='' i
	trap '' TERM INT HUP
	for ((i = 0; i < patience * 20; i++)); do
		[ "$told" ] || { first && kill -TERM "$first" && told=1; }
		kill -0 "$guarded" || return
		sleep 0.1
	done
	kill -KILL "$guarded"
} 2> /dev/null

trap pass_on TERM INT HUP
setpriv --pdeathsig KILL "${heard[@]}" unshare "${spaces[@]}" "$self" "${given[@]:0:$((${#given[@]} - $#))}" --first "$@" <&0 &
guarded=$!
await "$guarded"
exit "$status"
