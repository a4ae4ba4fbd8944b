#!/bin/bash
# SPDX-License-Identifier: MIT
# The doors of processes that share a network and no more: two that are both process 1 serve and are
# asked, from outside and from inside; others have a user namespace of their own; others lie. Needs
# root. TAP.
# shellcheck disable=SC2086,SC2317	# commands to put before others are several words
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

need python3 pgrep nsenter unshare setpriv prlimit
need_shunt
# shellcheck source-path=SCRIPTDIR source=ends.sh
. "$here/ends.sh"
shunt=$builddir/tools/shunt
if [ "$(id -u)" != 0 ] || ! unshare --pid --fork --mount-proc true 2> /dev/null; then
	echo "1..0 # SKIP only root can make PID namespaces"
	exit 77
fi

asked() { # PATTERN COMMAND...: its answer has that
	local pattern=$1
	shift
	"$@" > "$work/said" 2>&1
	grep -qE -- "$pattern" "$work/said" || { sed 's/^/# /' "$work/said"; return 1; }
}

refused() { # PATTERN COMMAND...: it fails, and says that
	local pattern=$1
	shift
	if "$@" > "$work/said" 2>&1 || ! grep -qE -- "$pattern" "$work/said"; then
		sed 's/^/# /' "$work/said"
		return 1
	fi
}

identity_of() { # PID
	"$shunt" stat --json "$1" | sed -n 's/.*"identity": "\([0-9a-f]\{32\}\)".*/\1/p'
}

# --- two containers of a pod: one network, and a process 1 each ---

apart="unshare --pid --fork --kill-child --mount-proc"
firsts=() numbers=()

begin_namesake() {
	serve "$apart $shunt_run"
	firsts+=("$server_pid")
	numbers+=("$(pgrep -P "$server_pid")")
	inside="nsenter --target ${numbers[-1]} --pid --mount"
	use "$inside $shunt_run"
}

# unshare heeds no SIGTERM, and takes its child along.
end_namesakes() {
	local i
	for i in "${!firsts[@]}"; do
		kill -KILL "${firsts[i]}"
		wait "${firsts[i]}"
	done
} 2> /dev/null

both_listed() {
	asked "\(pid ${numbers[0]}\): device" "$shunt" stat &&
		asked "\(pid ${numbers[1]}\): device" "$shunt" stat
}

check "a process 1 serves a client of its own PID namespace" begin_namesake
linked='"state": "linked"'
check "and is on a link, as is seen from outside" within stat_has "${numbers[0]}" "$linked"
check "so does another process 1" begin_namesake
check "which is on a link, too" within stat_has "${numbers[1]}" "$linked"
check "both are listed, each with the number that it has outside" both_listed
check "that is also its number in the JSON" stat_has "${numbers[0]}" "\"pid\": ${numbers[0]},"
for number in "${numbers[@]}"; do
	check "process $number does what it is told" \
		asked '^spin_us=7$' "$shunt" adm "$number" set spin_us 7
done
second=$(identity_of "${numbers[1]}")
inside="nsenter --target ${numbers[0]} --pid --mount"
check "inside, one's own namesake is process 1" asked "\(pid 1\): device" $inside "$shunt" stat 1
check "the other has no number there, but an identity" \
	asked "\(identity $second\): device" $inside "$shunt" stat
check "by which it is asked" asked "\(identity $second\): device" $inside "$shunt" stat "$second"
check "and told" asked '^spin_us=8$' $inside "$shunt" adm "$second" set spin_us 8
check "an identity that nobody has" refused 'has that identity' "$shunt" stat "${second//[0-9]/0}"
end_namesakes

# --- a user namespace of its own ---

other="setpriv --reuid=65534 --regid=65534 --clear-groups"
stranger="setpriv --reuid=65533 --regid=65533 --clear-groups"

begin_user() {
	serve "$other $1 $shunt_run"
	user=$server_pid
}

end_user() {
	kill "$user"
	wait "$user"
	exec {served}<&-
} 2> /dev/null

if [ "$python" ] && $other unshare --user --map-root-user test -r "$ends" &&
	$other $shunt_run true 2> /dev/null; then
	begin_user "unshare --user --map-root-user"
	check "root asks a process of another user's namespace" \
		within stat_has "$user" "\"pid\": $user,"
	check "and tells it" asked '^spin_us=7$' "$shunt" adm "$user" set spin_us 7
	check "a stranger does not ask it" refused "another user's" $stranger "$shunt" stat "$user"
	check "and does not tell it" \
		refused "another user's" $stranger "$shunt" adm "$user" set spin_us 9
	end_user
	begin_user "unshare --user"
	check "a namespace without a root has nobody to ask as" \
		within stat_has "$user" 'no root to ask as'
	check "or to tell it as" refused 'no root to ask as' "$shunt" adm "$user" help
	end_user
else
	skip "a user namespace" "no other user can make one here"
fi

# --- liars ---

lie() { # KIND: sets $liar, when it lies
	local fifo=$work/lie.$1
	mkfifo "$fifo"
	$other ${python:-python3} "$here/liar.py" "$1" > "$fifo" 2>&1 &
	children+=("$!")
	exec {lies}< "$fifo"
	read -r liar <&"$lies"
}

hidden_among() { # the honest process is found by a tool that has few descriptors
	local few="prlimit --nofile=40:40 $shunt"
	asked "\"pid\": $server_pid," $few stat --json &&
		asked "\"pid\": $server_pid," $few stat --json "$server_pid" &&
		asked '^spin_us=7$' $few adm "$server_pid" set spin_us 7
}

if [ "$python" ] && $other test -r "$here/liar.py"; then
	serve "$shunt_run"
	within stat_has "$server_pid" '"linked": 0'
	lie many
	check "a liar with many names hides nobody" hidden_among
	lie gone
	what="what another keeps open for a process that has ended is no process's"
	if [[ "$liar" = cannot* ]]; then
		skip "$what" "this kernel cannot tell"
	else
		check "$what" \
			refused "no such process|runs without Shunt" "$shunt" stat "${liar% *}"
	fi
	kill "$server_pid"
	{ wait "$server_pid"; } 2> /dev/null
else
	skip "a liar" "no other user can run one"
fi
plan
