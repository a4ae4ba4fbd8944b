/* SPDX-License-Identifier: MIT */
#include "core/stream/user_timeout.h"
#include "core/engine.h"

static void due(struct shunt_engine *engine)
{
	if (engine->service)
		shunt_loop_post(&engine->loop, &engine->work.tasks.expire);
}

void shunt_user_timeout_note(struct shunt_stream *stream, uint64_t late)
{
	struct shunt_seat *seat = shunt_stream_seat(stream);
	uint64_t none = 0;

	if (shunt_seat_is_none(seat) || atomic_load(&seat->out.stuck_since))
		return;
	if (atomic_compare_exchange_strong(&seat->out.stuck_since, &none,
					   stream->group->sys->now() - late))
		due(shunt_stream_engine(stream));
}

void shunt_user_timeout_changed(struct shunt_stream *stream)
{
	atomic_store(&stream->options.user_timeout_ms, SHUNT_USER_TIMEOUT_UNKNOWN);
	if (atomic_load(&stream->seat->out.starved) ||
	    shunt_heading_halted(&stream->seat->out.heading))
		shunt_user_timeout_note(stream, 0);
	if (atomic_load(&stream->seat->out.stuck_since))
		due(shunt_stream_engine(stream));
}
