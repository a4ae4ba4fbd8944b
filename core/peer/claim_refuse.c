/* SPDX-License-Identifier: MIT */
#include "core/engine.h"
#include "core/peer/claim_refuse.h"
#include "core/peer/attach.h"
#include "core/peer/claim_state.h"
#include "core/service.h"
#include "core/stream/decision.h"

/* All messages that the acceptor sent before it knew have been heard: the channel may be faster than the lane. */
static void let_claim_go(struct shunt_link *link, struct shunt_stream *stream)
{
	shunt_claim_turn(stream, SHUNT_CLAIM_UNDER_WAY);
	shunt_claim_stays(link->engine, stream, SHUNT_CAUSE_NOT_HAD);
}

/* All that names it has arrived: the claimant may free its seat when it has heard that, too. */
static void let_grant_go(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE,
					 .stream = stream->seat->peer_id,
					 .sent = shunt_lane_messages(stream->seat->lane) };

	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	shunt_link_send(link, &message, NULL, 0);
	shunt_claim_stays(link->engine, stream, SHUNT_CAUSE_PEER_CLOSED);
}

void shunt_claim_settled(struct shunt_link *link, const struct shunt_lane *lane)
{
	struct shunt_stream **p = &link->refused, *stream;

	while ((stream = *p) != NULL) {
		if (lane && (stream->seat->lane != lane ||
			     (link->initiator &&
			      !shunt_lane_heard(stream->seat->lane, stream->claim.named_until)))) {
			p = &stream->claim.next_offer;
			continue;
		}
		*p = stream->claim.next_offer;
		if (link->initiator)
			let_claim_go(link, stream);
		else
			let_grant_go(link, stream);
		shunt_streams_unhold(stream);
	}
}

static void await_settled(struct shunt_link *link, struct shunt_stream *stream)
{
	shunt_streams_hold(stream);	/* it may be closed, and another's as soon as its seat is free */
	stream->claim.next_offer = link->refused;
	link->refused = stream;
	if (link->initiator || shunt_lane_settled(stream->seat->lane))
		shunt_claim_settled(link, stream->seat->lane);
}

/*
 * A RELEASE would let the seat go, too. Either it comes before this, and is seen, or after, and
 * then inbound.c ignores it.
 */
static bool reverts(struct shunt_link *link, struct shunt_stream *stream)
{
	enum shunt_claim_state before = stream->claim.state;

	if (!shunt_claim_try(stream, SHUNT_CLAIM_LEAVING))
		return false;
	if (!shunt_stream_is_released(stream) && shunt_attach_revert(link->engine, stream))
		return true;
	shunt_claim_turn(stream, before);
	return false;
}

/* The kernel of another host or network namespace would have to be asked there. */
static enum shunt_cause reason_told(const struct shunt_link *link,
				     const struct shunt_stream *stream, uint32_t why)
{
	enum shunt_cause cause = shunt_decision_told(why);

	return link->channel.kind == SHUNT_CHANNEL_UNIX && !link->channel.other_netns ?
	       shunt_claim_reason(link->engine->service, stream, cause) : cause;
}

void shunt_claim_refused(struct shunt_link *link, struct shunt_stream *stream, uint64_t sent, uint32_t why)
{
	if (link->initiator && stream->claim.state == SHUNT_CLAIM_UNDER_WAY) {
		if (!stream->claim.line)
			shunt_streams_because(link->engine, stream, reason_told(link, stream, why));
		shunt_group_poll_fully(&link->engine->group);
		shunt_claim_turn(stream, SHUNT_CLAIM_LEAVING);	/* that is answered; the hold goes with the seat */
		stream->claim.named_until = sent;
		await_settled(link, stream);
	} else if (link->initiator) {
		shunt_link_distrust(link, "a refusal out of turn");
	} else if (reverts(link, stream)) {
		await_settled(link, stream);
	} else {
		shunt_link_distrust(
			link, "a REFUSE after a CONFIRM, a switch, a release or another REFUSE");
	}
}
