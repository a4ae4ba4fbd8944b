#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/rooms finds what is against the order of the rooms: objects made here, a table and a list of exceptions.
set -eu

rooms=${top_srcdir:?}/tools/rooms
for needed in python3 nm; do
	command -v $needed >/dev/null || { echo "there is no $needed"; exit 77; }
done
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$top_srcdir/tests/lib.sh"
table=$work/table exceptions=$work/exceptions build=$work/build

# object FOLDER NAME CALLS DEFINED…: the object of FOLDER/NAME.c.
object() {
	local folder=$build/$1 name=$2 call calls=''
	mkdir -p "$folder"
	for call in $3; do
		calls+="void $call(void); "
	done
	shift 3
	{
		echo "$calls"
		for defined; do
			echo "void $defined(void); void $defined(void) { $(sed -E 's/void //g' <<<"$calls" | sed 's/(void)/()/g') }"
		done
	} >"$work/$name.c"
	$CC -c -o "$folder/libshuntcore_a-$name.o" "$work/$name.c"
}

look() { # STATUS
	expect "$1" "$rooms" --table "$table" --exceptions "$exceptions" "$build"
}

cat >"$table" <<'END'
| `attic` | above the heading | `unit/lock_test` |

## The rooms

| room | what | guarded by |
| --- | --- | --- |
| `base` | locks | `unit/lock_test` |
| `stream/track` | tracks | `run` |
| `stream` | connections | `unit/lock_test` |
| `engine` | the rest | |

## Something else

| `no room` | nothing | `unit/lock_test` |
| `cellar` | nothing | `unit/lock_test` |
END
: >"$exceptions"

look 2
has "$err" 'no objects'

# A folder is a room, and what lies beside them is the engine.
object core/base lock "" shunt_lock
object core/stream tx "shunt_lock shunt_rx" shunt_tx
object core/stream rx "shunt_lock shunt_tx" shunt_rx
object core/stream end "shunt_rx" shunt_end
object core/stream/track track "shunt_lock" shunt_track
object core engine "shunt_tx shunt_end shunt_track" shunt_engine
look 0
has "$out" '^9 arrows, 0 upward, 0 exceptions; the largest cycle: 2 files in stream; '

object core/base lock "shunt_end" shunt_lock
look 1
has "$out" '^base/lock\.c -> stream/end\.c \(base -> stream\): shunt_end$'
has "$out" '^cycle of rooms: base stream$'
echo 'base/lock.c -> stream/end.c: planted' >"$exceptions"
look 0
has "$out" ' 1 upward, 1 exceptions; the largest cycle: 4 files in base, stream; inside one room, without exceptions: 2$'

object core/base lock "" shunt_lock
look 1
has "$out" '^exception without a case: base/lock\.c -> stream/end\.c$'
echo 'base/lock.c -> stream/end.c' >"$exceptions"
look 2
has "$err" 'exceptions:1: '

: >"$exceptions"
object core/nowhere more "" shunt_more
look 1
has "$out" '^nowhere/more\.c is in no room$'
rm -rf "$build"
object core/base lock "shunt_more" shunt_lock
object core/stream more "" shunt_more
object core engine "shunt_more" shunt_engine
look 1
has "$out" '^base/lock\.c -> stream/more\.c \(base -> stream\): shunt_more$'
echo 'base/lock.c -> stream/more.c: planted' >"$exceptions"
look 0

# Nine files that call each other in turn.
for i in 1 2 3 4 5 6 7 8 9; do
	object core/stream "turn$i" "shunt_turn$((i % 9 + 1))" "shunt_turn$i"
done
look 1
has "$out" '^cycle stream 9: '
echo 'cycle stream 9: planted' >>"$exceptions"
look 0
object core/stream turn9 "" shunt_turn9
look 1
has "$out" '^exception without a case: cycle stream 9 '

# Includes leave no symbols: those of headers and of sources are counted apart.
source=$work/source
mkdir -p "$source/core/base" "$source/core/stream"
includes() { # STATUS
	expect "$1" "$rooms" --includes --source "$source" --table "$table" --exceptions "$exceptions" "$build"
}
echo 'base/lock.c -> stream/more.c: planted' >"$exceptions"
printf '#include "core/base/lock.h"\n#include <stdio.h>\n' >"$source/core/stream/more.c"
includes 0
has "$out" '; includes that climb: 0 in headers, 0 in sources$'
echo '#include "core/stream/more.h"' >"$source/core/base/lock.h"
echo '# include "core/engine.h"' >"$source/core/base/lock.c"
echo 'includes sources 1: planted' >>"$exceptions"
includes 1
has "$out" '^base/lock\.h includes core/stream/more\.h \(base -> stream\)$'
has "$out" '^1 includes of headers climb, 0 may$'
has "$out" '; includes that climb: 1 in headers, 1 in sources$'
echo 'includes headers 1: planted' >>"$exceptions"
includes 0
look 0
: >"$source/core/base/lock.c"
includes 1
has "$out" '^exception without a case: includes sources 1 \(there are 0\)$'

# What files say of themselves, which tests name them, and which guard each room.
mkdir -p "$source/tests/unit"
list() { # STATUS ROOM…
	expect "$1" "$rooms" --list --source "$source" --table "$table" "${@:2}"
}
printf '/* SPDX-License-Identifier: MIT */\n/*\n * A lock of one\n * word. More of it.\n */\n' >"$source/core/base/lock.h"
printf '/* A clock. */\nint shunt_clock_read(void);\n' >"$source/core/base/clock.h"
printf '#include "core/base/lock.h"\n' >"$source/tests/unit/lock_test.c"
list 0 base
has "$out" '^base: unit/lock_test$'
has "$out" '^  core/base/lock: A lock of one word\.$'
has "$out" '^    unit/lock_test$'
has "$out" '^    no test names it$'
printf 'static int (*now)(void) = shunt_clock_read;\n' >"$source/tests/unit/clock_test.c"
list 0 base
has "$out" '^    unit/clock_test$'
lacks "$out" 'no test names it'
list 1
has "$err" '^core/stream/more does not say in its first comment what it is$'
has "$err" '^stream: unit/lock_test neither includes nor calls anything of it$'
has "$err" '^stream/track: there is no test run$'
has "$err" '^no test guards engine$'
mkdir "$source/core/attic"
printf '/* Old things. */\n' >"$source/core/attic/thing.c"
list 1
has "$err" '^core/attic/thing is in no room$'
list 2 attic
has "$err" 'no room attic; there are base stream/track stream engine$'

expect 1 "$rooms" --table "$table" --exceptions /dev/null --json "$build"
has "$out" '"caller": "base/lock"'
expect 2 "$rooms" --wrong
finish
