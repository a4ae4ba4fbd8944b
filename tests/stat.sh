#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt stat where there is nothing to show, and the ways to ask wrongly; what it says of plain streams and of what waits; processes that
# answer with escapes, slowly or not at all; the width of its tables; rates; an output that is full.
set -u
. "${top_srcdir:?}/tests/lib.sh"
fakes=()
trap 'kill "${fakes[@]}" 2>/dev/null; scratch_remove' EXIT

expect 1 "$shunt" stat $$
has "$err" "process $$: .*runs without Shunt|may not be examined"
expect 1 "$shunt" stat 2147483647
has "$err" 'no such process'
expect 2 "$shunt" stat abc
expect 2 "$shunt" stat 0
expect 2 "$shunt" stat --watch never
expect 2 "$shunt" stat --wrong
expect 2 "$shunt" stat --json --tcp
has "$err" 'one or the other'
expect 0 "$shunt" stat --help
expect 0 "$shunt" stat
expect 0 "$shunt" stat --json
has "$out" '^\['

# A plain peer, at either end.
for shunted in client server; do
	expect 0 env SHUNT_TUNE=claim_ms=10 python3 "$top_srcdir/tests/stat_plain.py" "$shunt" "$shunted"
done

# What waits, on the link.
expect 0 env SHUNT_TUNE=claim_ms=10000,lanes=1 python3 "$top_srcdir/tests/stat_queues.py" "$shunt"

expect 0 env SHUNT_TUNE=claim_ms=10000,flip=4096 python3 "$top_srcdir/tests/stat_queues.py" "$shunt" flips

# Beside ss(8).
if command -v ss >"$work/out"; then
	expect 0 python3 "$top_srcdir/tests/stat_tcp.py" "$shunt"
else
	echo "no ss: its lines are not compared"
fi

# fake KIND: starts one; its process id is $fake.
fake() {
	local in
	exec {in}< <(exec python3 "$top_srcdir/tests/stat_fake.py" "$1")
	read -r fake <&"$in"
	fakes+=("$fake")
}

# plain TEXT: nothing in it moves a cursor.
plain() {
	! LC_ALL=C grep -q '[^ -~]' <<<"$1" || problem "unprintable: $(LC_ALL=C grep '[^ -~]' <<<"$1" | cat -v | head -n 3)"
}

fake growing
growing=$fake
fake hostile
hostile=$fake
expect 0 "$shunt" stat "$growing" "$hostile"
plain "$out$err"
narrow "$out"
has "$out" '^fake \(pid [0-9]+\): device soft, up .* s, 3 streams, 2 on the link$'
has "$out" '^ +7  127.0.0.1:40000 +255.255.255.255:65535 +1024K +1.0G\* +1024K\* +0 +linked$'
has "$out" '^  blocking sends: registered in place from 256.0K on \(measured\)$'
has "$out" '^ +Recv-Q 1.0P, Send-Q 1.0P \(staged: 1.0P\), peer.s ring 25 % full, idle for 12345.7 s$'
has "$out" '^  sends: 100; half below 32, 99 % below 32$'
has "$out" '^  timed work requests: 5; half below 8.2 us, 99 % below 8.2 us$'
has "$out" '^ +1  soft +2 +3 +1.0P +1.0P +1.5 s$'
has "$out" '^  counters of rxe0 port 1, kept by the kernel:$'
has "$out" '^ +[0-9]+  rcvd_rnr_err$'
has "$out" '^ +12345  \[1111:2222:3333:4444:5555:6666:7777:8888\]:65535$'
has "$out" '^ +on TCP because of: operator$'
has "$out" '^fake\\x1b\]0;title\\x07.* \(pid [0-9]+\): device soft'
lacks "$out" '^shunt: all is well'
expect 0 "$shunt" stat --json "$hostile"
plain "$out"
[ "$(python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["program"][4])' <<<"$out" | od -An -c | tr -d ' ')" = '033\n' ] ||
	problem "the JSON has lost something: $out"

expect 0 "$shunt" stat --tcp "$hostile" "$growing"
plain "$out$err"
has "$out" '^State +Recv-Q +Send-Q +Local Address:Port +Peer Address:Port +Process +Track$'
[ "$(wc -l <<<"$out")" = 7 ] || problem "not a line for each of six connections: $out"

# One line about all, without what a name would do to a terminal.
expect 0 "$shunt" stat --brief "$hostile" "$growing"
plain "$out$err"
[ "$(wc -l <<<"$out")" = 1 ] || problem "not one line: $out"
has "$out" '^2 processes, [1-5] of 6 connections on a link, [0-9.]+ % of all bytes so far; [1-5] on TCP \(.+: [1-5]'
expect 2 "$shunt" stat --brief --json

# Rates, from the second look on.
exec {watch}< <(exec "$shunt" stat --watch 0.02 "$growing")
watched='' looks=0
while [ $looks -lt 2 ] && IFS= read -r -u "$watch" line; do
	watched+=$line$'\n'
	[[ $line != *idle ]] || looks=$((looks + 1))
done
exec {watch}<&-
[ $looks = 2 ] || problem "the watch has ended"
has "$watched" '^  bytes each second'
has "$watched" '^ +7  127.0.0.1:40000 .* 0  +[0-9.]+[KMGT]\* '
has "$watched" '^  all tx: .* by link; 0/s by TCP, [0-9.]+[KMGT]/s by link'
has "$watched" '^ +[0-9]+ +[0-9.]+/s  wr$'
has "$watched" '^ +7 +idle$'
narrow "$watched"
plain "$watched"

# One that never comes to an end, and one that lets nobody in: the others are shown.
fake trickle
trickle=$fake
fake full
expect 0 timeout 120 "$shunt" stat
has "$out" "pid $growing"
has "$out" "pid $hostile"
has "$err" "process $trickle: its answer did not come to an end in time"
has "$err" "doors that could not be asked, of processes unknown: 1"
expect 1 timeout 120 "$shunt" stat "$trickle" "$growing"
has "$out" "pid $growing"

# The control socket.
fake silent
expect 1 timeout 120 "$shunt" adm "$fake" help
has "$err" 'no answer'
fake liar
expect 0 "$shunt" adm "$fake" help
plain "$out"
has "$out" 'title'

# An output that takes nothing is an error, whoever speaks.
full() {
	local status=0
	"$shunt" "$@" >/dev/full 2>"$work/err" || status=$?
	[ $status = 1 ] || problem "$* into a full device: exit status $status"
	has "$(cat "$work/err")" 'the output could not be written: No space left on device'
}
full --help
full --version
full stat "$growing"
full stat --json "$growing"
full stat --tcp "$growing"
full stat --brief "$growing"
full stat --watch 0.01 "$growing"
full stat --help
full config
full config --json
full config --man
full adm "$fake" help
full adm --help
full run --help
full advise --help
full perf programs --list
full perf programs --help
full perf --help
expect 0 sh -c "exec '$shunt' run true >&-"

finish
