#!/bin/bash
# SPDX-License-Identifier: MIT
# shunt top in a terminal (tmux): rates, views, sort, filter, freeze, a small and a large screen, hostile text, and a
# terminal that is as it was after each way to end. Without a terminal: text and JSON.
set -u
. "${top_srcdir:?}/tests/lib.sh"
started=()
tmux() {
	command tmux -S "$work/tmux" -f /dev/null "$@"
}
trap 'tmux kill-server 2>/dev/null; kill "${started[@]}" 2>/dev/null; scratch_remove' EXIT

# begin COMMAND…: in the background; its first line is in $said, its process id in $begun.
begin() {
	local in
	exec {in}< <(exec "$@" 2>>"$work/begun")
	begun=$!
	started+=("$begun")
	read -r said <&"$in"
}

# ---- without a terminal ----

expect 2 "$shunt" top abc
expect 2 "$shunt" top -n 0
expect 2 "$shunt" top -n -1
expect 2 "$shunt" top --delay 0
expect 2 "$shunt" top --delay never
expect 2 "$shunt" top --sort nothing
expect 2 "$shunt" top --sort fd
expect 2 "$shunt" top --wrong
expect 0 "$shunt" top --help
narrow "$out"
has "$out" '^Keys:'
expect 1 "$shunt" top -n 1 -d 0.1 $$
has "$out" "^ *$$ "
has "$err" "process $$: .*runs without Shunt|may not be examined"
expect 0 "$shunt" top -n 1 -d 0.1
has "$out" '^0 processes'

# Names that no figure has in it, as a number may: the filter looks at all columns.
python=$(python3 -c 'import sys; print(sys.executable)')
ln -s "$python" "$work/load-server"
ln -s "$python" "$work/load-client"
begin "$shunt" run "$work/load-server" "$top_srcdir/tests/top_load.py" server
server=$begun port=$said
begin "$shunt" run "$work/load-client" "$top_srcdir/tests/top_load.py" client "$port"
client=$begun

until "$shunt" top --json -n 1 -d 0.1 -s "$client" | jq -e '.streams[0].link == 1000' >/dev/null; do
	kill -0 "$client" || { problem "the client has ended: $(cat "$work/begun")"; finish; }
done
expect 0 "$shunt" top --json -n 2 -d 0.1 "$client" "$server"
[ "$(wc -l <<<"$out")" = 2 ] || problem "not two looks: $out"
jq -se --argjson client "$client" --argjson server "$server" '
	all(.[]; .schema == 1 and (.processes | length == 2) and (.streams | length == 2) and
		(.processes[] | select(.pid == $client) | .tx > 0 and .rx == 0 and .streams == 1) and
		(.streams[] | select(.pid == $server) | .tx == 0 and .rx > 0 and .link == 1000 and .state == "linked"))' \
	<<<"$out" >"$work/judged" || problem "JSON: $(cat "$work/judged") of $out"
expect 0 "$shunt" top -b -n 1 -d 0.1 --sort pid "$server" "$client"
has "$out" '^2 processes, 2 streams, 2 linked; 100.0% of bytes by link$'
has "$out" '^link tx [0-9.]+[KMG] rx [0-9.]+[KMG], tcp tx 0 rx 0 /s$'
has "$out" "^ *$client load-client .* 100% +1 "
narrow "$out"
expect 0 "$shunt" top -b -n 1 -d 0.1 -s --filter ":$port" "$client"
has "$out" "127.0.0.1:$port .* link"
expect 0 "$shunt" top -b -n 1 -d 0.1 -s --filter "no such thing" "$client"
lacks "$out" "$client"
# A stranger is told nothing.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid 65534 --clear-groups test -x "$shunt"; then
	expect 1 setpriv --reuid 65534 --clear-groups "$shunt" top -b -n 1 -d 0.1 "$client"
	lacks "$out" load-client
fi

command -v tmux >/dev/null || { echo "tmux is missing"; [ "$problems" = 0 ] && exit 77; finish; }
if ! ldd "${shunt%/*}/shunt-view" | grep -q ncurses; then
	echo "this build has no screen"
	[ "$problems" = 0 ] && exit 77
	finish
fi

# ---- on a terminal ----

screen() {
	tmux capture-pane -p -t top
}

# shows PATTERN: waits until a line of the screen has it.
shows() {
	local until=$((SECONDS + 60))
	until screen | grep -qE -- "$1"; do
		[ $SECONDS -lt $until ] || { problem "no '$1' on: $(screen)"; finish; }
		sleep 0.02
	done
}

# first PATTERN: waits until the first row has it.
first() {
	local until=$((SECONDS + 60))
	until screen | sed -n 5p | grep -qE -- "$1"; do
		[ $SECONDS -lt $until ] || { problem "no '$1' in the first row of: $(screen)"; finish; }
		sleep 0.02
	done
}

keys() {
	tmux send-keys -t top "$@"
}

tmux new-session -d -s top -x 100 -y 24 "TERM=screen exec bash --norc --noprofile" || { problem "tmux does not start"; finish; }
tmux set-option -g status off
# typed COMMAND: typed at the shell's prompt.
typed() {
	keys -l "$1"
	keys Enter
}
typed "PS1='ready> '; clear; stty -a >$work/stty; echo BEFO''RE"
shows '^BEFORE'
title=$(tmux display-message -p -t top '#{pane_title}')
# top: starts it, and afterwards says the exit status.
top() {
	typed "'$shunt' top -d 0.1; echo \"ended \$?\""
	shows '^processes by|^FROZEN'
}
endings=0
# ended STATUS: the shell's screen and the terminal's settings are back.
ended() {
	shows "^ended $1\$"
	shows '^BEFORE'
	! screen | grep -q 'PROGRAM' || problem "left on the screen: $(screen)"
	endings=$((endings + 1))
	typed "clear; stty -a >$work/after; echo BEFO''RE $endings"
	shows "^BEFORE $endings"
	cmp "$work/stty" "$work/after" || problem "the terminal is not as it was: $(diff "$work/stty" "$work/after")"
	[ "$(tmux display-message -p -t top '#{cursor_flag}#{alternate_on}')" = 10 ] || problem "the cursor or the screen is not back"
}

top
shows '^2 processes, 2 streams, 2 linked; 100.0% of bytes by link'
shows '^link tx [0-9.]+[KMG] rx [0-9.]+[KMG], tcp tx 0 rx 0 /s'
shows "^ *$client load-client +[0-9.]+[KMG] +0  100% "

# Sort.
small=$client large=$server
[ "$client" -lt "$server" ] || small=$server large=$client
keys '<' '<'
shows '^processes by PID, 0.1s'
first "^ *$small "
keys r
shows '^processes by PID \(r\)'
first "^ *$large "
keys r

# Filter.
keys / load-client Enter
shows ', with load-client$'
! screen | grep -q "^ *$server " || problem "not filtered: $(screen)"
keys Escape
shows "^ *$server "

# Freeze: a process that comes meanwhile is not seen.
keys f
shows '^FROZEN'
begin python3 "$top_srcdir/tests/stat_fake.py" hostile
hostile=$begun
expect 0 "$shunt" stat "$hostile"
! screen | grep -q "$hostile" || problem "not frozen: $(screen)"
keys f
shows "^ *$hostile fake.x1b"
! screen | LC_ALL=C grep '[^ -~]' || problem "unprintable: $(screen | cat -v)"
[ "$(tmux display-message -p -t top '#{pane_title}')" = "$title" ] || problem "the title has changed"

# Streams, and those of one process.
keys s
shows '^streams by TX/s'
shows "127.0.0.1:$port .* link"
keys Tab
shows '^processes by PID'
keys / load- Enter
shows 'with load-'
keys Down
shows "^load-(client|server) $small"
keys Enter
shows '^streams by .*, one process'
! screen | grep -q "^.* $large .*link" || problem "not one process: $(screen)"
keys Escape
shows '^processes by PID, 0.1s$'

# Prompts and help.
keys d 0.2 Enter
shows ', 0.2s'
keys d x Enter
shows 'not a number of seconds'
keys h
shows '^q|q  quit'
keys x
shows '^processes by PID'

# Each way out.
keys q
ended 0
top
keys C-c
ended 0
top
pid=$(pgrep -P "$(tmux display-message -p -t top '#{pane_pid}')" -x shunt-view)
kill -TERM "$pid"
ended 143

# Stopped and gone on.
top
pid=$(pgrep -P "$(tmux display-message -p -t top '#{pane_pid}')" -x shunt-view)
keys C-z
shows 'Stopped'
# shellcheck disable=SC2016 # of that shell
typed 'fg; echo "ended $?"'
shows '^2 processes|^3 processes'
keys q
ended 0

# Sizes. What the shell had shown is for tmux to fit into a new size.
top
tmux resize-window -t top -x 40 -y 10
shows '^    PID PROGRAM        TX/s   RX/s  LINK$'
shows "^ *$client load-client"
tmux resize-window -t top -x 12 -y 3
shows '^q quit  h h'
tmux resize-window -t top -x 1 -y 1
tmux resize-window -t top -x 130 -y 30
shows 'STREAMS STALL/s BOUND BY   SEND-Q RECV-Q WHY'

keys q
shows '^ended 0$'
lacks "$(screen)" 'PROGRAM'

# A terminal that cannot move its cursor.
typed "TERM=dumb '$shunt' top -d 0.1 $client"
shows 'plain text, because the terminal cannot move its cursor'
shows "^ *$client load-client"
keys C-c
shows '^ready>$'

# A terminal that ends.
typed clear
top
pid=$(pgrep -P "$(tmux display-message -p -t top '#{pane_pid}')" -x shunt-view)
tmux kill-server
until=$((SECONDS + 60))
while kill -0 "$pid" 2>/dev/null; do
	[ $SECONDS -lt $until ] || { problem "it outlives its terminal"; started+=("$pid"); break; }
	sleep 0.02
done
finish
