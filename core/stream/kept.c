/* SPDX-License-Identifier: MIT */
#include "core/stream/kept.h"
#include <stdlib.h>
#include "core/engine.h"
#include "core/fd/own_fds.h"
#include "core/stream/births.h"
#include "core/stream/spare.h"

void shunt_kept_forget(struct shunt_engine *engine, struct shunt_stream *stream)
{
	struct shunt_spare *spare = stream->spare;

	shunt_assert_held(&engine->streams_lock);
	if (!spare)
		return;
	shunt_lock_take(&engine->group.lock);
	stream->spare = NULL;
	shunt_births_let_go(&engine->spares, spare->births);
	shunt_lock_leave(&engine->group.lock);
	shunt_own_fds_close(&engine->fds, spare->fd);
	atomic_fetch_sub(&engine->spares.count, 1);
	free(spare);
}

void shunt_kept_ends(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_spare *spare = stream->spare;

	if (!spare)
		return;
	atomic_store(&spare->ends, true);
	shunt_loop_post(&engine->loop, &engine->work.tasks.spare);
}

bool shunt_kept_by_both(const struct shunt_stream *stream)
{
	const uint8_t both = SHUNT_RELEASED_BY_BOTH | SHUNT_RELEASE_KEPT | SHUNT_RELEASE_KEEPS;

	return (atomic_load(&stream->seat->release) & both) == both;
}

bool shunt_kept_shut(const struct shunt_stream *stream)
{
	return atomic_load(&stream->seat->out.fin_later.put_off);
}

bool shunt_kept_unshut(struct shunt_stream *stream)
{
	shunt_assert_held(&stream->tx.lock);
	return atomic_load(&stream->seat->out.fin_later.put_off) &&
	       atomic_exchange(&stream->seat->out.fin_later.put_off, false);
}

bool shunt_kept_waits(const struct shunt_stream *stream)
{
	const struct shunt_spare *spare = stream->spare;

	return spare && atomic_load(&spare->waits);
}

bool shunt_kept_rests(const struct shunt_stream *stream)
{
	const struct shunt_spare *spare = stream->spare;

	return spare && atomic_load(&spare->rests);
}

void shunt_kept_later(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	struct shunt_stream *first = atomic_load(&engine->spares.again);

	if (!stream->spare || atomic_exchange(&stream->listed, true))
		return;
	do {
		stream->next_again = first;
	} while (!atomic_compare_exchange_weak(&engine->spares.again, &first, stream));
	atomic_store(&engine->group.after_due, true); /* whoever polls next looks at it */
}
