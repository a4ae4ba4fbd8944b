/* SPDX-License-Identifier: MIT */
#include "core/peer/claim_task.h"
#include <string.h>
#include "core/peer/claim.h"
#include "core/peer/claim_state.h"
#include "core/peer/rendezvous.h"
#include "core/peer/verdict.h"
#include "core/service.h"
#include "core/stream/offer.h"
#include "core/stream/tuple.h"
#include "core/stream/unclaimed.h"

void shunt_claim_task_offers_run(struct shunt_task *task)
{
	struct shunt_service *service =
		shunt_engine_of(task, work.tasks.claim_task_offers)->service;
	struct shunt_stream *stream = atomic_load(&service->leaving) ?
					      NULL :
					      shunt_offer_take(&service->engine->work),
			    *next;

	for (; stream; stream = next) {
		next = stream->claim.next_inbox;
		shunt_claim_offer(service, stream);
	}
}

/* The kernel is asked for the peer's address only where some host has another key. */
static bool has_other_key(struct shunt_engine *engine, struct shunt_stream *stream)
{
	static const uint8_t none[16];
	const struct shunt_rendezvous *r = stream->rendezvous;

	return r && memcmp(r->other_key, none, 16) && !shunt_claim_learn(engine, stream) &&
	       !memcmp(r->other_key, stream->tuple.peer, 16);
}

/* Other hosts can claim it, and its peer is on one, for which it may not have lasted yet. */
static bool is_excused(struct shunt_engine *engine, struct shunt_stream *stream)
{
	const struct shunt_rendezvous *r = stream->rendezvous;

	return r && r->remote && !shunt_claim_learn(engine, stream) &&
	       !shunt_tuple_is_local(&engine->fds, &stream->tuple) &&
	       shunt_unclaimed_excuses(stream);
}

/* Why its time is over; NONE: it is not. */
static enum shunt_cause verdict(struct shunt_engine *engine, struct shunt_stream *stream)
{
	if (shunt_verdict_leaves(stream))
		return SHUNT_CAUSE_RULE;
	if (has_other_key(engine, stream))
		return SHUNT_CAUSE_OTHER_KEY;
	return is_excused(engine, stream) ? SHUNT_CAUSE_NONE : shunt_unclaimed_reason(stream);
}

void shunt_claim_task_unclaimed_run(struct shunt_task *task)
{
	struct shunt_engine *engine = shunt_engine_of(task, work.tasks.claim_task_unclaimed);
	struct shunt_unclaimed_look look = { .now = shunt_now(engine), .next = SHUNT_NEVER };
	uint64_t soon = look.now + engine->config.claim_ms * 1000000 / 8;
	struct shunt_stream *stream;

	while ((stream = shunt_unclaimed_next(engine, &look)) != NULL) {
		enum shunt_cause cause = verdict(engine, stream);

		if (cause)
			shunt_claim_stays(engine, stream, cause);
	}
	/* Where connections come all the time, one look is for many of them. */
	shunt_task_at(task, look.next > look.now && look.next < soon ? soon : look.next);
}
