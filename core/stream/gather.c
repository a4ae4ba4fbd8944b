/* SPDX-License-Identifier: MIT */
#include "core/stream/gather.h"
#include "core/loop/request.h"
#include "core/engine.h"
#include "core/stream/tx.h"

#define GATHER_NS 200000000ull	/* tcp(7) */

/* One that announced more long ago: what it has gathered is sent. Others are looked at again. */
static int end_gathering(struct shunt_stream *stream, void *arg)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t since = atomic_load(&out->gather_since);

	(void)arg;
	if (!since)
		return 0;
	if (shunt_now(engine) - since >= GATHER_NS &&
	    shunt_lock_try(&tx->lock)) {
		shunt_stream_push(stream);
		atomic_store(&out->gather_since, 0);
		shunt_lock_leave(&tx->lock);
	} else {
		shunt_task_at(&engine->loop.requests.gather,
			      shunt_now(engine) + SHUNT_GATHER_LOOK);
	}
	return 0;
}

void shunt_gather_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, loop.requests.gather);

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, end_gathering, NULL);
	shunt_lock_leave(&engine->streams_lock);
}
