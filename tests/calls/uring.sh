#!/bin/bash
# SPDX-License-Identifier: MIT
# io_uring (SHUNT_URING): a program whose ring registers its connections in an epoll set, as libuv does, ends shunted as it
# ends bare; and what each setting leaves on the link. TAP.
# shellcheck disable=SC2086,SC2317	# the command is several words; functions are called by name
# shellcheck source-path=SCRIPTDIR source=lib.sh
set -u
. "$(dirname "$0")/lib.sh"

uring=$builddir/tests/calls/uring
need "$uring"
need_shunt
export SHUNT_LOG=info

# play NAME SETTING COMMAND...: the program's words and, shunted, its messages and statistics. It has ended well.
play() {
	local name=$1 setting=$2
	shift 2
	rm -f "$work/stat."*
	if [ "$setting" = bare ]; then
		timeout 60 "$@" > "$work/$name" 2> "$work/$name.log"
	else
		SHUNT_URING=$setting SHUNT_STATS=$work/stat.%p timeout 60 $shunt_run "$@" > "$work/$name" 2> "$work/$name.log"
	fi && [ "$(wc -l < "$work/$name")" = 2 ] && return
	sed 's/^/# /' "$work/$name" "$work/$name.log"
	return 1
}

rings() { # NAME WORDS: both ends said so of their ring
	[ "$(grep -c ": $2, " "$work/$1")" = 2 ]
}

# on_link LEAST MOST: bytes that both ends have sent there
on_link() {
	local bytes
	bytes=$(jq -s 'map(.totals.tx.link) | add' "$work"/stat.*)
	[ "$bytes" -ge "$1" ] && [ "$bytes" -le "$2" ] && return
	echo "# $bytes bytes by the link"
	return 1
}

said() { # NAME LEAST WORD WORDS: at LEAST so many ends have said it, once each, and it is in the statistics of these
	local stats logged
	stats=$(jq -r .uring "$work"/stat.* | grep -cxF -- "$3")
	logged=$(grep -c -- "$4" "$work/$1.log")
	[ "$stats" -ge "$2" ] && [ "$stats" = "$logged" ] && return
	echo "# $stats times in the statistics, $logged times in the logs"
	return 1
}

both_say_why() {
	[ "$(jq '[.streams[].reason] == ["a ring of io_uring"]' "$work"/stat.* | sort -u)" = true ]
}

# may HOW COMMAND...: the kernel has io_uring, and lets us use it; else it is a skip.
may() {
	if play bare bare "${@:2}" && rings bare ring; then
		return 0
	fi
	skip "$1" "it has no ring bare: $(tail -n 1 "$work/bare")"
	return 1
}

# each HOW COMMAND...: one way to make a ring
each() {
	local how=$1
	shift
	may "$how" "$@" || return
	check "$how, watch: it ends" play watch watch "$@"
	check "$how, watch: there was a ring" rings watch ring
	check "$how, watch: it is on the link" on_link 8000 16002
	check "$how, watch: this is said once" said watch 2 watched "io_uring: watched"
	check "$how late, watch: it ends" play watch watch "$@" late
	check "$how late, watch: it is on the link" on_link 16000 32002
	check "$how, deny: it goes without, and ends" play deny deny "$@"
	check "$how, deny: there was no ring" rings deny "no ring: Function not implemented"
	check "$how, deny: it is on the link" on_link 8000 16002
	check "$how, deny: this is said once" said deny 2 refused "io_uring: refused"
	check "$how, tcp: it ends" play tcp tcp "$@"
	check "$how, tcp: there was a ring" rings tcp ring
	check "$how, tcp: nothing is on the link" on_link 0 0
	check "$how, tcp: this is said once" said tcp 2 tcp "io_uring: streams stay on TCP"
	check "$how, tcp: of the connection, too" both_say_why
	check "$how late, deny: it goes without, and ends" play deny deny "$@" late
	check "$how late, deny: it is on the link" on_link 16000 32002
	check "$how late, tcp: it ends" play tcp tcp "$@" late
	check "$how late, tcp: there was a ring" rings tcp ring
	check "$how late, tcp: it was on the link before" on_link 500 16002
	check "$how late, tcp: of the connection, too" both_say_why
}

need jq
each "syscall()" "$uring" raw
if may "a ring for something else" "$uring" beside; then
	check "a ring for something else, allow: it ends" play allow allow "$uring" beside
	check "a ring for something else, allow: there was a ring" rings allow ring
	check "a ring for something else, allow: it is on the link" on_link 8000 16002
	check "a ring for something else, allow: this is said once" said allow 2 allowed "io_uring: allowed"
fi
echo '#include <liburing.h>' > "$work/have.c"
if ${CC:-cc} -E "$work/have.c" > "$work/have.i" 2>&1 &&
   ${CC:-cc} -DLIBURING -o "$work/uring" "$here/uring.c" -luring 2> "$work/cc.log"; then
	each "liburing" "$work/uring" lib
else
	skip "liburing" "liburing-dev is not installed"
fi

# liburing that comes with a library which is loaded later, into a scope of its own, and one that is a part of it.
loaded() { # NAME LINKING...
	local name=$1 so=$work/$2
	shift 2
	${CC:-cc} -shared -fPIC -DPLAY -DLIBURING -o "$so" "$here/uring.c" "$@" 2> "$work/cc.log" || {
		skip "$name" "it cannot be linked"
		return
	}
	each "$name" python3 -c 'import ctypes, sys
sys.exit(ctypes.CDLL(sys.argv[1]).play(b"lib", sys.argv[2:] == ["late"]))' "$so"
}
loaded "a library with liburing" with.so -luring
loaded "a library around liburing" around.so -l:liburing.a

# What nobody can stand for: it is found when a connection is about to come to a link.
each_unseen() { # HOW COMMAND...
	local how=$1 setting
	shift
	may "$how" "$@" || return
	for setting in watch deny tcp; do
		check "$how, $setting: it ends" play $setting $setting "$@"
		check "$how, $setting: there was a ring" rings $setting ring
		check "$how, $setting: nothing is on the link" on_link 0 0
		check "$how, $setting: this is said once" said $setting 1 tcp "io_uring: streams stay on TCP"
	done
}
each_unseen "a system call without a function" "$uring" inline
if ${CC:-cc} -DLIBURING -o "$work/static" "$here/uring.c" -l:liburing.a 2> "$work/cc.log"; then
	each_unseen "liburing in the program" "$work/static" lib
else
	skip "liburing in the program" "it cannot be linked"
fi
plan
