# SPDX-License-Identifier: MIT
# limit: 2400
# Doorbells as the kernel sees them: with rxe a doorbell is a write() of the command POST_SEND to the device's file.
# shellcheck shell=bash disable=SC2086,SC2154,SC2317 source-path=SCRIPTDIR source=lib.sh
. "${BASH_SOURCE%/*}/lib.sh"

need "$transfer" strace jq

# Before a command: its writes, in the file whose name follows. The command is the first word of what is written to the
# device (enum ib_uverbs_write_cmds): 28 is POST_SEND.
tracing="strace -f -qq -y -e trace=write -e signal=none -x -s 4 -o"

# Up to the statistics: links end after they have been written.
posted() { # FILE
	sed '/run\.stat\./q' "$1" | grep -c 'write([0-9]*<[^>]*/uverbs0[^>]*>, "\\x1c\\x00\\x00\\x00"'
}

# The way of counting itself: a ping-pong of 60 messages posts 60 sends and arms its queue.
check "ibv_rc_pingpong, traced" both "" ibv_rc_pingpong -d rxe0 -g "$(gid_index rxe0)" -n 60 -e \
	-- somebody_listens 18515 -- \
	$tracing "$work/pp.trace" ibv_rc_pingpong -d rxe0 -g "$(gid_index rxe0)" -n 60 -e 127.0.0.1
check "60 sends are 60 writes ($(posted "$work/pp.trace"))" [ "$(posted "$work/pp.trace")" = 60 ]

if ! knows_device "$lab_device"; then
	skip "doorbells of Shunt" "this build does not know SHUNT_DEVICE=$lab_device"
	plan
fi
need_device "$lab_device"
export TEST_LINK=600000 TEST_LIMIT=800
# Little in flight, so that sends have to wait, and with that to be chained and merged.
export SHUNT_TUNE=${SHUNT_TUNE-},window=16K,admit=static

# The client of a transfer, traced: sets doorbells, by its statistics, and writes, by strace.
count_doorbells() { # BATCH
	rm -f "$work"/run.stat.*
	SHUNT_TUNE=${SHUNT_TUNE-},batch=$1 pair "$work/run" "$shunt_run" "$tracing $work/$1.trace $shunt_run" -m blocking -n 150K --chunk-max 600 --one-way -c 8 || return
	doorbells=$(cat "$work"/run.stat.* | jq -s 'map(select(.counters.claims > 0) | .counters.doorbells) | add')
	writes=$(posted "$work/$1.trace")
	echo "# $1: $doorbells doorbells by the statistics, $writes writes"
}

check "a transfer that is not traced" pair "$work/first" "$shunt_run" "$shunt_run" -n 300K
declare -A rung=()
for batch in single hybrid; do
	check "$batch: a traced transfer" count_doorbells $batch
	! is_verbs || check "$batch: each doorbell is one write" [ "$writes" = "${doorbells:-0}" ]
	check "$batch: it has rung at all" [ "${doorbells:-0}" -gt 100 ]
	rung[$batch]=${doorbells:-0}
done
check "hybrid rings less than 0.8 times as often as single" [ $((rung[hybrid] * 10)) -lt $((rung[single] * 8)) ]
plan
