/* SPDX-License-Identifier: MIT */
#include "core/stream/plain.h"
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/stream/marks.h"
#include "core/stream/stream_error.h"
#include "core/stream/tapped.h"

void shunt_streams_plain(struct shunt_engine *engine, struct shunt_stream *stream,
			 enum shunt_cause cause)
{
	shunt_streams_because(engine, stream, cause);
	shunt_lock_take(&stream->rx.lock);
	shunt_lock_take(&stream->tx.lock);
	if (atomic_load(&stream->state) == SHUNT_CANDIDATE && !shunt_stream_knows_more(stream)) {
		shunt_tapped_event(stream, SHUNT_TAP_LEFT);
		atomic_store(&stream->state,
			     shunt_fork_slots_settle(&shunt_stream_engine(stream)->forks,
						     &stream->sharing) ?
				     SHUNT_PLAIN :
				     SHUNT_FOREIGN);
	}
	shunt_lock_leave(&stream->tx.lock);
	shunt_lock_leave(&stream->rx.lock);
	shunt_marks_undo(stream);	/* another process may have the socket soon */
}

bool shunt_streams_ours(struct shunt_engine *engine, struct shunt_stream *stream)
{
	enum shunt_whose whose = shunt_fork_slots_touch(&shunt_stream_engine(stream)->forks,
							&stream->sharing);

	if (whose != SHUNT_OURS)
		shunt_streams_plain(engine, stream, SHUNT_CAUSE_FORK);
	return whose == SHUNT_OURS;
}
