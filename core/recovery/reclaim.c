/* SPDX-License-Identifier: MIT */
/*
 * Memory that is not needed goes back. Rings of streams that are idle are exchanged for small ones without pages. Empty
 * blocks of the arenas go (XR-14). The service thread looks every `trim_every` ns while a ring has grown or a block is
 * empty. So what is empty is kept for one to two seconds. Of idle rings that have not grown idle.c tells it.
 *
 * Nothing of this costs a send or a receive anything. An idle stream is seen by its offsets, which have not moved from
 * one look to the next.
 */
#include "core/lane/send_queue.h"
#include "core/stream/streams.h"
#include "core/recovery/idle.h"
#include "core/recovery/reclaim.h"
#include "core/service.h"
#include "core/stream/kept.h"
#include "core/stream/rings.h"
#include "core/stream/track.h"

#define AT_ONCE 16	/* rings that are offered at one look, but for one, take no more than this part of the arena */

/*
 * A ring that is worth looking at: more may come in it, and it may become smaller. A spare that rests keeps its own: the
 * peer's end may not have begun anew yet, and may hear of nothing but its release. rx.lock held.
 */
static bool is_worth(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return atomic_load(&stream->state) == SHUNT_LINKED && stream->seat->link == link &&
	       !shunt_kept_rests(stream) && shunt_rings_may_shrink(stream) &&
	       !shunt_intake_final(&in->intake) && !shunt_intake_copied(&in->intake) &&
	       !shunt_end_has(&stream->end, SHUNT_END_RESET) &&
	       shunt_end_at(&stream->end) == SHUNT_NEVER && !shunt_stream_is_released(stream);
}

/* Nothing has moved for long enough, all of it has been read, and nothing is being changed. rx.lock held. */
static bool is_quiet(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t now)
{
	struct shunt_seat_in *in = &stream->seat->in;

	return shunt_idle_stream(stream, now) >= engine->lanes.ring_quiet &&
	       atomic_load(&in->tail) == atomic_load(&stream->rx.head) &&
	       !atomic_load(&in->ring.next_bytes) && shunt_intake_on_link(&in->intake) &&
	       atomic_load(&in->boundary) == SHUNT_NEVER && shunt_stream_stays(stream);
}

/* True: it was offered, or will be when others have been. rx.lock held. */
static bool shrink(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t *room)
{
	uint64_t bytes = engine->config.ring_min;

	shunt_assert_held(&stream->rx.lock);
	if (*room < bytes)
		return true;
	if (!shunt_rings_offer_small(engine, stream))
		return false;
	*room -= bytes;
	return true;
}

/*
 * Our ring of the stream. `room`: bytes that may still be offered. True: to be looked at again. One that has not grown
 * is looked at once, to hear of the answer. If the peer answers late, or a byte comes first, idle.c asks again.
 */
static bool look_at_ring(struct shunt_engine *engine, struct shunt_link *link,
			 struct shunt_stream *stream, uint64_t now, uint64_t *room)
{
	bool grown = __atomic_load_n(&stream->seat->in.ring.bytes, __ATOMIC_RELAXED) >
		     engine->config.ring_min;
	bool worth, offered;

	if (!shunt_rings_may_shrink(stream))
		return false;
	if (!shunt_lock_try(&stream->rx.lock))
		return grown;	/* somebody reads */
	shunt_track_settle(stream);
	worth = is_worth(link, stream);
	offered = worth && is_quiet(engine, stream, now) && shrink(engine, stream, room);
	shunt_lock_leave(&stream->rx.lock);
	return (worth && grown) || offered;
}

/*
 * A ring of the peer that could not be used when it was offered. The next send uses a larger one; where there is none it
 * is used here. The same.
 */
static bool look_at_offer(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t now)
{
	struct shunt_seat_out *out = &stream->seat->out;
	uint64_t offer = atomic_load_explicit(&out->ring.offer, memory_order_relaxed);
	bool again = true;

	if (!offer || (shunt_ring_bytes(offer) > atomic_load(&out->ring.bytes) &&
		       shunt_idle_stream(stream, now) < engine->lanes.ring_quiet))
		return false;
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
	uint64_t room = engine->config.ring_min + link->arena.memory.bytes / AT_ONCE;
	struct shunt_stream *stream;
	bool again = false;

	if (atomic_load(&link->state) != SHUNT_LINK_UP || atomic_load(&link->failed))
		return false;
	/* Its memory is a stream's in any case; whether it is still this one, its lock tells. */
	shunt_streams_seated(link, stream)
	{
		again |= look_at_ring(engine, link, stream, now, &room);
		again |= look_at_offer(engine, stream, now);
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
	task->not_before = now + service->engine->trim_every;	/* whatever a peer offers */
	if (again)
		shunt_task_at(task, task->not_before);
}
