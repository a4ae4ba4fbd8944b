/* SPDX-License-Identifier: MIT */
#include "core/peer/claim_link.h"
#include "core/engine.h"
#include "core/lane/lanes.h"
#include "core/stream/streams.h"
#include "core/link/trust.h"
#include "core/peer/claim_state.h"
#include "core/peer/possession.h"
#include "core/peer/reconnect.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/proof.h"

static void send_claim(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->fd < 0) {
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_CLOSED);
		return;
	}
	if (shunt_stream_is_doubted(stream)) { /* a fork has made a second holder meanwhile */
		shunt_claim_end(stream);
		return;
	}
	if (!shunt_claim_is_trusted(link)) {
		shunt_claim_stays(engine, stream, shunt_trust_reason(-ENOKEY));
		return;
	}
	if (!shunt_channel_joins(&link->channel, stream->tuple.local, stream->tuple.peer)) {
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_ELSEWHERE);
		return;
	}
	message.claim.tuple = stream->tuple;
	if (link->channel.kind == SHUNT_CHANNEL_UNIX && !link->channel.other_netns)
		message.claim.network = stream->network;
	if (shunt_streams_seat(stream, link, shunt_lanes_emptiest(link), &message.claim.place)) {
		shunt_claim_stays(engine, stream,
				  link->device->kind->shortage(SHUNT_SHORT_OF_RINGS, -ENOMEM));
		return;
	}
	if (link->nonces && !shunt_proof_chance(stream, message.claim.chance)) {
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_NO_RANDOM);
		return;
	}
	atomic_fetch_add(&engine->claims, 1);
	shunt_decision_step(stream, "claimed of process %u, as stream %u on lane %u",
			    link->peer_pid, stream->seat->id, stream->seat->lane->number);
	if (shunt_link_send(link, &message, NULL, 0))
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_CLAIM_UNSENT);
}

void shunt_claim_on(struct shunt_link *link, struct shunt_stream *stream)
{
	if (link->met && !shunt_possession_is_proven(link, stream)) {
		shunt_possession_ask(link, stream);
		return;
	}
	if (atomic_load(&link->state) == SHUNT_LINK_UP && shunt_reconnect_tried(link)) {
		send_claim(link, stream);
		return;
	}
	stream->claim.next_offer = link->waiting;
	link->waiting = stream;
}

void shunt_claim_again(struct shunt_link *link, struct shunt_stream *stream)
{
	shunt_claim_begin(stream);
	shunt_claim_on(link, stream);
}

void shunt_claim_link_met(struct shunt_link *link)
{
	struct shunt_stream *stream;

	while ((stream = link->waiting) != NULL) {
		link->waiting = stream->claim.next_offer;
		shunt_claim_on(link, stream);
	}
}

void shunt_claim_link_up(struct shunt_link *link)
{
	struct shunt_stream *stream;

	shunt_assert_service_thread(link->engine);
	if (!shunt_reconnect_tried(link))
		return;
	while ((stream = link->waiting) != NULL) {
		link->waiting = stream->claim.next_offer;
		send_claim(link, stream);
	}
}
