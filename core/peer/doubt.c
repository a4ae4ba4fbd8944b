/* SPDX-License-Identifier: MIT */
#include "core/peer/doubt.h"
#include <errno.h>
#include "core/fork/sole.h"
#include "core/peer/claim.h"
#include "core/peer/claim_state.h"
#include "core/peer/listen.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/doubt.h"
#include "core/stream/stream_option.h"
#include "core/stream/streams.h"

#define AT_ONCE 64
#define RESTS 10	/* times as long as a look has taken */

struct doubted {
	struct shunt_stream *stream;
	uint32_t shares;	/* before the look */
};

void shunt_doubt_look(struct shunt_service *service, struct shunt_stream *stream)
{
	uint64_t now = shunt_now(service->engine);

	if (shunt_claim_is_pending(stream)) { /* its claim may wait in a list, and is to end first */
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);
		return;
	}
	if (stream->doubt.queued) /* it has got another holder since */
		return;
	stream->doubt.queued = true;
	shunt_streams_hold(stream);
	stream->claim.next_offer = service->doubted;
	service->doubted = stream;
	shunt_task_at(&service->tasks.doubt, service->doubt_at > now ? service->doubt_at : 0);
}

static struct shunt_stream *take(struct shunt_service *service)
{
	struct shunt_stream *stream = service->doubted;

	if (!stream)
		return NULL;
	service->doubted = stream->claim.next_offer;
	stream->doubt.queued = false;
	return stream;
}

void shunt_doubt_forget(struct shunt_service *service)
{
	struct shunt_stream *stream;

	while ((stream = take(service)) != NULL) {
		atomic_store(&stream->usage, SHUNT_USE_BEGUN);
		shunt_streams_unhold(stream);
	}
}

/* Its number is this stream's while streams_lock is held: close() takes that before. */
static bool ask(struct shunt_engine *engine, struct shunt_stream *stream,
		struct shunt_sole_socket *socket)
{
	bool known;

	shunt_lock_take(&engine->streams_lock);
	known = engine->sys->socket_ask(stream->fd, socket);
	shunt_lock_leave(&engine->streams_lock);
	return known;
}

static enum shunt_cause cause_of(enum shunt_sole sole, int result)
{
	if (sole == SHUNT_SOLE_UNSEEN)
		return SHUNT_CAUSE_UNSEEN_HOLDER;
	if (result == -EOPNOTSUPP)
		return SHUNT_CAUSE_OPTION;
	return result == -ENOTCONN ? SHUNT_CAUSE_CLOSED : SHUNT_CAUSE_HELD;
}

static void go_on(struct shunt_service *service, struct shunt_stream *stream)
{
	shunt_decision_step(stream, "no other process holds it");
	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	stream->claim.line = 0; /* the process there may be another one, */
	stream->proven_on = 0; /* which has shown nothing */
	if (stream->role == SHUNT_ACCEPTOR && !shunt_claim_learn(service->engine, stream) &&
	    !stream->rendezvous)
		shunt_listen_adopt(service->engine, stream);
	shunt_claim_go_on(service, stream);
}

/* Options that another holder has set count. False: the kernel alone serves it. */
static bool learn_options(struct shunt_engine *engine, struct shunt_stream *stream)
{
	shunt_stream_look_at_mode(engine, stream->fd, stream);
	shunt_stream_forget_options(engine, stream->fd, stream);
	shunt_stream_option_adopt(stream);
	return !(atomic_load(&stream->options.asks) & SHUNT_NEEDS_ANY);
}

static int settle(struct shunt_engine *engine, const struct doubted *doubted)
{
	struct shunt_stream *stream = doubted->stream;

	/* An older claim is to end first, and a seat that it has given up is to be free. */
	if (shunt_claim_is_pending(stream) || shunt_stream_is_seated(stream))
		return -EBUSY;
	return learn_options(engine, stream) ?
		       shunt_doubt_settle(engine, stream, doubted->shares) :
		       -EOPNOTSUPP;
}

static void answer(struct shunt_service *service, const struct doubted *doubted,
		   enum shunt_sole sole)
{
	struct shunt_stream *stream = doubted->stream;
	int result = sole == SHUNT_SOLE_YES ? settle(service->engine, doubted) : -EBUSY;

	if (!result)
		go_on(service, stream);
	else if ((result != -EBUSY && result != -EAGAIN) ||
		 !shunt_doubt_later(stream, SHUNT_DOUBT_LOOKS))
		shunt_claim_stays(service->engine, stream, cause_of(sole, result));
}

static void look(struct shunt_service *service)
{
	struct shunt_sole_socket sockets[AT_ONCE];
	struct doubted doubted[AT_ONCE];
	struct shunt_stream *stream;
	unsigned int count = 0;

	while (count < AT_ONCE && (stream = take(service)) != NULL) {
		doubted[count] = (struct doubted){ stream, atomic_load(&stream->doubt.shares) };
		if (ask(service->engine, stream, &sockets[count]))
			count++;
		else
			shunt_streams_unhold(stream);
	}
	service->engine->sys->socket_look(&service->engine->fds, sockets, count);
	for (unsigned int i = 0; i < count; i++) {
		answer(service, &doubted[i], sockets[i].sole);
		shunt_streams_unhold(doubted[i].stream);
	}
}

void shunt_doubt_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, doubt);
	struct shunt_engine *engine = service->engine;
	uint64_t now = shunt_now(engine);

	if (!service->doubted || atomic_load(&service->leaving))
		return;
	if (service->doubt_at <= now) {
		look(service);
		service->doubt_at = shunt_now(engine) + RESTS * (shunt_now(engine) - now);
	}
	if (service->doubted)
		shunt_task_at(task, service->doubt_at);
}
