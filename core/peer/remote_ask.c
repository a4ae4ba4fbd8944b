/* SPDX-License-Identifier: MIT */
#include "core/peer/remote_ask.h"
#include "core/engine.h"
#include "core/peer/remote.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "core/base/address.h"
#include "core/peer/claim_link.h"
#include "core/peer/claim_state.h"
#include "core/peer/directory_ask.h"
#include "core/peer/remote_course.h"
#include "core/peer/remote_link.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "core/stream/decision.h"

/* One that is under way, for a pair of addresses and the peer's port, and the streams that wait for it. */
struct inquiry {
	struct shunt_service *service;
	struct shunt_tuple tuple;
	struct remote_question question;
	unsigned int bytes; /* of the question */
	uint64_t deadline; /* ns */
	struct shunt_source source; /* of the next, as long as it is open */
	struct shunt_directory_ask directory;
	struct cm_route route; /* by which the directory is asked */
	struct shunt_stream *streams;
	struct inquiry *next;
};

static enum shunt_cause why(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -EPROTO:
		return SHUNT_CAUSE_NO_SHUNT;
	case -ETIMEDOUT:
		return SHUNT_CAUSE_HOST_SILENT;
	case -ENODEV:
		return SHUNT_CAUSE_NO_ROUTE;
	default:
		return SHUNT_CAUSE_HOST_UNASKED;
	}
}

static struct shunt_link *link_by(struct inquiry *inquiry, const struct remote_answer *answer, const struct cm_route *route)
{
	struct shunt_service *service = inquiry->service;
	struct shunt_remote_gate gate = { .tuple = &inquiry->tuple, .port = answer->port };
	struct shunt_link *link;
	struct shunt_name name;

	if (!route)
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
			       const struct cm_route *route, enum shunt_cause *cause)
{
	struct remote_answer answer;

	switch (shunt_remote_answer_read(&answer, inquiry->service->engine->key, &inquiry->question,
					 given, bytes)) {
	case SHUNT_REMOTE_SOUND:
		return link_by(inquiry, &answer, route);
	case SHUNT_REMOTE_OTHER_KEY:
		*cause = SHUNT_CAUSE_OTHER_KEY;
		return NULL;
	case SHUNT_REMOTE_OTHER_VERSION:
		*cause = SHUNT_CAUSE_OTHER_VERSION;
		return NULL;
	default:
		return NULL;
	}
}

static void inquiry_finish(struct inquiry *inquiry, int status, const uint8_t *given,
			   unsigned int bytes, const struct cm_route *route)
{
	struct inquiry **p = &inquiry->service->remote->inquiries;
	enum shunt_cause cause = status ? why(status) : SHUNT_CAUSE_NO_LINK;
	struct shunt_link *link = NULL;
	struct shunt_stream *stream;

	while (*p != inquiry)
		p = &(*p)->next;
	*p = inquiry->next;
	if (!status)
		link = heed(inquiry, given, bytes, route, &cause);
	while ((stream = inquiry->streams) != NULL) {
		inquiry->streams = stream->claim.next_offer;
		shunt_decision_step(stream, "the peer's host has answered (error %d)", -status);
		if (link && atomic_load(&link->state) != SHUNT_LINK_DEAD)
			shunt_claim_on(link, stream);
		else
			shunt_claim_fails(inquiry->service, stream, cause);
	}
	free(inquiry);
}

/* --- at the directory of the peer's host --- */

static void end_directory(struct inquiry *inquiry)
{
	if (inquiry->directory.fd < 0)
		return;
	shunt_loop_remove(&inquiry->service->engine->loop, inquiry->directory.fd);
	shunt_directory_ask_end(&inquiry->directory);
}

static void directory_ready(struct shunt_source *source, uint32_t events)
{
	struct inquiry *inquiry = shunt_loop_owner(source, struct inquiry, source);
	struct shunt_engine *engine = inquiry->service->engine;
	int result = shunt_directory_ask_step(&inquiry->directory);

	(void)events;
	if (!result && shunt_directory_ask_is_sent(&inquiry->directory))
		shunt_loop_change(&engine->loop, inquiry->directory.fd, source, EPOLLIN);
	if (!result)
		return;
	end_directory(inquiry);
	shunt_remote_enter(&engine->fds); /* a link may open its device */
	inquiry_finish(inquiry, result < 0 ? result : 0, inquiry->directory.answer.words,
		       result < 0 ? 0 : (unsigned int)result, &inquiry->route);
	shunt_remote_leave(&engine->fds);
}

/* 0 or -errno. */
static int ask_directory(struct inquiry *inquiry, const struct cm_route *route)
{
	struct shunt_engine *engine = inquiry->service->engine;
	int result;

	if (!engine->config.directory)
		return -EOPNOTSUPP;
	result = shunt_directory_ask_begin(&inquiry->directory, engine, &inquiry->tuple,
					   htons((uint16_t)engine->config.directory),
					   &inquiry->question, inquiry->bytes);
	if (result)
		return result;
	inquiry->route = *route;
	inquiry->source.ready = directory_ready;
	result = shunt_loop_add(&engine->loop, inquiry->directory.fd, &inquiry->source,
				EPOLLIN | EPOLLOUT);
	if (result)
		shunt_directory_ask_end(&inquiry->directory);
	return result;
}

static bool is_late(const struct inquiry *inquiry, uint64_t now)
{
	return inquiry->directory.fd >= 0 && inquiry->deadline <= now;
}

void shunt_remote_ask_expire(struct shunt_remote *remote)
{
	uint64_t now = shunt_now(remote->service->engine);
	struct inquiry *inquiry = remote->inquiries;

	while (inquiry) {
		if (!is_late(inquiry, now)) {
			inquiry = inquiry->next;
			continue;
		}
		end_directory(inquiry);
		inquiry_finish(inquiry, -ETIMEDOUT, NULL, 0, NULL);
		inquiry = remote->inquiries; /* streams that go on may have changed the list */
	}
}

uint64_t shunt_remote_ask_due(const struct shunt_remote *remote)
{
	uint64_t due = SHUNT_NEVER;

	for (const struct inquiry *inquiry = remote->inquiries; inquiry; inquiry = inquiry->next)
		if (inquiry->directory.fd >= 0 && inquiry->deadline < due)
			due = inquiry->deadline;
	return due;
}

/* --- by the connection manager --- */

void shunt_remote_answered(void *ask_arg, int status, const uint8_t *given, unsigned int bytes,
			   const struct cm_route *route)
{
	struct inquiry *inquiry = ask_arg;

	if (status == -EOPNOTSUPP && route)
		status = ask_directory(inquiry, route);
	if (inquiry->directory.fd < 0)
		inquiry_finish(inquiry, status, given, bytes, route);
}

static struct inquiry *inquiry_find(struct shunt_remote *remote, const struct shunt_tuple *tuple)
{
	struct inquiry *inquiry = remote->inquiries;

	while (inquiry && (memcmp(inquiry->tuple.local, tuple->local, 16) ||
			   memcmp(inquiry->tuple.peer, tuple->peer, 16) ||
			   inquiry->tuple.peer_port != tuple->peer_port))
		inquiry = inquiry->next;
	return inquiry;
}

static struct inquiry *inquiry_ask(struct shunt_remote *remote, const struct shunt_tuple *tuple)
{
	struct shunt_engine *engine = remote->service->engine;
	uint8_t chance[SHUNT_REMOTE_CHANCE];
	struct inquiry *inquiry;
	union cm_address local, peer;
	int result;

	if (engine->key &&
	    engine->sys->getrandom(chance, sizeof(chance), GRND_NONBLOCK) != sizeof(chance))
		return NULL;
	inquiry = calloc(1, sizeof(*inquiry));
	if (!inquiry)
		return NULL;
	inquiry->directory.fd = -1;
	inquiry->bytes = shunt_remote_question_make(&inquiry->question, engine->key, chance);
	inquiry->deadline = shunt_now(engine) + engine->config.claim_ms * 1000000;
	inquiry->service = remote->service;
	inquiry->tuple = *tuple;
	shunt_remote_address(tuple->local, 0, &local);
	shunt_remote_address(tuple->peer, tuple->peer_port, &peer);
	remote->cm.tos = engine->config.tos <= UINT8_MAX ? (int)engine->config.tos : -1;
	shunt_remote_enter(&engine->fds);
	result = cm_ask(&remote->cm, &local.any, &peer.any, &inquiry->question, inquiry->bytes,
			shunt_remote_ms(engine) + engine->config.claim_ms, inquiry, NULL);
	shunt_remote_leave(&engine->fds);
	if (result) {
		free(inquiry);
		return NULL;
	}
	inquiry->next = remote->inquiries;
	remote->inquiries = inquiry;
	return inquiry;
}

uint64_t shunt_remote_ms(struct shunt_engine *engine)
{
	return shunt_now(engine) / 1000000;
}

bool shunt_remote_ask(struct shunt_remote *remote, struct shunt_stream *stream)
{
	struct inquiry *inquiry = inquiry_find(remote, &stream->tuple);

	if (!inquiry)
		inquiry = inquiry_ask(remote, &stream->tuple);
	if (!inquiry)
		return false;
	shunt_decision_step(stream, "the peer's host is asked");
	stream->claim.next_offer = inquiry->streams;
	inquiry->streams = stream;
	return true;
}

void shunt_remote_drop(struct shunt_remote *remote, enum shunt_cause cause)
{
	struct inquiry *inquiry;
	struct shunt_stream *stream;

	while ((inquiry = remote->inquiries) != NULL) {
		remote->inquiries = inquiry->next;
		while (cause && (stream = inquiry->streams) != NULL) {
			inquiry->streams = stream->claim.next_offer;
			shunt_claim_stays(remote->service->engine, stream, cause);
		}
		if (inquiry->directory.fd >= 0) /* a child's loop has never known it */
			shunt_directory_ask_end(&inquiry->directory);
		free(inquiry);
	}
}
