#!/bin/bash
# SPDX-License-Identifier: MIT
# What sleeping threads are woken for: kicks of a server whose threads wait for what does not come, or whose own sleep
# brings what they wait for (wakes.c). Sleeps of threads that nothing concerns are counted, too. TAP.
# shellcheck disable=SC2086	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

wakes=${WAKES:-$builddir/tests/calls/wakes}
turns=${TURNS:-2000}
need "$wakes" jq
need_shunt

# server COUNTER: of the process that has served.
server() {
	jq ".counters.$1" "$work/stat.$pid"
}

# few COUNTER MOST
few() {
	# shellcheck disable=SC2317 # called by name
	[ "$(server "$1")" -le "$2" ]
}

# way WAY POLL KICKS: at most so many in 100 turns.
way() {
	pid=$(TEST_LINK=100000 SHUNT_TUNE=${SHUNT_TUNE-},poll=$2 SHUNT_STATS=$work/stat.%p timeout 300 $shunt_run "$wakes" "$1" "$turns")
	within [ -s "$work/stat.$pid" ]
	check "$1 ($2): turns are on the link ($(server wr))" [ "$(server wr)" -gt $((turns / 2)) ]
	check "$1 ($2): $(server kicks) kicks, $(server sleeps) sleeps in $turns turns" few kicks $((turns * $3 / 100))
}

for poll in event adaptive; do
	for name in within around rearmed oneshot edge exclusive; do
		way $name $poll 1
	done
	# Kicks come before each has a number; a leader would kick in most turns.
	for name in each sets edge; do
		way $name $poll,waiters=on 10
	done
	# A stream of two sets names no waiter: the service thread wakes one of them, once for each question.
	way exclusive $poll,waiters=on 110
	# A leader that nothing concerns wakes the reader, once for each question.
	way hangup $poll 120
done
way within event 1
check "within: the sleeper outside never polls ($(server sleeps) sleeps)" few sleeps 10
plan
