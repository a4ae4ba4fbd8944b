/* SPDX-License-Identifier: MIT */
#include "core/peer/claim_grant.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/leave.h"
#include "core/link/seats.h"
#include "core/peer/attach.h"
#include "core/peer/claim.h"
#include "core/peer/limits.h"
#include "core/peer/listener_owner.h"
#include "core/peer/listener_worker.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/proof.h"
#include "core/stream/tuple.h"
#include "core/stream/uring.h"

/* Is it the other end of what is claimed, in the same network? */
static bool is_claimed(const struct shunt_link *link, const struct shunt_stream *stream,
		       const struct shunt_tuple *tuple, uint64_t network)
{
	return stream->tuple_known && shunt_tuple_reversed(&stream->tuple, tuple) &&
	       (link->channel.kind != SHUNT_CHANNEL_UNIX || network == stream->network);
}

struct search {
	struct shunt_link *link;
	const struct shunt_tuple *tuple;
	uint64_t network;
	struct shunt_stream *found;
};

static int matches(struct shunt_stream *stream, void *arg)
{
	struct search *search = arg;

	if (stream->role != SHUNT_ACCEPTOR || stream->fd < 0 || stream->link ||
	    atomic_load(&stream->state) != SHUNT_CANDIDATE)
		return 0;
	if (!stream->tuple_known)
		shunt_rendezvous_learn(stream);
	if (!is_claimed(search->link, stream, search->tuple, search->network))
		return 0;
	search->found = stream;
	return 1;
}

/* `unused`: also one that the program has not used yet. Held. */
static struct shunt_stream *accepted_stream(struct shunt_link *link,
					    const struct shunt_tuple *tuple, uint64_t network,
					    bool unused)
{
	struct search search = { .link = link, .tuple = tuple, .network = network };
	struct shunt_engine *engine = link->engine;

	shunt_lock_take(&engine->streams_lock);
	shunt_streams_each(engine, matches, &search);
	if (search.found && (unused || atomic_load(&search.found->used)))
		search.found->holds++;
	else
		search.found = NULL;
	shunt_lock_leave(&engine->streams_lock);
	return search.found;
}

static void refuse(struct shunt_link *link, const struct shunt_tuple *claimed, uint32_t stream, enum shunt_refusal why)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE, .stream = stream, .why = why };

	shunt_decision_refused(link, claimed, why);
	shunt_link_send(link, &message, NULL, 0);
}

/* The claimed connection is ours and in use: both ends can carry it. */
static void grant(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_place *peer,
		  const uint8_t nonce[SHUNT_NONCE_BYTES])
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_ACCEPT, .stream = peer->stream };
	bool forbidden = shunt_uring_forbids(engine);
	int result = forbidden ? -EPERM : shunt_seats_take(link, stream, &link->lanes[peer->lane], &message.accept.place);
	enum shunt_reason reason = forbidden ? SHUNT_REASON_URING : SHUNT_REASON_NOT_ATTACHED;

	if (result && !forbidden)
		reason = link->device->kind->shortage();
	if (!result && link->nonces) {
		shunt_proof_owe(stream, nonce);
		result = shunt_proof_demand(stream, message.accept.nonce) ? 0 : -EAGAIN;
		if (result)
			reason = SHUNT_REASON_NO_RANDOM;
	}
	if (!result)
		result = shunt_attach(engine, stream, peer, &message);
	if (!result) {
		atomic_fetch_add(&engine->accepted_claims, 1);
		shunt_decision_linked(stream);
		return;
	}
	atomic_fetch_add(&engine->refused_claims, 1);
	if (stream->link)
		shunt_attach_revert(engine, stream);
	shunt_claim_stays(engine, stream, reason);
	refuse(link, &stream->tuple, peer->stream, SHUNT_REFUSED_NO_ROOM);
}

static bool park(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_parked *parked = NULL;

	if (shunt_limits_allow(service, link->peer_pid, link->parked, SHUNT_PARKED_PER_LINK, "claims that wait"))
		parked = malloc(sizeof(*parked));
	if (!parked) {
		refuse(link, &message->claim.tuple, message->claim.place.stream, SHUNT_REFUSED_NO_ROOM);
		return false;
	}
	*parked = (struct shunt_parked) {
		.link = link, .tuple = message->claim.tuple, .network = message->claim.network,
		.place = message->claim.place,
		.deadline = shunt_now(link->engine) + link->engine->config.claim_ms * 1000000,
		.next = service->parked,
	};
	memcpy(parked->nonce, message->claim.nonce, sizeof(parked->nonce));
	service->parked = parked;
	link->parked++;
	atomic_fetch_add(&service->parked_count, 1);
	return true;
}

static void unpark(struct shunt_service *service, struct shunt_parked **p)
{
	struct shunt_parked *parked = *p;

	*p = parked->next;
	atomic_fetch_sub(&service->parked_count, 1);
	parked->link->parked--;
	free(parked);
}

/* Another process of our address has the connection. */
static void send_on(struct shunt_service *service, struct shunt_parked **p, pid_t pid)
{
	struct shunt_message message = { .type = SHUNT_MSG_REDIRECT, .stream = (*p)->place.stream, .process = pid };

	atomic_fetch_add(&service->engine->redirects, 1);
	shunt_decision_claim((*p)->link, &(*p)->tuple, "sent on to the process that has it");
	shunt_link_send((*p)->link, &message, NULL, 0);
	unpark(service, p);
}

bool shunt_claim_is_had(struct shunt_service *service, const struct shunt_tuple *tuple, pid_t pid)
{
	struct shunt_parked **p = &service->parked;

	while (*p && !((*p)->link->channel.kind == SHUNT_CHANNEL_UNIX && shunt_tuple_reversed(tuple, &(*p)->tuple)))
		p = &(*p)->next;
	if (!*p)
		return false;
	send_on(service, p, pid);
	return true;
}

void shunt_claim_heard(struct shunt_link *link, const struct shunt_message *message)
{
	const struct shunt_place *place = &message->claim.place;
	struct shunt_stream *stream;
	pid_t elsewhere;

	if (link->initiator || !shunt_link_place_is_sound(link, place)) {
		shunt_link_distrust(link, "a CLAIM out of turn, or to no sound ring");
		return;
	}
	if (shunt_leave_is_due(link->engine) || !shunt_claim_is_trusted(link) || shunt_fault_refuses(&link->engine->fault)) {
		atomic_fetch_add(&link->engine->refused_claims, 1);
		refuse(link, &message->claim.tuple, place->stream, SHUNT_REFUSED_UNPROVEN);
		return;
	}
	shunt_reconnect_claimed(link, &message->claim.tuple);
	/* Parked first: a program that uses the connection meanwhile sees that somebody waits for it. */
	if (!park(link, message))
		return;
	stream = accepted_stream(link, &message->claim.tuple, message->claim.network, false);
	if (!stream) {
		shunt_decision_claim(link, &message->claim.tuple, "waits for the program to use it");
		elsewhere = link->channel.kind == SHUNT_CHANNEL_UNIX ?
			    shunt_listener_owner_find(link->engine->service, &message->claim.tuple) : 0;
		if (elsewhere)
			send_on(link->engine->service, &link->engine->service->parked, elsewhere);
		return;
	}
	unpark(link->engine->service, &link->engine->service->parked);
	grant(link, stream, place, message->claim.nonce);
	shunt_streams_unhold(stream);
}

void shunt_claim_match(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_parked **p = &service->parked;

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->link)
		return;
	shunt_claim_learn(service->engine, stream);
	while (*p && !is_claimed((*p)->link, stream, &(*p)->tuple, (*p)->network))
		p = &(*p)->next;
	if (*p) {
		struct shunt_parked parked = **p;

		unpark(service, p);
		grant(parked.link, stream, &parked.place, parked.nonce);
	} else if (stream->rendezvous && stream->rendezvous->fd < 0) {
		shunt_listener_worker_tell(service, stream);
	}
}

/* Nobody has used the connection in time. */
static void miss(struct shunt_service *service, const struct shunt_parked *parked)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_stream *stream = accepted_stream(parked->link, &parked->tuple, parked->network, true);

	atomic_fetch_add(&engine->refused_claims, 1);
	refuse(parked->link, &parked->tuple, parked->place.stream, stream ? SHUNT_REFUSED_UNUSED :
	       shunt_listener_owner_strangers(service, &parked->tuple) ? SHUNT_REFUSED_STRANGER : SHUNT_REFUSED_NOT_HAD);
	if (!stream)
		return;
	shunt_claim_stays(engine, stream, SHUNT_REASON_UNUSED);
	shunt_streams_unhold(stream);
}

void shunt_claim_miss(struct shunt_service *service)
{
	uint64_t now = shunt_now(service->engine);

	for (struct shunt_parked **p = &service->parked; *p;) {
		if ((*p)->deadline <= now || atomic_load(&service->leaving)) {
			miss(service, *p);
			unpark(service, p);
			continue;
		}
		shunt_task_at(&service->tasks.claim, (*p)->deadline);
		p = &(*p)->next;
	}
}

void shunt_claim_forget(const struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;

	for (struct shunt_parked **p = &service->parked; *p;) {
		if ((*p)->link == link)
			unpark(service, p);
		else
			p = &(*p)->next;
	}
}
