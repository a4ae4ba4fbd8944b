/* SPDX-License-Identifier: MIT */
#include "core/stream/unclaimed.h"
#include "core/engine.h"
#include "core/peer/rendezvous.h"

#define MS 1000000ull

static uint64_t patience(const struct shunt_engine *engine)
{
	return shunt_config_live(&engine->config.claim_ms) * MS;
}

/* Candidates that could be claimed, and have carried a byte. */
static bool waits(struct shunt_stream *stream)
{
	return stream->role == SHUNT_ACCEPTOR && atomic_load(&stream->carried_since) &&
	       atomic_load(&stream->lasting) != SHUNT_LASTING_WAITS && !stream->seat->link &&
	       !stream->claim.line && !stream->possession &&
	       atomic_load(&stream->state) == SHUNT_CANDIDATE && !shunt_stream_is_doubted(stream) &&
	       !stream->doubt.settled;
}

bool shunt_unclaimed_is_over(struct shunt_stream *stream)
{
	return waits(stream) && stream->group->sys->now() - atomic_load(&stream->carried_since) >=
					patience(shunt_stream_engine(stream));
}

static void remind(struct shunt_engine *engine)
{
	if (engine->service)
		shunt_loop_remind(&engine->loop, &engine->work.tasks.claim_task_unclaimed, 0);
}

void shunt_unclaimed_begin(struct shunt_stream *stream)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	uint64_t never = 0;

	if (stream->role != SHUNT_ACCEPTOR || atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return;
	if (!atomic_compare_exchange_strong(&stream->carried_since, &never, shunt_now(engine)))
		return;	/* the other direction was first */
	remind(engine);
}

void shunt_unclaimed_goes_on(struct shunt_stream *stream)
{
	uint32_t transfers = atomic_load_explicit(&stream->uses, memory_order_relaxed) + 1;

	if (stream->role != SHUNT_ACCEPTOR)
		return;
	atomic_store_explicit(&stream->uses, transfers, memory_order_relaxed);
	if (!shunt_short_lived_is_long(transfers))
		return;
	atomic_store(&stream->carried_since, stream->group->sys->now());
	atomic_store(&stream->lasting, SHUNT_LASTING_PROVEN);
	remind(shunt_stream_engine(stream));
}

bool shunt_unclaimed_excuses(struct shunt_stream *stream)
{
	uint8_t unknown = SHUNT_LASTING_UNKNOWN;

	return atomic_compare_exchange_strong(&stream->lasting, &unknown, SHUNT_LASTING_WAITS);
}

static bool is_due(struct shunt_stream *stream, void *arg)
{
	struct shunt_unclaimed_look *look = arg;
	uint64_t due;

	if (stream->fd < 0 || !waits(stream))
		return false;
	/* The owner of its address has been told, and whoever claims it there is sent here. */
	due = atomic_load(&stream->carried_since) +
	      patience(shunt_stream_engine(stream)) *
		      (stream->claim.state == SHUNT_CLAIM_TOLD ? 2 : 1);
	if (due > look->now && due < look->next)
		look->next = due;
	return due <= look->now;
}

enum shunt_cause shunt_unclaimed_reason(const struct shunt_stream *stream)
{
	const struct shunt_rendezvous *r = stream->rendezvous;

	return r && r->fd < 0 && r->turned_away ? SHUNT_CAUSE_ALONE : SHUNT_CAUSE_NO_SHUNT;
}

struct shunt_stream *shunt_unclaimed_next(struct shunt_engine *engine,
					  struct shunt_unclaimed_look *look)
{
	look->sweep.wants = is_due;
	look->sweep.arg = look;
	return shunt_streams_next(engine, &look->sweep);
}
