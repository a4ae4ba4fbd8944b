/* SPDX-License-Identifier: MIT */
#include "core/engine.h"
#include "core/peer/claim_state.h"
#include <string.h>
#include <sys/epoll.h>
#include "core/base/machine.h"
#include "core/link/trust.h"
#include "core/peer/reconnect.h"
#include "core/peer/rendezvous.h"
#include "core/peer/witness.h"
#include "core/service.h"
#include "core/stream/doubt.h"
#include "core/stream/sleep.h"
#include "core/stream/slow_stream.h"
#include "core/stream/tuple.h"
#include "core/trace/probe.h"

#define AGAIN 50000000ull	/* ns that a refusal counts for connections that are claimed once more (core/stream/doubt.h) */

static bool may_follow(uint32_t from, uint32_t to)
{
	switch (from) {
	case SHUNT_CLAIM_UNDER_WAY:
		return to == SHUNT_UNCLAIMED || to == SHUNT_CLAIM_LEAVING;
	case SHUNT_CLAIM_AGREED:
		return to == SHUNT_UNCLAIMED;
	case SHUNT_CLAIM_LEAVING:
		return to != SHUNT_CLAIM_LEAVING && to != SHUNT_CLAIM_AGREED;
	default:
		return true;
	}
}

uint32_t shunt_claim_after(uint32_t from, uint32_t to)
{
	return may_follow(from, to) ? to : SHUNT_MACHINE_WRONG;
}

static const char *const states[SHUNT_CLAIM_STATES] = { "UNCLAIMED", "TOLD", "UNDER_WAY", "AGREED",
							"LEAVING" };
const struct shunt_machine shunt_claim_machine = { "claim", "core/peer/claim_state.h",
						   shunt_claim_after, states, NULL };

void shunt_claim_turn(struct shunt_stream *stream, enum shunt_claim_state to)
{
	shunt_machine_turn(&shunt_claim_machine, &stream->claim.state, to);
}

bool shunt_claim_try(struct shunt_stream *stream, enum shunt_claim_state to)
{
	uint32_t before;

	return shunt_machine_try(&shunt_claim_machine, &stream->claim.state, to, &before);
}

bool shunt_claim_is_pending(const struct shunt_stream *stream)
{
	return stream->claim.state == SHUNT_CLAIM_UNDER_WAY ||
	       stream->claim.state == SHUNT_CLAIM_LEAVING;
}

void shunt_claim_begin(struct shunt_stream *stream)
{
	shunt_streams_hold(stream);
	shunt_claim_turn(stream, SHUNT_CLAIM_UNDER_WAY);
	stream->claim.begun = shunt_slow_begin(&shunt_stream_engine(stream)->steps);
}

void shunt_claim_end(struct shunt_stream *stream)
{
	if (stream->claim.state != SHUNT_CLAIM_UNDER_WAY)
		return;
	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	shunt_slow_stream(&shunt_stream_engine(stream)->steps, stream, SHUNT_STEP_CLAIM,
			  stream->claim.begun,
			  stream->seat->link ? stream->seat->link->peer_pid : 0);
	shunt_streams_unhold(stream);
}

/*
 * A connector of this host whose peer did not have it: a process that gets it by exec or by SCM_RIGHTS may have it later.
 * The reason is said all the same, and taken back if that comes true.
 */
static bool is_put_off(struct shunt_engine *engine, struct shunt_stream *stream,
		       enum shunt_cause cause)
{
	enum shunt_cause why = stream->why.plain ? stream->why.plain : cause;
	uint8_t most = why == SHUNT_CAUSE_NO_SHUNT ? SHUNT_DOUBT_CLAIMS_ALONE : SHUNT_DOUBT_CLAIMS;

	if (stream->role != SHUNT_CONNECTOR ||
	    (why != SHUNT_CAUSE_NO_SHUNT && why != SHUNT_CAUSE_NOT_HAD &&
	     why != SHUNT_CAUSE_PEER_UNUSED) ||
	    !shunt_tuple_is_known(&stream->tuple) ||
	    !shunt_tuple_is_local(&engine->fds, &stream->tuple) || !shunt_doubt_later(stream, most))
		return false;
	shunt_streams_because(engine, stream, why);
	return true;
}

void shunt_claim_stays(struct shunt_engine *engine, struct shunt_stream *stream,
		       enum shunt_cause cause)
{
	SHUNT_PROBE3(claim_refused, atomic_load(&stream->fd), 0,
		     shunt_reason_text(shunt_reason_of(cause)));
	shunt_streams_vacate(stream);
	if (!shunt_reconnect_later(stream) && !is_put_off(engine, stream, cause))
		shunt_streams_plain(engine, stream, cause);
	shunt_sleep_tell(stream, EPOLLIN | EPOLLOUT);
	shunt_claim_end(stream);
}

enum shunt_cause shunt_claim_reason(struct shunt_service *service,
				     const struct shunt_stream *stream, enum shunt_cause cause)
{
	return (cause == SHUNT_CAUSE_NO_SHUNT || cause == SHUNT_CAUSE_NOT_HAD) &&
			       shunt_tuple_is_known(&stream->tuple) &&
			       shunt_witness_misses(service, &stream->tuple) ?
		       SHUNT_CAUSE_TRANSLATED :
		       cause;
}

enum shunt_cause shunt_claim_refusal(struct shunt_service *service,
				      const struct shunt_stream *stream)
{
	const struct shunt_tuple *tuple = &stream->tuple;
	struct shunt_name name;
	uint64_t since = shunt_now(service->engine) -
			 (stream->doubt.looks ? AGAIN :
						service->engine->config.refused_ms * 1000000);

	shunt_rendezvous_name(tuple->peer, tuple->peer_port, false, &name);
	for (int i = 0; i < SHUNT_REFUSED_SLOTS; i++) {
		struct shunt_refused *refused = &service->refused[i];

		if (refused->at > since && refused->name.length == name.length &&
		    !memcmp(refused->name.text, name.text, name.length))
			return refused->cause;
	}
	return SHUNT_CAUSE_NONE;
}

static void remember_refusal(struct shunt_service *service, const struct shunt_tuple *tuple,
			     enum shunt_cause cause)
{
	struct shunt_refused *refused =
		&service->refused[service->refused_next++ % SHUNT_REFUSED_SLOTS];

	shunt_rendezvous_name(tuple->peer, tuple->peer_port, false, &refused->name);
	refused->at = shunt_now(service->engine);
	refused->cause = cause;
}

void shunt_claim_fails(struct shunt_service *service, struct shunt_stream *stream,
		       enum shunt_cause cause)
{
	remember_refusal(service, &stream->tuple, cause);
	shunt_claim_stays(service->engine, stream, cause);
}

/* close() takes this lock before: a call under way on the number would keep the socket open. */
int shunt_claim_learn(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int result = 0;

	shunt_lock_take(&engine->streams_lock);
	if (!shunt_tuple_is_known(&stream->tuple))
		result = shunt_rendezvous_learn(stream);
	shunt_lock_leave(&engine->streams_lock);
	return result;
}

bool shunt_claim_is_trusted(struct shunt_link *link)
{
	struct ucred self;

	return link->channel.kind != SHUNT_CHANNEL_UNIX || link->channel.proves ||
	       !shunt_trust_self(link->engine->sys, &self);
}
