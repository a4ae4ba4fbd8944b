/* SPDX-License-Identifier: MIT */
/*
 * Memory that is not needed goes back. Rings that have grown become small again when nothing has come for some
 * seconds, and empty blocks of the arenas go (XR-14). The service thread looks every `trim_every` ns while there is
 * something to look at, so what is empty is kept for one to two seconds.
 *
 * Nothing of this costs a send or a receive anything. A quiet ring is seen by its tail, which has not moved from one
 * look to the next.
 */
#include "core/lane/send_queue.h"
#include "core/stream/streams.h"
#include "core/recovery/reclaim.h"
#include "core/service.h"
#include "core/stream/rings.h"
#include "core/stream/track.h"

/* A ring that is worth looking at: more may come in it, and it may become smaller. rx.lock held. */
static bool may_shrink(struct shunt_engine *engine, struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return atomic_load(&stream->state) == SHUNT_LINKED && stream->seat->link == link &&
	       in->ring.bytes > engine->config.ring_min && !shunt_intake_final(&in->intake) &&
	       !shunt_intake_copied(&in->intake) && !shunt_end_has(&stream->end, SHUNT_END_RESET) &&
	       shunt_end_at(&stream->end) == SHUNT_NEVER && !shunt_stream_is_released(stream);
}

/* Nothing has come for long enough, all of it has been read, and nothing is being changed. rx.lock held. */
static bool is_quiet(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t now)
{
	struct shunt_rx *rx = &stream->rx;
	struct shunt_seat_in *in = &stream->seat->in;
	uint64_t tail = atomic_load(&in->tail);

	if (tail != in->ring.quiet_tail || tail != atomic_load(&rx->head) ||
	    atomic_load(&in->ring.next_bytes)) {
		in->ring.quiet_tail = tail;
		in->ring.quiet_since = now;
		return false;
	}
	return now - in->ring.quiet_since >= engine->lanes.ring_quiet &&
	       shunt_intake_on_link(&in->intake) && atomic_load(&in->boundary) == SHUNT_NEVER &&
	       shunt_stream_stays(stream);
}

/* Our ring of the stream. True: to be looked at again. */
static bool look_at_ring(struct shunt_engine *engine, struct shunt_link *link, struct shunt_stream *stream,
			 uint64_t now)
{
	bool again;

	if (__atomic_load_n(&stream->seat->in.ring.bytes, __ATOMIC_RELAXED) <= engine->config.ring_min)
		return false;
	if (!shunt_lock_try(&stream->rx.lock))
		return true;	/* somebody reads */
	shunt_track_settle(stream);
	again = may_shrink(engine, link, stream);
	if (again && is_quiet(engine, stream, now))
		shunt_rings_offer_small(engine, stream);
	shunt_lock_leave(&stream->rx.lock);
	return again;
}

/* A smaller ring of the peer that could not be used when it was offered. The same. */
static bool look_at_offer(struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t offer = atomic_load_explicit(&out->ring.offer, memory_order_relaxed);
	bool again = true;

	if (!offer || shunt_ring_bytes(offer) >= out->ring.bytes)
		return false;	/* the next send uses a larger one */
	if (!shunt_lock_try(&stream->tx.lock))
		return true;
	again = !shunt_rings_change(stream);
	shunt_lock_leave(&stream->tx.lock);
	return again;
}

/* A stage that was widened for what the peer did not read (overflow.c). The same. */
static bool look_at_stage(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_seat_out *out = &stream->seat->out;
	bool again;

	if (out->stage.size <= SHUNT_SEND_QUEUE_BYTES)
		return false;
	if (!shunt_lock_try(&stream->tx.lock))
		return true;	/* somebody sends */
	again = stream->seat->link == link && shunt_send_queue_narrow(stream->seat);
	shunt_lock_leave(&stream->tx.lock);
	return again;
}

static bool look_at_streams(struct shunt_engine *engine, struct shunt_link *link, uint64_t now)
{
	struct shunt_stream *stream;
	bool again = false;

	if (atomic_load(&link->state) != SHUNT_LINK_UP || atomic_load(&link->failed))
		return false;
	/* Its memory is a stream's in any case; whether it is still this one, its lock tells. */
	shunt_streams_seated(link, stream)
	{
		again |= look_at_ring(engine, link, stream, now);
		again |= look_at_offer(stream);
		again |= look_at_stage(link, stream);
	}
	return again;
}

void shunt_reclaim_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_engine_of(task, loop.requests.reclaim)->service;
	uint64_t now = shunt_now(service->engine);
	bool again = false;

	shunt_group_poll_fully(&service->engine->group);	/* perhaps nobody else does */
	for (struct shunt_link *link = service->links; link; link = link->next) {
		again |= look_at_streams(service->engine, link, now);
		again |= shunt_arena_tidy(&link->arena);
	}
	if (!again)
		return;
	task->not_before = now + service->engine->trim_every;
	shunt_task_at(task, task->not_before);
}
