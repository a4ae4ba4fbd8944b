/* SPDX-License-Identifier: MIT */
#include "core/peer/claim_grant.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "core/leave.h"
#include "core/stream/streams.h"
#include "core/peer/attach.h"
#include "core/peer/claim.h"
#include "core/peer/claim_state.h"
#include "core/peer/invite.h"
#include "core/peer/limits.h"
#include "core/peer/listener_owner.h"
#include "core/peer/listener_worker.h"
#include "core/peer/possession.h"
#include "core/peer/verdict.h"
#include "core/qos/holding.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/offer.h"
#include "core/stream/proof.h"
#include "core/stream/tuple.h"
#include "core/stream/uring.h"

/* Is it the other end of what is claimed, in the same network? */
static bool is_claimed(const struct shunt_link *link, const struct shunt_stream *stream,
		       const struct shunt_tuple *tuple, uint64_t network)
{
	return shunt_tuple_is_known(&stream->tuple) &&
	       shunt_tuple_reversed(&stream->tuple, tuple) &&
	       (link->channel.kind != SHUNT_CHANNEL_UNIX || link->channel.other_netns ||
		network == stream->network);
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

	if (stream->role != SHUNT_ACCEPTOR || stream->fd < 0 || stream->seat->link ||
	    atomic_load(&stream->state) != SHUNT_CANDIDATE || shunt_stream_is_doubted(stream))
		return 0;
	if (!shunt_tuple_is_known(&stream->tuple))
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
	if (search.found && (unused || atomic_load(&search.found->usage) == SHUNT_USE_TOLD))
		search.found->holds++;
	else
		search.found = NULL;
	shunt_lock_leave(&engine->streams_lock);
	return search.found;
}

static void claim_refuse(struct shunt_link *link, const struct shunt_tuple *claimed,
			 uint32_t stream, enum shunt_refusal why)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE, .stream = stream, .why = why };

	shunt_decision_refused(link, claimed, why);
	shunt_link_send(link, &message, NULL, 0);
}

/* The claimed connection is ours and in use: both ends can carry it. */
static void grant(struct shunt_link *link, struct shunt_stream *stream,
		  const struct shunt_place *peer, const uint8_t chance[SHUNT_CHANCE_BYTES])
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_ACCEPT, .stream = peer->stream };
	bool forbidden = shunt_uring_forbids(engine), held = shunt_holding_is_held(link);
	int result = forbidden || held ? -EPERM :
					 shunt_streams_seat(stream, link, &link->lanes[peer->lane],
							    &message.accept.place);
	enum shunt_cause cause = forbidden ? SHUNT_CAUSE_URING : SHUNT_CAUSE_NOT_ATTACHED;

	if (result && !forbidden && !held)
		cause = link->device->kind->shortage(SHUNT_SHORT_OF_RINGS, -ENOMEM);
	if (!result && link->nonces) {
		result = shunt_proof_chance(stream, message.accept.chance) ? 0 : -EAGAIN;
		if (result)
			cause = SHUNT_CAUSE_NO_RANDOM;
		else
			shunt_proof_agree(link, stream, chance);
	}
	shunt_qos_granted(link, stream);
	if (!result)
		result = shunt_attach(engine, stream, peer, &message);
	if (!result) {
		atomic_fetch_add(&engine->accepted_claims, 1);
		shunt_decision_linked(stream);
		return;
	}
	atomic_fetch_add(&engine->refused_claims, 1);
	if (stream->seat->link)
		shunt_attach_revert(engine, stream);
	shunt_claim_stays(engine, stream, cause);
	claim_refuse(link, &stream->tuple, peer->stream, SHUNT_REFUSED_NO_ROOM);
}

/* The claimant's number, for an answer: a proof's, or a stream's. */
static uint32_t number_of(const struct shunt_parked *parked)
{
	return parked->number ? parked->number : parked->place.stream;
}

static uint64_t bit_of(const struct shunt_parked *parked)
{
	return 1ull << shunt_offer_bit(parked->tuple.local_port);
}

/* After some do not wait any more. */
static void say_who_is_awaited(struct shunt_service *service)
{
	uint64_t awaited = 0;

	for (const struct shunt_parked *parked = service->parked; parked && ~awaited;
	     parked = parked->next)
		awaited |= bit_of(parked);
	atomic_store(&service->engine->work.awaited, awaited);
}

/* A claim, or a proof that is asked for, waits. */
static bool park(const struct shunt_parked *claim)
{
	struct shunt_link *link = claim->link;
	struct shunt_service *service = link->engine->service;
	struct shunt_parked *parked = NULL;

	if (shunt_limits_allow(service, link->peer_pid, link->parked, SHUNT_PARKED_PER_LINK, "claims that wait"))
		parked = malloc(sizeof(*parked));
	if (!parked) {
		claim_refuse(link, &claim->tuple, number_of(claim), SHUNT_REFUSED_NO_ROOM);
		return false;
	}
	*parked = *claim;
	parked->deadline = shunt_now(link->engine) + link->engine->config.claim_ms * 1000000;
	parked->next = service->parked;
	service->parked = parked;
	link->parked++;
	atomic_fetch_or(&service->engine->work.awaited, bit_of(parked));
	return true;
}

static void refuse_by_rule(const struct shunt_parked *claim, struct shunt_stream *stream)
{
	struct shunt_engine *engine = claim->link->engine;

	atomic_fetch_add(&engine->refused_claims, 1);
	claim_refuse(claim->link, &claim->tuple, number_of(claim), SHUNT_REFUSED_RULE);
	shunt_claim_stays(engine, stream, SHUNT_CAUSE_RULE);
}

/* The program has used the connection that is claimed. */
static void take_up(const struct shunt_parked *claim, struct shunt_stream *stream)
{
	struct shunt_link *link = claim->link;

	if (shunt_verdict_leaves(stream))
		refuse_by_rule(claim, stream);
	else if (claim->number)
		shunt_possession_asked(link, stream, claim->number, claim->digest);
	else if (shunt_possession_is_proven(link, stream))
		grant(link, stream, &claim->place, claim->chance);
	else
		claim_refuse(link, &claim->tuple, claim->place.stream, SHUNT_REFUSED_DISPROVEN);
}

/* say_who_is_awaited() is to follow. */
static void unpark(struct shunt_parked **p)
{
	struct shunt_parked *parked = *p;

	*p = parked->next;
	parked->link->parked--;
	free(parked);
}

/* Another process of our address has the connection. */
static void send_on(struct shunt_service *service, struct shunt_parked **p,
		    const struct shunt_worker *worker)
{
	struct shunt_link *link = (*p)->link;
	struct shunt_message message = { .type = SHUNT_MSG_REDIRECT, .stream = number_of(*p) };

	if (shunt_invite(link, worker, &(*p)->tuple, &message.onward)) {
		atomic_fetch_add(&service->engine->redirects, 1);
		shunt_decision_claim(link, &(*p)->tuple, "sent on to the process that has it");
		shunt_link_send(link, &message, NULL, 0);
	} else {
		atomic_fetch_add(&service->engine->refused_claims, 1);
		claim_refuse(link, &(*p)->tuple, number_of(*p), SHUNT_REFUSED_NO_GATE);
	}
	unpark(p);
	say_who_is_awaited(service);
}

bool shunt_claim_is_had(struct shunt_service *service, const struct shunt_tuple *tuple,
			const struct shunt_worker *worker)
{
	struct shunt_parked **p = &service->parked;
	struct shunt_stream *ours;

	while (*p && !shunt_tuple_reversed(tuple, &(*p)->tuple))
		p = &(*p)->next;
	if (!*p)
		return false;
	ours = accepted_stream((*p)->link, &(*p)->tuple, (*p)->network, true);
	if (ours) {	/* it waits for our program, whatever another process says */
		shunt_streams_unhold(ours);
		return false;
	}
	send_on(service, p, worker);
	return true;
}

/* Parked first: a program that uses the connection meanwhile sees that somebody waits for it. */
static void look_for(const struct shunt_parked *claim)
{
	struct shunt_link *link = claim->link;
	struct shunt_service *service = link->engine->service;
	struct shunt_worker elsewhere;
	struct shunt_stream *stream;

	if (!park(claim))
		return;
	link->engine->grow_young(link->engine, false);
	stream = accepted_stream(link, &claim->tuple, claim->network, false);
	if (stream) {
		unpark(&service->parked);
		say_who_is_awaited(service);
		take_up(claim, stream);
		shunt_streams_unhold(stream);
		return;
	}
	shunt_decision_claim(link, &claim->tuple, "waits for the program to use it");
	if (shunt_listener_owner_find(service, &claim->tuple, &elsewhere))
		send_on(service, &service->parked, &elsewhere);
}

/* A peer of another host holds no end of a connection of another address, or of one within a host. */
static bool is_elsewhere(struct shunt_link *link, const struct shunt_tuple *tuple, uint32_t number)
{
	if (shunt_channel_joins(&link->channel, tuple->peer, tuple->local))
		return false;
	atomic_fetch_add(&link->engine->refused_claims, 1);
	atomic_fetch_add(&link->engine->strayed_claims, 1);
	claim_refuse(link, tuple, number, SHUNT_REFUSED_ELSEWHERE);
	return true;
}

static bool takes_none(struct shunt_link *link, const struct shunt_tuple *tuple, uint32_t number)
{
	if (!shunt_leave_is_due(link->engine) && shunt_claim_is_trusted(link) &&
	    !shunt_fault_refuses(&link->engine->fault))
		return false;
	atomic_fetch_add(&link->engine->refused_claims, 1);
	claim_refuse(link, tuple, number, SHUNT_REFUSED_UNPROVEN);
	return true;
}

/* A connection of our own network namespace is claimed at its rendezvous there, where the kernel is the witness. */
static bool is_from_here(struct shunt_engine *engine, const struct shunt_tuple *claimed)
{
	struct shunt_tuple own = shunt_tuple_reverse(claimed);

	return shunt_tuple_is_local(&engine->fds, &own);
}

void shunt_claim_heard(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_parked claim = { .link = link, .tuple = message->claim.tuple, .network = message->claim.network,
				      .place = message->claim.place };

	if (link->initiator || !shunt_link_place_is_sound(link, &claim.place)) {
		shunt_link_distrust(link, "a CLAIM out of turn, or to no sound ring");
		return;
	}
	if (is_elsewhere(link, &claim.tuple, claim.place.stream) ||
	    takes_none(link, &claim.tuple, claim.place.stream))
		return;
	if (link->channel.other_netns && is_from_here(link->engine, &claim.tuple)) {
		atomic_fetch_add(&link->engine->refused_claims, 1);
		claim_refuse(link, &claim.tuple, claim.place.stream, SHUNT_REFUSED_NOT_HAD);
		return;
	}
	memcpy(claim.chance, message->claim.chance, sizeof(claim.chance));
	shunt_reconnect_claimed(link, &claim.tuple);
	look_for(&claim);
}

/* A peer that has to prove nothing by our rule may have to by its own: then both do. */
void shunt_claim_asked(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_parked claim = { .link = link, .tuple = message->proof.tuple, .network = message->proof.network,
				      .number = message->proof.number };
	bool first = !link->channel.proves && atomic_load(&link->state) == SHUNT_LINK_HELLO &&
		     !link->line.number;

	if (link->initiator || !link->met || !(claim.number & SHUNT_PROOF_BIT) ||
	    link->channel.kind != SHUNT_CHANNEL_UNIX || link->channel.other_netns ||
	    !(first || link->channel.proves)) {
		shunt_link_distrust(link, "an ASK out of turn");
		return;
	}
	if (first)
		shunt_channel_strange(&link->channel);
	if (takes_none(link, &claim.tuple, claim.number))
		return;
	memcpy(claim.digest, message->proof.bytes, sizeof(claim.digest));
	look_for(&claim);
}

void shunt_claim_match(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_parked **p = &service->parked;

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->seat->link)
		return;
	shunt_claim_learn(service->engine, stream);
	while (*p && !is_claimed((*p)->link, stream, &(*p)->tuple, (*p)->network))
		p = &(*p)->next;
	if (*p) {
		struct shunt_parked parked = **p;

		unpark(p);
		say_who_is_awaited(service);
		take_up(&parked, stream);
	} else if (stream->rendezvous && stream->rendezvous->fd < 0) {
		shunt_listener_worker_tell(service, stream);
	}
}

/* The connection came after its claim, was young, and has been used without lasting. */
static bool is_late(struct shunt_service *service, struct shunt_parked **p)
{
	const struct shunt_parked claim = **p;
	struct shunt_stream *stream;

	service->engine->grow_young(service->engine, false);
	stream = accepted_stream(claim.link, &claim.tuple, claim.network, false);
	if (!stream)
		return false;
	unpark(p);
	take_up(&claim, stream);
	shunt_streams_unhold(stream);
	return true;
}

/* Nobody has used the connection in time. */
static void miss(struct shunt_service *service, const struct shunt_parked *parked)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_stream *stream = accepted_stream(parked->link, &parked->tuple, parked->network, true);

	atomic_fetch_add(&engine->refused_claims, 1);
	claim_refuse(parked->link, &parked->tuple, number_of(parked),
		     stream ? SHUNT_REFUSED_UNUSED :
		     shunt_listener_owner_strangers(service, &parked->tuple) ?
			      SHUNT_REFUSED_STRANGER :
			      SHUNT_REFUSED_NOT_HAD);
	if (!stream)
		return;
	if (!parked->number)	/* a peer that has proven nothing decides nothing */
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_UNUSED);
	shunt_streams_unhold(stream);
}

void shunt_claim_miss(struct shunt_service *service)
{
	uint64_t now = shunt_now(service->engine);

	for (struct shunt_parked **p = &service->parked; *p;) {
		bool leaving = atomic_load(&service->leaving);

		if (!leaving && (*p)->deadline <= now && is_late(service, p))
			continue;
		if ((*p)->deadline <= now || leaving) {
			miss(service, *p);
			unpark(p);
			continue;
		}
		shunt_task_at(&service->tasks.claim, (*p)->deadline);
		p = &(*p)->next;
	}
	say_who_is_awaited(service);
}

void shunt_claim_forget(const struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;

	for (struct shunt_parked **p = &service->parked; *p;) {
		if ((*p)->link == link)
			unpark(p);
		else
			p = &(*p)->next;
	}
	say_who_is_awaited(service);
}
