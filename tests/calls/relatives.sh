#!/bin/bash
# SPDX-License-Identifier: MIT
# What a fork's child gets of a connection that its parent has on a link, where the parent has gone and a stranger sits on its
# name; or where the child has changed its user. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

many=${MANY:-$builddir/tests/calls/many}
need "$many" python3 jq
need_shunt

# start_relatives [UID]: a server, and a parent with a child; sets $parent. Lines go to {say}, answers come from {hear}.
start_relatives() {
	local in word child
	start_telling $shunt_run "$many" server
	exec {in}<&-
	mkfifo "$work/say" "$work/hear"
	$shunt_run python3 "$here/relative.py" "$server_port" "$@" < "$work/say" > "$work/hear" 2> "$work/err" &
	parent=$!
	children+=("$parent")
	exec {say}> "$work/say" {hear}< "$work/hear"
	rm "$work/say" "$work/hear"
	[ -z "${ANEW-}" ] || check "a connection is on a link before the doors close" becomes_linked
	check "the parent's connection is on a link" becomes_linked
	read -r word child <&"$hear"
	children+=("$child")
	[ "$word" = child ]
}

# becomes_linked: reads the $port of a connection, and tells the parent when it is on a link.
becomes_linked() {
	local status=0
	read -r _ port <&"$hear"
	within linked || status=1
	echo -n f >&"$say"
	return $status
}

# The parent may have other connections, which are idle and so may stay on TCP for ever.
linked() {
	"$builddir/tools/shunt" stat --json "$parent" 2> /dev/null | jq -e --arg port "$port" '[.[].streams[] |
		select((.local | endswith(":" + $port)) and .tx.track == "link" and .rx.track == "link")] != []' > /dev/null
}

answer() { # WORDS: what the child says
	local words
	echo -n g >&"$say"
	read -r -t "${WITHIN:-20}" words <&"$hear"
	[ "$words" = "$1" ] || { echo "# $words"; sed 's/^/# /' "$work/err"; return 1; }
}

end_relatives() {
	exec {say}>&- {hear}<&-
	kill "$parent" "$server_pid" 2> /dev/null
	wait "$parent" "$server_pid" 2> /dev/null
}

start_relatives
check "a child gets it back" answer "BlockingIOError True"
end_relatives

export ANEW=yes
start_relatives
check "so does the child of a parent whose door has another name by now" answer "BlockingIOError True"
end_relatives
unset ANEW

start_relatives
mkfifo "$work/squat"
python3 "$here/relative.py" squat "$parent" < "$work/squat" > "$work/full" {say}>&- {hear}<&- &
children+=("$!")
exec {squat}> "$work/squat"
check "a stranger has seen its name" within grep -q ready "$work/full"
kill -KILL "$parent"
wait "$parent" 2> /dev/null
check "a stranger sits on the name of a parent that has been killed" within grep -q full "$work/full"
check "the child does not wait for it" answer "BlockingIOError True"
end_relatives
exec {squat}>&-

if [ "$(id -u)" = 0 ]; then
	start_relatives 65534
	check "a child that is another user by now gets it back" answer "BlockingIOError True"
	end_relatives
else
	skip "a child that is another user by now" "only root can be"
fi
plan
