/* SPDX-License-Identifier: MIT */
#include "core/stream/unclaimed.h"
#include "core/peer/claim.h"

#define MS 1000000ull

static uint64_t patience(const struct shunt_engine *engine)
{
	return engine->config.claim_ms * MS;
}

/* Candidates that could be claimed, and have carried a byte. */
static bool waits(struct shunt_stream *stream)
{
	return stream->role == SHUNT_ACCEPTOR && atomic_load(&stream->carried_since) && !stream->link && !stream->line &&
	       atomic_load(&stream->state) == SHUNT_CANDIDATE;
}

bool shunt_unclaimed_is_over(struct shunt_stream *stream)
{
	return waits(stream) && shunt_now(stream->engine) - atomic_load(&stream->carried_since) >= patience(stream->engine);
}

void shunt_unclaimed_begin(struct shunt_stream *stream)
{
	struct shunt_engine *engine = stream->engine;
	uint64_t never = 0;

	if (stream->role != SHUNT_ACCEPTOR || atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return;
	if (!atomic_compare_exchange_strong(&stream->carried_since, &never, shunt_now(engine)))
		return;	/* the other direction was first */
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->service->tasks.unclaimed, 0);
}

struct look {
	uint64_t now, next;	/* next: when the first of the others is due */
};

static bool is_due(struct shunt_stream *stream, void *arg)
{
	struct look *look = arg;
	uint64_t due;

	if (stream->fd < 0 || !waits(stream))
		return false;
	/* The owner of its address has been told, and whoever claims it there is sent here. */
	due = atomic_load(&stream->carried_since) + patience(stream->engine) * (stream->told ? 2 : 1);
	if (due > look->now && due < look->next)
		look->next = due;
	return due <= look->now;
}

/* Claims come to the owner of the address, who does not hear of what we have. */
static enum shunt_reason why(const struct shunt_stream *stream)
{
	const struct shunt_rendezvous *r = stream->rendezvous;

	return r && r->fd < 0 && r->turned_away ? SHUNT_REASON_ALONE : SHUNT_REASON_NO_SHUNT;
}

/* When the next is due. */
static uint64_t give_up_due(struct shunt_engine *engine, uint64_t now)
{
	struct look look = { .now = now, .next = SHUNT_NEVER };
	struct shunt_sweep sweep = { .wants = is_due, .arg = &look };
	struct shunt_stream *stream;

	while ((stream = shunt_streams_next(engine, &sweep)) != NULL)
		shunt_claim_stays(engine, stream, why(stream));
	return look.next;
}

void shunt_unclaimed_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_service_of(task, unclaimed)->engine;
	uint64_t now = shunt_now(engine), soon = now + patience(engine) / 8, next = give_up_due(engine, now);

	/* Where connections come all the time, one look is for many of them. */
	shunt_task_at(task, next > now && next < soon ? soon : next);
}
