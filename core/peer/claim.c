/* SPDX-License-Identifier: MIT */
#include "core/peer/claim.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/leave.h"
#include "core/stream/streams.h"
#include "core/link/trust.h"
#include "core/peer/attach.h"
#include "core/peer/claim_grant.h"
#include "core/peer/claim_link.h"
#include "core/peer/claim_refuse.h"
#include "core/peer/claim_state.h"
#include "core/peer/doubt.h"
#include "core/peer/link_make.h"
#include "core/peer/links.h"
#include "core/peer/listener_owner.h"
#include "core/peer/listener_worker.h"
#include "core/peer/meeting.h"
#include "core/peer/mock.h"
#include "core/peer/possession.h"
#include "core/peer/redirect.h"
#include "core/peer/remote.h"
#include "core/peer/verdict.h"
#include "core/peer/witness.h"
#include "core/qos/qos.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/offer.h"
#include "core/stream/proof.h"
#include "core/stream/tuple.h"
#include "core/stream/uring.h"

#define CONNECTING 1000000ull	/* ns until a connection that was not established is looked at again */

/* --- the connecting side --- */

static struct shunt_link *link_by(struct shunt_service *service, const struct shunt_tuple *tuple,
				  const struct shunt_name *names, int count)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->initiator && atomic_load(&link->state) != SHUNT_LINK_DEAD &&
		    !atomic_load(&link->failed) &&
		    shunt_channel_joins(&link->channel, tuple->local, tuple->peer) &&
		    shunt_rendezvous_is_among(&link->line.name, names, count))
			return link;
	return NULL;
}

/* A link by a wildcard's name leads to a process of this network namespace, whichever the address. */
static struct shunt_link *link_to(struct shunt_service *service, const struct shunt_tuple *tuple)
{
	struct shunt_name names[SHUNT_NAMES], meeting;
	int count = shunt_rendezvous_names(tuple->peer, tuple->peer_port, names);
	struct shunt_link *link = link_by(service, tuple, names, 1);

	if (link)
		return link;
	link = link_by(service, tuple, names + 1, count - 1);
	if (link && shunt_tuple_is_local(&service->engine->fds, tuple))
		return link;
	shunt_rendezvous_meeting(tuple->peer, tuple->peer_port, &meeting);
	return service->engine->config.dir[0] ? link_by(service, tuple, &meeting, 1) : NULL;
}

struct shunt_link *shunt_claim_new_link(struct shunt_service *service, int fd, bool strange,
					const struct shunt_name *name, enum shunt_cause *cause)
{
	struct shunt_channel channel;
	struct shunt_link *link;

	shunt_assert_service_thread(service->engine);
	*cause = shunt_trust_reason(fd);
	if (!*cause)
		*cause = SHUNT_CAUSE_NO_SHUNT;
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		*cause = SHUNT_CAUSE_NO_MEMORY;
	if (fd < 0)
		return NULL;
	shunt_channel_init(&channel, &service->engine->links, SHUNT_CHANNEL_UNIX, fd);
	if (shunt_rendezvous_is_meeting(name))
		shunt_channel_other_netns(&channel);
	else if (strange)
		shunt_channel_strange(&channel);
	*cause = SHUNT_CAUSE_DISPROVEN;
	if (channel.proves && !shunt_limits_hears(service, fd)) {
		shunt_channel_close(&channel);
		return NULL;
	}
	*cause = SHUNT_CAUSE_NO_MEMORY;
	link = shunt_link_create(service->engine, &channel, true, cause);
	if (!link)
		return NULL;
	link->line.name = *name;
	shunt_links_add(service, link);
	return atomic_load(&link->state) != SHUNT_LINK_DEAD ? link : NULL;
}

/* The user who listens there has a place for the names that no other user can take. */
static struct shunt_user_dir directory_of(struct shunt_service *service,
					  const struct shunt_stream *stream)
{
	struct shunt_user_dir where = { .network = 0 };

	if (shunt_user_dir_exists(service->engine) &&
	    shunt_witness_listener(service, &stream->tuple, &where.user))
		where.network = stream->network;
	return where;
}

static void claim_here(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_user_dir where = directory_of(service, stream);
	enum shunt_cause cause;
	struct shunt_link *link;
	struct shunt_name name;
	bool strange = false;
	int fd;

	fd = shunt_rendezvous_connect(service->engine, &stream->tuple, &where, &name, &strange);
	shunt_decision_step(stream, "rendezvous %s: %s (%d)%s", name.text + 1,
			    fd < 0 ? "error" : "connected", abs(fd),
			    strange ? ", its connections are to be proven" : "");
	link = shunt_claim_new_link(service, fd, strange, &name, &cause);
	if (link)
		shunt_claim_on(link, stream);
	else
		shunt_claim_fails(service, stream, shunt_claim_reason(service, stream, cause));
}

/* Most short connections are over before a link to another host would be up: its queue pairs were for nothing. */
static void put_off(struct shunt_stream *stream)
{
	shunt_decision_step(stream, "leads to another host: claimed once it has lasted");
	shunt_claim_turn(stream, SHUNT_UNCLAIMED);
	shunt_offer_later(stream);
	shunt_streams_unhold(stream);
}

/* In another network namespace of this host, or on another host. */
static void claim_elsewhere(struct shunt_service *service, struct shunt_stream *stream)
{
	enum shunt_cause cause;
	struct shunt_link *link;
	struct shunt_name name;
	int fd = shunt_meeting_connect(service, stream, &name);

	if (fd < 0 && !shunt_trust_reason(fd)) {
		if (shunt_offer_is_early(stream))
			put_off(stream);
		else
			shunt_remote_claim(service, stream);
		return;
	}
	link = shunt_claim_new_link(service, fd, true, &name, &cause);
	if (link)
		shunt_claim_on(link, stream);
	else
		shunt_claim_fails(service, stream, cause);
}

static void claim(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_link *link = link_to(service, &stream->tuple);
	enum shunt_cause cause = link ? SHUNT_CAUSE_NONE : shunt_claim_refusal(service, stream);

	if (shunt_verdict_leaves(stream))
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_RULE);
	else if (cause)
		shunt_claim_stays(engine, stream, cause);
	else if (link)
		shunt_claim_on(link, stream);
	else if (shunt_tuple_is_local(&engine->fds, &stream->tuple))
		claim_here(service, stream);
	else
		claim_elsewhere(service, stream);
}

static void wait_connected(struct shunt_service *service, struct shunt_stream *stream)
{
	stream->claim.next_offer = service->connecting;
	service->connecting = stream;
}

static void offer_connector(struct shunt_service *service, struct shunt_stream *stream)
{
	int result = atomic_load(&stream->state) == SHUNT_CANDIDATE ?
		shunt_claim_learn(service->engine, stream) : -EBADF;

	if (!result)
		claim(service, stream);
	else if (result == -ENOTCONN &&
		 shunt_now(service->engine) - stream->born < service->engine->config.claim_ms * 1000000)
		wait_connected(service, stream);
	else
		shunt_claim_stays(service->engine, stream,
				  result == -ENOTCONN ? SHUNT_CAUSE_NOT_CONNECTED :
							SHUNT_CAUSE_CLOSED);
}

void shunt_claim_go_on(struct shunt_service *service, struct shunt_stream *stream)
{
	if (stream->role == SHUNT_CONNECTOR) {
		shunt_claim_begin(stream);
		offer_connector(service, stream);
	} else {
		shunt_claim_match(service, stream);
	}
}

void shunt_claim_offer(struct shunt_service *service, struct shunt_stream *stream)
{
	if (shunt_uring_forbids(service->engine)) {
		shunt_claim_stays(service->engine, stream, SHUNT_CAUSE_URING);
	} else if (shunt_stream_is_doubted(stream)) {
		shunt_doubt_look(service, stream);
	} else {
		if (stream->role == SHUNT_CONNECTOR)
			shunt_decision_step(stream, "used for the first time");
		shunt_claim_go_on(service, stream);
	}
	shunt_streams_unhold(stream);
}

/* --- answers --- */

void shunt_claim_accepted(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message)
{
	const struct shunt_place *place = &message->accept.place;
	struct shunt_message answer = { .type = SHUNT_MSG_CONFIRM, .stream = place->stream };
	struct shunt_engine *engine = link->engine;

	shunt_assert_service_thread(link->engine);
	if (!link->initiator || !shunt_link_place_is_sound(link, place) ||
	    stream->claim.state != SHUNT_CLAIM_UNDER_WAY ||
	    place->lane != stream->seat->lane->number || message->accept.tcp > 1) {
		shunt_link_distrust(link, "an acceptance out of turn");
		return;
	}
	if (link->nonces)
		shunt_proof_agree(link, stream, message->accept.chance);
	if (shunt_leave_is_due(engine) || shunt_attach(engine, stream, place, NULL)) {
		/* Closed or no longer ours alone. The seat is kept until the peer has let go of it. */
		stream->seat->peer_id = place->stream;
		shunt_streams_because(engine, stream, SHUNT_CAUSE_NOT_ATTACHED);
		answer.type = SHUNT_MSG_REFUSE;
		shunt_link_send(link, &answer, NULL, 0);
		return;
	}
	shunt_mock_asked(stream, message->accept.tcp);
	answer.tcp = shunt_mock_wants_tcp(stream);
	shunt_claim_end(stream);
	shunt_claim_turn(stream, SHUNT_CLAIM_AGREED);
	shunt_attach_allow(engine, stream);
	shunt_link_send(link, &answer, NULL, 0);
	shunt_decision_linked(stream);
}

/* --- what does not come --- */

/* Whom we asked has ended; the connection may be another process's that accepts there, too. Once. */
static void claim_again(struct shunt_link *link, struct shunt_stream *stream)
{
	if (stream->claim.moved & SHUNT_MOVED_ENDED || link->channel.kind != SHUNT_CHANNEL_UNIX ||
	    atomic_load(&link->distrusted)) {
		shunt_claim_stays(link->engine, stream, SHUNT_CAUSE_BROKE);
		return;
	}
	stream->claim.moved |= SHUNT_MOVED_ENDED;
	shunt_streams_vacate(stream);
	wait_connected(link->engine->service, stream);
}

/*
 * A peer that distrusts us says nothing, and one of another version cannot. No peer distrusts a process where each could
 * trace the other. There its end of the channel is gone for another reason, such as the end of its process.
 */
static enum shunt_cause why_never_up(const struct shunt_link *link)
{
	if (link->channel.other_version)
		return SHUNT_CAUSE_OTHER_VERSION;
	return link->met || !link->channel.proves ? SHUNT_CAUSE_BROKE_EARLY :
						    SHUNT_CAUSE_NOT_LET_IN;
}

void shunt_claim_link_down(struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;
	enum shunt_cause cause = why_never_up(link);
	struct shunt_stream *stream;

	shunt_qos_left(link);
	shunt_claim_forget(link);
	shunt_possession_link_down(link, cause);
	shunt_claim_settled(link, NULL);	/* nothing will arrive any more */
	while ((stream = link->waiting) != NULL) {
		link->waiting = stream->claim.next_offer;
		shunt_claim_fails(service, stream, cause);
	}
	shunt_streams_seated(link, stream) if (stream->claim.state == SHUNT_CLAIM_UNDER_WAY)
		claim_again(link, stream);
}

static void retry_connecting(struct shunt_service *service)
{
	struct shunt_stream *stream = service->connecting;

	service->connecting = NULL;
	while (stream) {
		struct shunt_stream *next = stream->claim.next_offer;

		offer_connector(service, stream);
		stream = next;
	}
}

void shunt_claim_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, claim);

	if (service->connecting && !atomic_load(&service->leaving))
		retry_connecting(service);
	shunt_claim_miss(service);
	if (service->connecting)
		shunt_task_at(task, shunt_now(service->engine) + CONNECTING);
}
