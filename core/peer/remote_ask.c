/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_ask.h"
#include "core/peer/remote.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "core/base/address.h"
#include "core/peer/claim.h"
#include "core/peer/remote_link.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "core/stream/decision.h"

/* One that is under way, for a pair of addresses and the peer's port, and the streams that wait for it. */
struct inquiry {
	struct shunt_service *service;
	struct shunt_tuple tuple;
	struct remote_question question;
	struct shunt_stream *streams;
	struct inquiry *next;
};

static enum shunt_reason why(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -EPROTO:
		return SHUNT_REASON_NO_SHUNT;
	case -ETIMEDOUT:
		return SHUNT_REASON_HOST_SILENT;
	case -ENODEV:
		return SHUNT_REASON_NO_ROUTE;
	default:
		return SHUNT_REASON_HOST_UNASKED;
	}
}

static struct shunt_link *link_by(struct inquiry *inquiry, const struct remote_answer *answer, const struct cm_route *route)
{
	struct shunt_service *service = inquiry->service;
	struct shunt_remote_gate gate = { .tuple = &inquiry->tuple, .port = answer->port };
	struct shunt_link *link;
	struct shunt_name name;

	if (!route || route->iwarp)
		return NULL;
	gate.course = shunt_remote_course(service->engine, route);
	if (!gate.course.device)
		return NULL;
	shunt_remote_words_bind(service->engine->key, &inquiry->question, answer, true, &gate.seal,
				gate.shown);
	shunt_rendezvous_name(inquiry->tuple.peer, inquiry->tuple.peer_port, false, &name);
	link = shunt_remote_link(service, &gate, NULL, &name);
	explicit_bzero(&gate, sizeof(gate));
	return link;
}

static struct shunt_link *heed(struct inquiry *inquiry, const uint8_t *given, unsigned int bytes,
			       const struct cm_route *route, enum shunt_reason *reason)
{
	struct remote_answer answer;

	switch (shunt_remote_answer_read(&answer, inquiry->service->engine->key, &inquiry->question,
					 given, bytes)) {
	case SHUNT_REMOTE_SOUND:
		return link_by(inquiry, &answer, route);
	case SHUNT_REMOTE_OTHER_KEY:
		*reason = SHUNT_REASON_OTHER_KEY;
		return NULL;
	case SHUNT_REMOTE_OTHER_VERSION:
		*reason = SHUNT_REASON_OTHER_VERSION;
		return NULL;
	default:
		return NULL;
	}
}

void shunt_remote_answered(void *ask_arg, int status, const uint8_t *given, unsigned int bytes, const struct cm_route *route)
{
	struct inquiry *inquiry = ask_arg, **p = &inquiry->service->remote->inquiries;
	enum shunt_reason reason = status ? why(status) : SHUNT_REASON_NO_LINK;
	struct shunt_link *link = NULL;
	struct shunt_stream *stream;

	while (*p != inquiry)
		p = &(*p)->next;
	*p = inquiry->next;
	if (!status)
		link = heed(inquiry, given, bytes, route, &reason);
	while ((stream = inquiry->streams) != NULL) {
		inquiry->streams = stream->next_offer;
		shunt_decision_step(stream, "the peer's host has answered (error %d)", -status);
		if (link && atomic_load(&link->state) != SHUNT_LINK_DEAD)
			shunt_claim_on(link, stream);
		else
			shunt_claim_fails(inquiry->service, stream, reason);
	}
	free(inquiry);
}

static struct inquiry *find(struct shunt_remote *remote, const struct shunt_tuple *tuple)
{
	struct inquiry *inquiry = remote->inquiries;

	while (inquiry && (memcmp(inquiry->tuple.local, tuple->local, 16) ||
			   memcmp(inquiry->tuple.peer, tuple->peer, 16) ||
			   inquiry->tuple.peer_port != tuple->peer_port))
		inquiry = inquiry->next;
	return inquiry;
}

static struct inquiry *ask(struct shunt_remote *remote, const struct shunt_tuple *tuple)
{
	struct shunt_engine *engine = remote->service->engine;
	uint8_t chance[SHUNT_REMOTE_CHANCE];
	struct inquiry *inquiry;
	union cm_address local, peer;
	unsigned int bytes;
	int result;

	if (engine->key &&
	    engine->sys->getrandom(chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
		return NULL;
	inquiry = calloc(1, sizeof(*inquiry));
	if (!inquiry)
		return NULL;
	bytes = shunt_remote_question_make(&inquiry->question, engine->key, chance);
	inquiry->service = remote->service;
	inquiry->tuple = *tuple;
	shunt_remote_address(tuple->local, 0, &local);
	shunt_remote_address(tuple->peer, tuple->peer_port, &peer);
	remote->cm.tos = engine->config.tos <= UINT8_MAX ? (int)engine->config.tos : -1;
	shunt_remote_enter(engine);
	result = cm_ask(&remote->cm, &local.any, &peer.any, &inquiry->question, bytes,
			shunt_remote_ms(engine) + engine->config.claim_ms, inquiry, NULL);
	shunt_remote_leave(engine);
	if (result) {
		free(inquiry);
		return NULL;
	}
	inquiry->next = remote->inquiries;
	remote->inquiries = inquiry;
	return inquiry;
}

bool shunt_remote_ask(struct shunt_remote *remote, struct shunt_stream *stream)
{
	struct inquiry *inquiry = find(remote, &stream->tuple);

	if (!inquiry)
		inquiry = ask(remote, &stream->tuple);
	if (!inquiry)
		return false;
	shunt_decision_step(stream, "the peer's host is asked");
	stream->next_offer = inquiry->streams;
	inquiry->streams = stream;
	return true;
}

void shunt_remote_drop(struct shunt_remote *remote, enum shunt_reason reason)
{
	struct inquiry *inquiry;
	struct shunt_stream *stream;

	while ((inquiry = remote->inquiries) != NULL) {
		remote->inquiries = inquiry->next;
		while (reason && (stream = inquiry->streams) != NULL) {
			inquiry->streams = stream->next_offer;
			shunt_claim_stays(remote->service->engine, stream, reason);
		}
		free(inquiry);
	}
}
