#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/locks refuses a call without the lock that the callee wants, and a lock that is not left.
set -eu

locks=${top_srcdir:?}/tools/locks
command -v clang >/dev/null || { echo "there is no clang"; exit 77; }
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$top_srcdir/tests/lib.sh"

# calls CODE…: a function of these statements.
calls() {
	{
		printf '#include "core/%s"\n' engine.h stream/track.h
		echo 'void planted(struct shunt_engine *engine, struct shunt_stream *stream);'
		echo 'void planted(struct shunt_engine *engine, struct shunt_stream *stream) {'
		printf '%s\n' "$@"
		echo '}'
	} >"$work/planted.c"
}

calls 'shunt_lock_take(&stream->tx.lock);' 'shunt_track_choose(engine, stream);' 'shunt_lock_leave(&stream->tx.lock);'
expect 0 "$locks" "$work/planted.c"

calls 'shunt_track_choose(engine, stream);'
expect 1 "$locks" "$work/planted.c"
has "$err" "calling function 'shunt_track_choose' requires holding mutex 'stream->tx.lock'"

calls 'shunt_lock_take(&stream->rx.lock);' 'shunt_track_choose(engine, stream);' 'shunt_lock_leave(&stream->rx.lock);'
expect 1 "$locks" "$work/planted.c"

calls 'shunt_lock_take(&stream->tx.lock);' 'shunt_track_choose(engine, stream);'
expect 1 "$locks" "$work/planted.c"
has "$err" "mutex 'stream->tx.lock' is still held at the end of function"

# A function that another has called by pointer makes sure.
calls 'shunt_assert_held(&stream->tx.lock);' 'shunt_track_choose(engine, stream);'
expect 0 "$locks" "$work/planted.c"
finish
