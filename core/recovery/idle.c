/* SPDX-License-Identifier: MIT */
#include "core/recovery/idle.h"
#include "core/lane/nop.h"
#include "core/loop/request.h"
#include "core/stream/rings.h"
#include "core/stream/streams.h"
#include "core/service.h"

#define SOON 1000000000ull	/* ns between two looks, if something has moved at the last one */
#define SELDOM 32000000000ull	/* at most */
#define STANDS_STILL 2000000000ull	/* a link on which nothing moves though a stream waits for credit (nop.h) */

/* The object has moved as far as `moved`. Returns ns since it stands still. */
static uint64_t look(struct shunt_idle *idle, uint64_t moved, uint64_t now)
{
	uint64_t since = atomic_load(&idle->since);

	if (!since || atomic_load(&idle->moved) != moved) {
		atomic_store(&idle->moved, moved);
		atomic_store(&idle->since, now);
		return 0;
	}
	return now > since ? now - since : 0;
}

uint64_t shunt_idle_stream(struct shunt_stream *stream, uint64_t now)
{
	const struct shunt_seat_out *out = &stream->seat->out;
	const struct shunt_rx *rx = &stream->rx;

	return look(&stream->seat->idle,
		    atomic_load(&out->staged) + atomic_load(&out->posted) +
			    atomic_load(&stream->seat->in.tail) + atomic_load(&rx->head),
		    now);
}

uint64_t shunt_idle_link(struct shunt_link *link, uint64_t now)
{
	uint64_t moved = 0;

	for (uint32_t i = 0; i < link->lane_count; i++)
		moved += link->lanes[i].received + atomic_load(&link->lanes[i].retired);
	return look(&link->idle, moved, now);
}

/* Its rings are to be looked at: one that has memory, or one of the peer's that it has not begun with. */
static bool may_give(const struct shunt_stream *stream)
{
	return shunt_rings_may_shrink(stream) || atomic_load(&stream->seat->out.ring.offer);
}

/* True: it has moved since the last look. */
static bool look_at_stream(struct shunt_engine *engine, struct shunt_stream *stream, uint64_t now)
{
	uint64_t idle = shunt_idle_stream(stream, now);

	if (idle >= engine->lanes.ring_quiet && may_give(stream))
		shunt_request_memory(&engine->loop);
	return !idle;
}

/* True: something of it has moved since the last look. */
static bool look_at(struct shunt_link *link, uint64_t now)
{
	struct shunt_group *group = &link->engine->group;
	struct shunt_stream *stream;
	uint64_t idle;
	bool moved;

	shunt_lock_take(&group->lock);
	idle = shunt_idle_link(link, now);
	shunt_lock_leave(&group->lock);
	moved = !idle;
	for (uint32_t i = 0; idle >= STANDS_STILL && i < link->lane_count; i++)
		if (shunt_nop_ask(&link->lanes[i]))
			atomic_fetch_add(&link->engine->nops, 1);
	shunt_streams_seated(link, stream) moved |= look_at_stream(link->engine, stream, now);
	return moved;
}

void shunt_idle_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, idle);
	uint64_t now = shunt_now(service->engine);
	bool moved = false;

	shunt_group_poll_fully(&service->engine->group);	/* a peer may wait for us to use its ring, and no program polls */
	for (struct shunt_link *link = service->links; link; link = link->next)
		moved |= look_at(link, now);
	service->idle_every = moved			       ? SOON :
			      2 * service->idle_every < SELDOM ? 2 * service->idle_every :
								 SELDOM;
	if (service->links)
		shunt_task_at(task, now + service->idle_every);
}

void shunt_idle_begin(struct shunt_service *service)
{
	if (service->engine->loop.manual)	/* the simulator looks when it likes */
		return;
	service->idle_every = SOON;
	shunt_task_at(&service->tasks.idle, shunt_now(service->engine) + SOON);
}
