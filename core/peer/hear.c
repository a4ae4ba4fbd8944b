/* SPDX-License-Identifier: MIT */
#include "core/peer/hear.h"
#include "core/fd/own_fds.h"
#include "core/peer/links.h"
#include "core/peer/possession.h"
#include "core/peer/reconnect.h"
#include "core/recovery/failover.h"
#include "core/stream/retire.h"
#include <errno.h>
#include "core/link/screen.h"
#include "core/stream/streams.h"
#include "core/peer/attach.h"
#include "core/peer/claim.h"
#include "core/peer/claim_link.h"
#include "core/peer/claim_state.h"
#include "core/peer/claim_grant.h"
#include "core/peer/claim_refuse.h"
#include "core/peer/link_end.h"
#include "core/peer/kin_door.h"
#include "core/peer/link_make.h"
#include "core/peer/mock.h"
#include "core/peer/redirect.h"
#include "core/peer/remote.h"
#include "core/peer/remote_reply.h"
#include "core/peer/tracing.h"
#include "core/peer/witness.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/proof.h"

#define MESSAGES 64	/* of one link before the others are heard */

static bool answers_claim(const struct shunt_message *message)
{
	return message->type == SHUNT_MSG_ACCEPT || message->type == SHUNT_MSG_REFUSE ||
	       message->type == SHUNT_MSG_REDIRECT;
}

static void on_mock(struct shunt_link *link, struct shunt_stream *stream, uint32_t tcp)
{
	if (tcp > 1)
		shunt_link_distrust(link, "a MOCK of an unknown track");
	else
		shunt_mock_asked(stream, tcp);
}

static void on_confirm(struct shunt_link *link, struct shunt_stream *stream, uint32_t tcp)
{
	if (link->initiator || !shunt_claim_try(stream, SHUNT_CLAIM_AGREED)) {
		shunt_link_distrust(link, "a confirmation out of turn");
		return;
	}
	on_mock(link, stream, tcp);
	shunt_attach_allow(link->engine, stream);
}

static void hear_of(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message)
{
	if (!stream->seat->peer_id && !answers_claim(message)) {
		shunt_link_distrust(link, "it speaks of a connection before it has accepted it");
		return;
	}
	switch (message->type) {
	case SHUNT_MSG_ACCEPT:
		shunt_claim_accepted(link, stream, message);
		break;
	case SHUNT_MSG_CONFIRM:
		on_confirm(link, stream, message->tcp);
		break;
	case SHUNT_MSG_REFUSE:
		shunt_claim_refused(link, stream, message->sent, message->why);
		break;
	case SHUNT_MSG_REDIRECT:
		shunt_redirect_follow(link, stream, &message->onward);
		break;
	case SHUNT_MSG_EXPECT:
		shunt_proof_write(link->engine, stream);
		break;
	case SHUNT_MSG_NONCE:
		shunt_proof_place(link, stream, message->nonce.offset);
		break;
	case SHUNT_MSG_PROVEN:
		shunt_proof_shown(link, stream);
		break;
	case SHUNT_MSG_NO_NONCE:
		shunt_proof_refused(stream);
		break;
	case SHUNT_MSG_MOCK:
		on_mock(link, stream, message->tcp);
		break;
	case SHUNT_MSG_LEAVE:
		shunt_retire_asked(link->engine, stream, &message->leave);
		break;
	case SHUNT_MSG_TAKE:
		shunt_retire_yield(link->engine, stream, &message->take, true);
		break;
	case SHUNT_MSG_LEFT:
		shunt_retire_answered(link->engine, stream, !message->reason);
		break;
	default:
		shunt_link_distrust(link, "a message of unknown type");
	}
}

static void resume(struct shunt_link *link, const struct shunt_message *message)
{
	if (atomic_load(&link->state) == SHUNT_LINK_UP)
		shunt_link_break(link, "the peer has given up its queue pair");
	if (atomic_load(&link->state) != SHUNT_LINK_DEAD)
		shunt_failover_message(link, message);
}

void shunt_hear_message(struct shunt_link *link, const struct shunt_message *message, const int *fds, int count)
{
	struct shunt_stream *stream;

	if (message->type == SHUNT_MSG_KNOCK) {
		shunt_link_meet(link);
		return;
	}
	if (message->type == SHUNT_MSG_HELLO) {
		shunt_link_hello(link, message, fds, count);
		return;
	}
	if (shunt_possession_is_for(message)) {
		shunt_possession_hear(link, message);
		return;
	}
	if (message->type == SHUNT_MSG_ASK && atomic_load(&link->state) != SHUNT_LINK_BROKEN) {
		shunt_claim_asked(link, message);
		return;
	}
	if (atomic_load(&link->state) == SHUNT_LINK_HELLO) {
		if (link->line.number)
			return;	/* it was said to the link before this one */
		shunt_link_distrust(link, "a message before its introduction");
		return;
	}
	if (shunt_failover_is_for(message)) {
		resume(link, message);
		return;
	}
	/* Sent before the peer knew. Answers to our requests count; everything else is settled by the LEAVE of each stream. */
	if (atomic_load(&link->state) == SHUNT_LINK_BROKEN && message->type != SHUNT_MSG_LEFT &&
	    message->type != SHUNT_MSG_NO_NONCE)
		return;
	if (message->type >= SHUNT_MSG_QOS && message->type <= SHUNT_MSG_QOS_PERIOD) {
		shunt_qos_hear(link, message, fds, count);
		return;
	}
	if (message->type == SHUNT_MSG_TRACE || message->type == SHUNT_MSG_CLOCK) {
		shunt_tracing_hear(link, message);
		return;
	}
	if (message->type == SHUNT_MSG_KIN) {
		if (link->channel.kind != SHUNT_CHANNEL_UNIX || !shunt_kin_door_open(link, message))
			shunt_link_distrust(link, "it has forked for the first time twice");
		return;
	}
	if (message->type == SHUNT_MSG_CLAIM) {
		shunt_claim_heard(link, message);
		return;
	}
	/* Held: both ends may close it meanwhile, and its memory must not become another stream's. */
	stream = shunt_streams_hold_at(link, message->stream);
	if (!stream)
		return;	/* closed by both already */
	hear_of(link, stream, message);
	shunt_streams_unhold(stream);
}

/* The link's connections report the channel's TCP error, too: ETIMEDOUT, or the error of a router. */
static void lose(struct shunt_link *link, int error)
{
	if (error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH)
		link->lost = error;
	shunt_link_kill(link, link->lost ? "the peer's host does not answer" : "the peer is gone");
}

/* One message. False: none, or the link is over. */
static bool message_hear(struct shunt_link *link)
{
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS], count;
	int result = shunt_channel_receive(&link->channel, &message, fds, &count);

	if (!result)
		return false;
	if (result == -EPROTO && link->channel.other_version)	/* no fault of the peer: nothing was believed yet */
		shunt_link_kill(link, link->channel.wrong);
	else if (result == -EPROTO)
		shunt_link_distrust(link, link->channel.wrong);
	else if (result < 0)
		lose(link, -result);
	else
		shunt_hear_message(link, &message, fds, count);
	while (count--)
		shunt_screen_drop(&link->engine->loop, fds[count], link->channel.proves);
	/* Messages behind the end of a failover are not for this link any more. */
	return atomic_load(&link->state) != SHUNT_LINK_DEAD && !link->joining &&
	       !shunt_failover_over(link);
}

static bool hear_next(struct shunt_link *link)
{
	bool more;

	shunt_own_fds_begin(&link->engine->fds);
	more = message_hear(link);
	shunt_own_fds_end(&link->engine->fds);
	return more;
}

static void readable(struct shunt_link *link)
{
	bool more = atomic_load(&link->state) != SHUNT_LINK_DEAD && !shunt_failover_over(link);

	for (int i = 0; i < MESSAGES && more; i++)
		more = hear_next(link);
}

static void channel_ready(struct shunt_source *source, uint32_t events)
{
	struct shunt_link *link = shunt_loop_owner(source, struct shunt_link, source);

	if (events & EPOLLOUT)
		shunt_link_writable(link);
	if (link->joining && events & (EPOLLHUP | EPOLLERR))
		shunt_link_fail(link, "the peer is gone");
	else if (link->silent && events & (EPOLLHUP | EPOLLERR))
		lose(link, 0);
	else if (!link->joining && !link->silent && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		readable(link);
}

static void unproven(struct shunt_link *link, struct shunt_stream *stream, enum shunt_cause cause)
{
	shunt_claim_stays(link->engine, stream,
			  shunt_claim_reason(link->engine->service, stream, cause));
}

const struct shunt_link_hooks shunt_hear_hooks = {
	.failed = shunt_link_fail,
	.ready = channel_ready,
	.next = hear_next,
	.joined = shunt_link_joined,
	.met = shunt_claim_link_met,
	.proven = shunt_claim_on,
	.unproven = unproven,
	.sent_on = shunt_redirect_follow,
	.up = shunt_claim_link_up,
	.settled = shunt_claim_settled,
	.over = shunt_reconnect_take,
	.down = shunt_claim_link_down,
	.gate = shunt_remote_gate,
	.invited = shunt_remote_invited,
	.asked = shunt_remote_reply_words,
};
