/* SPDX-License-Identifier: MIT */
#include "core/stream/release.h"
#include "core/stream/streams.h"
#include "core/lane/send_queue.h"
#include "core/stream/deferred_fin.h"

/* A stream that has released its seat may be reaped at any moment. group.lock keeps its link. */
static uint8_t state_of_link(struct shunt_stream *stream)
{
	struct shunt_link *link;
	uint8_t state;

	shunt_lock_take(&stream->group->lock);
	link = stream->seat->link;
	state = link ? atomic_load(&link->state) : SHUNT_LINK_DEAD;
	shunt_lock_leave(&stream->group->lock);
	return state;
}

bool shunt_streams_owes(const struct shunt_stream *stream)
{
	const struct shunt_seat_out *out = &stream->seat->out;

	return (shunt_heading_on_link(&out->heading) || shunt_heading_unpassed(&out->heading)) &&
	       (atomic_load(&out->staged) != atomic_load(&out->posted) ||
		shunt_send_queue_is_needed(stream->seat));
}

void shunt_streams_let_go(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	shunt_assert_held(&stream->tx.lock);
	if ((shunt_heading_halted(&out->heading) && shunt_streams_owes(stream)) ||
	    tx->backlog.bytes || atomic_load(&out->pin))
		return;
	shunt_deferred_fin_resume(stream);
	shunt_streams_released(stream, SHUNT_RELEASED_BY_BOTH);
	shunt_loop_wake(stream->group->loop);
}

void shunt_streams_leave_dead(struct shunt_stream *stream)
{
	uint8_t state = state_of_link(stream);

	shunt_assert_held(&stream->tx.lock);
	if (state == SHUNT_LINK_BROKEN && shunt_intake_final(&stream->seat->in.intake))
		shunt_streams_let_go(stream);	/* it has been told of; else that is still to come, and does this */
	if (state == SHUNT_LINK_DEAD) {	/* nobody is there to release it */
		shunt_streams_released(stream, SHUNT_RELEASED_BY_BOTH);
		shunt_loop_wake(stream->group->loop);
	}
}
