#!/bin/bash
# SPDX-License-Identifier: MIT
# What threads of a process share where each has a connection of its own: locks, atomic instructions and cache lines by
# call, counted in a build of the library that notes each access to memory (lines.c).
#
#	THREADS="1 2 4 8" MODES="epoll block stream" COUNT=1000 lines.sh [-v]
#
# locks: that a call takes, each counted once; takes: how often; busy: tries in vain; waited: times that a thread had to
# wait for a lock; atomics: read-modify-writes; written: cache lines that the call writes and another thread of the
# process uses; read: lines that it reads and another thread writes. Means over the calls of both processes.
# A call that waits polls as often as time allows. Its takes and atomics depend on the machine, and the rest hardly.
# -v: each lock and line by name.
# shellcheck source-path=SCRIPTDIR source=../calls/lib.sh
set -u
. "$(dirname "$0")/../calls/lib.sh"

verbose=${1:-}
built=$builddir/tests/bench/.libs
env -u MAKEFLAGS -u MFLAGS make -s -C "$builddir" counted >&2
need "$builddir/tests/bench/crowd" "$built/counted.so" "$built/lines.so" python3 addr2line

# count_lines THREADS COUNT MODE: what both processes have noted is in $work/server and $work/client.
count_lines() {
	# Long copies are noted unless they are memcpy(3)'s, and their lines would fill the tables.
	local counted=(env SHUNT_TUNE="${SHUNT_TUNE-},copy=memcpy" LD_PRELOAD="$built/lines.so $built/counted.so" "$builddir/tests/bench/crowd")
	start_telling "${counted[@]}" server "$1" "$2" "$work/server"
	"${counted[@]}" client "$1" "$2" "$work/client" "$server_port" "$3" && wait "$server_pid"
}

printf '| mode | threads | call | calls | locks | takes | busy | waited | atomics | written | read |\n'
printf '| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n'
for mode in ${MODES:-epoll block stream}; do
	for n in ${THREADS:-1 2 4 8}; do
		count_lines "$n" "${COUNT:-1000}" "$mode" || exit 1
		python3 "$(dirname "$0")/lines.py" ${verbose:+-v} "$built/counted.so" "$work/server" "$work/client" |
			while read -r first rest; do
				case $first in
				send | receive | wait) echo "| $mode | $n | $first | ${rest// / | } |" ;;
				*) echo "    $first $rest" ;;
				esac
			done
	done
done
