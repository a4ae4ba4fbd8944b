/*
 * Which connections move to a link: the connecting side claims, the accepting side matches, both
 * confirm. Service thread throughout. docs/PROTOCOL.md has the exchange.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/abroad.h"
#include "core/attach.h"
#include "core/decision.h"
#include "core/leave.h"
#include "core/limits.h"
#include "core/proof.h"
#include "core/rings.h"
#include "core/service.h"
#include "core/trust.h"
#include "core/uring.h"

static struct shunt_service *service_of(struct shunt_link *link)
{
	return link->engine->service;
}

/* Within one host it is enough who the peer is (trust.h). */
static bool needs_nonce(const struct shunt_link *link)
{
	return link->nonces;
}

static int reply(struct shunt_link *link, enum shunt_message_type type, uint32_t stream)
{
	struct shunt_message message = { .type = type, .stream = stream };

	return shunt_link_send(link, &message, NULL, 0);
}

static int refuse(struct shunt_link *link, const struct shunt_tuple *claimed, uint32_t stream, enum shunt_refusal why)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE, .stream = stream, .why = why };

	shunt_decision_refused(link, claimed, why);
	return shunt_link_send(link, &message, NULL, 0);
}

static void begin_claim(struct shunt_stream *stream)
{
	shunt_streams_hold(stream);
	stream->claimed = true;
}

static void end_claim(struct shunt_stream *stream)
{
	if (!stream->claimed)
		return;
	stream->claimed = false;
	shunt_streams_unhold(stream);
}

/* The stream stays on TCP. */
static void give_up(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason)
{
	shunt_streams_vacate(stream);
	if (!shunt_comeback_later(stream))
		shunt_streams_plain(engine, stream, reason);
	shunt_group_tell(engine, stream, EPOLLIN | EPOLLOUT);
	end_claim(stream);
}

/* --- the connecting side --- */

/* Why nobody is asked there now. */
static enum shunt_reason refusal_of(struct shunt_service *service, const struct shunt_tuple *tuple)
{
	struct shunt_name name;
	uint64_t now = shunt_now(service->engine);

	shunt_rendezvous_name(tuple->peer, tuple->peer_port, false, &name);
	for (int i = 0; i < SHUNT_REFUSED_SLOTS; i++) {
		struct shunt_refused *refused = &service->refused[i];

		if (refused->until > now && refused->name.length == name.length &&
		    !memcmp(refused->name.text, name.text, name.length))
			return refused->reason;
	}
	return SHUNT_REASON_NONE;
}

static void remember_refusal(struct shunt_service *service, const struct shunt_tuple *tuple, enum shunt_reason reason)
{
	struct shunt_refused *refused = &service->refused[service->refused_next++ % SHUNT_REFUSED_SLOTS];

	shunt_rendezvous_name(tuple->peer, tuple->peer_port, false, &refused->name);
	refused->until = shunt_now(service->engine) + service->engine->config.refused_ms * 1000000;
	refused->reason = reason;
}

/* close() takes this lock before: a call under way on the number would keep the socket open. */
static int learn_of(struct shunt_engine *engine, struct shunt_stream *stream)
{
	int result = 0;

	shunt_lock_take(&engine->streams_lock);
	if (!stream->tuple_known)
		result = shunt_rendezvous_learn(stream);
	shunt_lock_leave(&engine->streams_lock);
	return result;
}

/* A process that has changed its user since the link was made, for one, is to get no more. */
static bool is_trusted(struct shunt_link *link)
{
	struct ucred self;

	return link->channel.kind != SHUNT_CHANNEL_UNIX || !shunt_trust_self(link->engine, &self);
}

static void send_claim(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->fd < 0) {
		give_up(engine, stream, SHUNT_REASON_CLOSED);
		return;
	}
	if (!is_trusted(link)) {
		give_up(engine, stream, shunt_trust_reason(-ENOKEY));
		return;
	}
	message.claim.tuple = stream->tuple;
	if (link->channel.kind == SHUNT_CHANNEL_UNIX)
		message.claim.network = stream->network;
	if (shunt_link_seat(link, stream, NULL, &message.claim.place)) {
		give_up(engine, stream, link->device->kind->shortage());
		return;
	}
	if (needs_nonce(link) && !shunt_proof_demand(stream, message.claim.nonce)) {
		give_up(engine, stream, SHUNT_REASON_NO_RANDOM);
		return;
	}
	atomic_fetch_add(&engine->claims, 1);
	shunt_decision_step(stream, "claimed of process %u, as stream %u on lane %u", link->peer_pid, stream->id,
			    stream->lane->number);
	if (shunt_link_send(link, &message, NULL, 0))
		give_up(engine, stream, SHUNT_REASON_CLAIM_UNSENT);
}

void shunt_claim_on(struct shunt_link *link, struct shunt_stream *stream)
{
	if (atomic_load(&link->state) == SHUNT_LINK_UP && shunt_comeback_tried(link)) {
		send_claim(link, stream);
		return;
	}
	stream->next_offer = link->waiting;
	link->waiting = stream;
}

void shunt_claim_again(struct shunt_link *link, struct shunt_stream *stream)
{
	begin_claim(stream);
	shunt_claim_on(link, stream);
}

void shunt_claim_fails(struct shunt_service *service, struct shunt_stream *stream, enum shunt_reason reason)
{
	remember_refusal(service, &stream->tuple, reason);
	give_up(service->engine, stream, reason);
}

void shunt_claim_stays(struct shunt_engine *engine, struct shunt_stream *stream, enum shunt_reason reason)
{
	give_up(engine, stream, reason);
}

static struct shunt_link *link_to(struct shunt_service *service, const struct shunt_tuple *tuple)
{
	struct shunt_name names[SHUNT_NAMES];
	int count = shunt_rendezvous_names(tuple->peer, tuple->peer_port, names);

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (!link->initiator || atomic_load(&link->state) == SHUNT_LINK_DEAD ||
		    atomic_load(&link->failed))
			continue;
		if (shunt_rendezvous_is_among(&link->line.name, names, count))
			return link;
	}
	return NULL;
}

struct shunt_link *shunt_claim_new_link(struct shunt_service *service, int fd, const struct shunt_name *name,
					enum shunt_reason *reason)
{
	struct shunt_channel channel;
	struct shunt_link *link;

	*reason = shunt_trust_reason(fd);
	if (!*reason)
		*reason = SHUNT_REASON_NO_SHUNT;
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		*reason = SHUNT_REASON_NO_MEMORY;
	if (fd < 0)
		return NULL;
	shunt_channel_init(&channel, service->engine, SHUNT_CHANNEL_UNIX, fd);
	link = shunt_link_create(service->engine, &channel, true);
	*reason = shunt_engine_is_confined() ? SHUNT_REASON_CONFINED :
		  service->engine->group.open ? SHUNT_REASON_NO_MEMORY : SHUNT_REASON_NO_DEVICE;
	if (!link)
		return NULL;
	link->line.name = *name;
	shunt_service_add_link(service, link);
	return atomic_load(&link->state) != SHUNT_LINK_DEAD ? link : NULL;
}

static void claim(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_link *link = link_to(service, &stream->tuple);
	enum shunt_reason reason = link ? SHUNT_REASON_NONE : refusal_of(service, &stream->tuple);
	struct shunt_name name;
	int fd;

	if (reason) {
		give_up(engine, stream, reason);
		return;
	}
	if (!link && !shunt_rendezvous_is_local(engine, &stream->tuple)) {
		shunt_abroad_claim(service, stream);
		return;
	}
	if (!link) {
		fd = shunt_rendezvous_connect(engine, &stream->tuple, &name);
		shunt_decision_step(stream, "rendezvous %s: %s (%d)", name.text + 1, fd < 0 ? "error" : "connected", abs(fd));
		link = shunt_claim_new_link(service, fd, &name, &reason);
	}
	if (link)
		shunt_claim_on(link, stream);
	else
		shunt_claim_fails(service, stream, reason);
}

void shunt_claim_link_up(struct shunt_link *link)
{
	struct shunt_stream *stream;

	if (!shunt_comeback_tried(link))
		return;
	while ((stream = link->waiting) != NULL) {
		link->waiting = stream->next_offer;
		send_claim(link, stream);
	}
}

static void wait_connected(struct shunt_service *service, struct shunt_stream *stream)
{
	stream->next_offer = service->connecting;
	service->connecting = stream;
}

static void offer_connector(struct shunt_service *service, struct shunt_stream *stream)
{
	int result = atomic_load(&stream->state) == SHUNT_CANDIDATE ?
		learn_of(service->engine, stream) : -EBADF;

	if (!result)
		claim(service, stream);
	else if (result == -ENOTCONN &&
		 shunt_now(service->engine) - stream->born < service->engine->config.claim_ms * 1000000)
		wait_connected(service, stream);
	else
		give_up(service->engine, stream, SHUNT_REASON_NOT_CONNECTED);
}

/* --- the accepting side --- */

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

/* The claimed connection is ours and in use: both ends can carry it. */
static void grant(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_place *peer,
		  const uint8_t nonce[SHUNT_NONCE_BYTES])
{
	struct shunt_engine *engine = link->engine;
	struct shunt_message message = { .type = SHUNT_MSG_ACCEPT, .stream = peer->stream };
	bool forbidden = shunt_uring_forbids(engine);
	int result = forbidden ? -EPERM : shunt_link_seat(link, stream, &link->lanes[peer->lane], &message.accept.place);
	enum shunt_reason reason = forbidden ? SHUNT_REASON_URING : SHUNT_REASON_NOT_ATTACHED;

	if (result && !forbidden)
		reason = link->device->kind->shortage();
	if (!result && needs_nonce(link)) {
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
	give_up(engine, stream, reason);
	refuse(link, &stream->tuple, peer->stream, SHUNT_REFUSED_NO_ROOM);
}

static bool park(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_service *service = service_of(link);
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

static bool place_is_sound(struct shunt_link *link, const struct shunt_place *place)
{
	return place->stream > 0 && place->stream < link->peer_streams && place->lane < link->lane_count &&
	       shunt_link_ring_is_sound(link, place->ring_offset, place->ring_bytes);
}

static void on_claim(struct shunt_link *link, const struct shunt_message *message)
{
	const struct shunt_place *place = &message->claim.place;
	struct shunt_stream *stream;
	pid_t elsewhere;

	if (link->initiator || !place_is_sound(link, place)) {
		shunt_link_distrust(link, "a CLAIM out of turn, or to no sound ring");
		return;
	}
	if (shunt_leave_is_due(link->engine) || !is_trusted(link) || shunt_fault_refuses(&link->engine->fault)) {
		atomic_fetch_add(&link->engine->refused_claims, 1);
		refuse(link, &message->claim.tuple, place->stream, SHUNT_REFUSED_UNPROVEN);
		return;
	}
	shunt_comeback_claimed(link, &message->claim.tuple);
	/* Parked first: a program that uses the connection meanwhile sees that somebody waits for it. */
	if (!park(link, message))
		return;
	stream = accepted_stream(link, &message->claim.tuple, message->claim.network, false);
	if (!stream) {
		shunt_decision_claim(link, &message->claim.tuple, "waits for the program to use it");
		elsewhere = link->channel.kind == SHUNT_CHANNEL_UNIX ?
			    shunt_have_find(service_of(link), &message->claim.tuple) : 0;
		if (elsewhere)
			send_on(service_of(link), &service_of(link)->parked, elsewhere);
		return;
	}
	unpark(service_of(link), &service_of(link)->parked);
	grant(link, stream, place, message->claim.nonce);
	shunt_streams_unhold(stream);
}

static void offer_acceptor(struct shunt_service *service, struct shunt_stream *stream)
{
	struct shunt_parked **p = &service->parked;

	if (atomic_load(&stream->state) != SHUNT_CANDIDATE || stream->link)
		return;
	learn_of(service->engine, stream);
	while (*p && !is_claimed((*p)->link, stream, &(*p)->tuple, (*p)->network))
		p = &(*p)->next;
	if (*p) {
		struct shunt_parked parked = **p;

		unpark(service, p);
		grant(parked.link, stream, &parked.place, parked.nonce);
	} else if (stream->rendezvous && stream->rendezvous->fd < 0) {
		shunt_join_tell(service, stream);
	}
}

void shunt_claim_offer(struct shunt_service *service, struct shunt_stream *stream)
{
	if (shunt_uring_forbids(service->engine)) {
		give_up(service->engine, stream, SHUNT_REASON_URING);
	} else if (stream->role == SHUNT_CONNECTOR) {
		shunt_decision_step(stream, "used for the first time");
		begin_claim(stream);
		offer_connector(service, stream);
	} else {
		offer_acceptor(service, stream);
	}
	shunt_streams_unhold(stream);
}

/* --- answers --- */

static void on_accept(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message)
{
	const struct shunt_place *place = &message->accept.place;
	struct shunt_message confirm = { .type = SHUNT_MSG_CONFIRM, .stream = place->stream };
	struct shunt_engine *engine = link->engine;

	if (!link->initiator || !place_is_sound(link, place) || !stream->claimed ||
	    place->lane != stream->lane->number || message->accept.tcp > 1) {
		shunt_link_distrust(link, "an acceptance out of turn");
		return;
	}
	if (needs_nonce(link))
		shunt_proof_owe(stream, message->accept.nonce);
	if (shunt_leave_is_due(engine) || shunt_attach(engine, stream, place, NULL)) {
		/* Closed or no longer ours alone. The seat is kept until the peer has let go of it. */
		stream->peer_id = place->stream;
		shunt_streams_because(engine, stream, SHUNT_REASON_NOT_ATTACHED);
		reply(link, SHUNT_MSG_REFUSE, place->stream);
		return;
	}
	shunt_mock_asked(stream, message->accept.tcp);
	confirm.tcp = shunt_mock_wants_tcp(stream);
	shunt_attach_allow(engine, stream);
	shunt_link_send(link, &confirm, NULL, 0);
	shunt_decision_linked(stream);
	end_claim(stream);
}

static void await_settled(struct shunt_link *link, struct shunt_stream *stream)
{
	shunt_streams_hold(stream);	/* it may be closed, and another's as soon as its seat is free */
	stream->next_offer = link->refused;
	link->refused = stream;
	if (link->initiator || shunt_lane_settled(stream->lane))
		shunt_claim_settled(link, stream->lane);
}

/* A RELEASE would let the seat go, too: it comes before this, and is seen, or after, and is none (arrival.c). */
static bool reverts(struct shunt_link *link, struct shunt_stream *stream)
{
	bool done;

	if (atomic_exchange(&stream->leaving, true))
		return false;
	done = !atomic_load(&stream->released) && shunt_attach_revert(link->engine, stream);
	if (!done)
		atomic_store(&stream->leaving, false);
	return done;
}

static void on_refuse(struct shunt_link *link, struct shunt_stream *stream, uint64_t sent, uint32_t why)
{
	if (link->initiator && stream->claimed) {
		if (!stream->line)
			shunt_streams_because(link->engine, stream, shunt_decision_told(why));
		shunt_group_poll_fully(link->engine);
		stream->claimed = false;	/* that is answered; the hold goes with the seat */
		stream->named_until = sent;
		await_settled(link, stream);
	} else if (link->initiator) {
		shunt_link_distrust(link, "a refusal out of turn");
	} else if (reverts(link, stream)) {
		await_settled(link, stream);
	} else {
		shunt_link_distrust(link, "a REFUSE after a switch, a release or another REFUSE");
	}
}

/* What the acceptor had sent before it knew has been heard: the channel may be faster than that. */
static void let_claim_go(struct shunt_link *link, struct shunt_stream *stream)
{
	stream->claimed = true;
	give_up(link->engine, stream, SHUNT_REASON_NOT_HAD);
}

/* All that names it has arrived: the claimant may free its seat when it has heard that, too. */
static void let_grant_go(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE, .stream = stream->peer_id,
					 .sent = shunt_lane_messages(stream->lane) };

	shunt_link_send(link, &message, NULL, 0);
	give_up(link->engine, stream, SHUNT_REASON_PEER_CLOSED);
}

/* Nothing that is still on its way names these streams: their seats are free. */
void shunt_claim_settled(struct shunt_link *link, const struct shunt_lane *lane)
{
	struct shunt_stream **p = &link->refused, *stream;

	while ((stream = *p) != NULL) {
		if (lane && (stream->lane != lane ||
			     (link->initiator && !shunt_lane_heard(stream->lane, stream->named_until)))) {
			p = &stream->next_offer;
			continue;
		}
		*p = stream->next_offer;
		atomic_store(&stream->leaving, false);
		if (link->initiator)
			let_claim_go(link, stream);
		else
			let_grant_go(link, stream);
		shunt_streams_unhold(stream);
	}
}

static void on_mock(struct shunt_link *link, struct shunt_stream *stream, uint32_t tcp)
{
	if (tcp > 1)
		shunt_link_distrust(link, "a MOCK of an unknown track");
	else
		shunt_mock_asked(stream, tcp);
}

static bool answers_claim(const struct shunt_message *message)
{
	return message->type == SHUNT_MSG_ACCEPT || message->type == SHUNT_MSG_REFUSE ||
	       message->type == SHUNT_MSG_REDIRECT;
}

static void hear_of(struct shunt_link *link, struct shunt_stream *stream, const struct shunt_message *message)
{
	if (!stream->peer_id && !answers_claim(message)) {
		shunt_link_distrust(link, "it speaks of a connection before it has accepted it");
		return;
	}
	switch (message->type) {
	case SHUNT_MSG_ACCEPT:
		on_accept(link, stream, message);
		break;
	case SHUNT_MSG_CONFIRM:
		on_mock(link, stream, message->tcp);
		shunt_attach_allow(link->engine, stream);
		break;
	case SHUNT_MSG_REFUSE:
		on_refuse(link, stream, message->sent, message->why);
		break;
	case SHUNT_MSG_REDIRECT:
		shunt_redirect_follow(link, stream, message->process);
		break;
	case SHUNT_MSG_GROW:
		shunt_rings_grow(link->engine, stream);
		break;
	case SHUNT_MSG_SHRINK:
		shunt_rings_shrink(link, stream, &message->shrink);
		break;
	case SHUNT_MSG_EXPECT:
		shunt_proof_write(link->engine, stream);
		break;
	case SHUNT_MSG_MOCK:
		on_mock(link, stream, message->tcp);
		break;
	case SHUNT_MSG_RETIRE:
		shunt_retire_asked(link->engine, stream, message->retire.offset,
				   message->retire.announced);
		break;
	case SHUNT_MSG_RETIRED:
		shunt_retire_answered(link->engine, stream, !message->reason);
		break;
	default:
		shunt_link_distrust(link, "a message of unknown type");
	}
}

void shunt_claim_message(struct shunt_link *link, const struct shunt_message *message,
			 const int *fds, int count)
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
	if (atomic_load(&link->state) == SHUNT_LINK_HELLO) {
		if (link->line.number)
			return;	/* it was said to the link before this one */
		shunt_link_distrust(link, "a message before its introduction");
		return;
	}
	if (shunt_failover_message(link, message))
		return;
	/* Sent before the peer knew. What it has answered counts; everything else is settled by RESUME. */
	if (atomic_load(&link->state) == SHUNT_LINK_BROKEN && message->type != SHUNT_MSG_RETIRED &&
	    message->type != SHUNT_MSG_EXPECT)
		return;
	if (message->type == SHUNT_MSG_CLAIM) {
		on_claim(link, message);
		return;
	}
	/* Held: both ends may close it meanwhile, and its memory must not become another stream's. */
	stream = shunt_link_hold(link, message->stream);
	if (!stream)
		return;	/* closed by both already */
	hear_of(link, stream, message);
	shunt_streams_unhold(stream);
}

/* --- what does not come --- */

/* Whom we asked has ended; the connection may be another process's that accepts there, too. Once. */
static void claim_again(struct shunt_link *link, struct shunt_stream *stream)
{
	if (stream->asked_twice || link->channel.kind != SHUNT_CHANNEL_UNIX || atomic_load(&link->distrusted)) {
		give_up(link->engine, stream, SHUNT_REASON_BROKE);
		return;
	}
	stream->asked_twice = true;
	shunt_streams_vacate(stream);
	wait_connected(service_of(link), stream);
}

/* One that distrusts us says nothing, and one of another version cannot. */
static enum shunt_reason why_never_up(const struct shunt_link *link)
{
	if (link->channel.other_version)
		return SHUNT_REASON_OTHER_VERSION;
	return link->met ? SHUNT_REASON_BROKE_EARLY : SHUNT_REASON_NOT_LET_IN;
}

void shunt_claim_link_down(struct shunt_link *link)
{
	struct shunt_service *service = service_of(link);
	enum shunt_reason reason = why_never_up(link);
	struct shunt_stream *stream;

	for (struct shunt_parked **p = &service->parked; *p;) {
		if ((*p)->link == link)
			unpark(service, p);
		else
			p = &(*p)->next;
	}
	shunt_claim_settled(link, NULL);	/* nothing will arrive any more */
	while ((stream = link->waiting) != NULL) {
		link->waiting = stream->next_offer;
		shunt_claim_fails(service, stream, reason);
	}
	for (uint32_t id = 1; id < link->table_size && link->seated; id++) {
		stream = link->table[id];
		if (stream && stream->claimed)
			claim_again(link, stream);
	}
}

static void retry_connecting(struct shunt_service *service)
{
	struct shunt_stream *stream = service->connecting;

	service->connecting = NULL;
	while (stream) {
		struct shunt_stream *next = stream->next_offer;

		offer_connector(service, stream);
		stream = next;
	}
}

/* Nobody has used the connection in time. */
static void miss(struct shunt_service *service, const struct shunt_parked *parked)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_stream *stream = accepted_stream(parked->link, &parked->tuple, parked->network, true);

	atomic_fetch_add(&engine->refused_claims, 1);
	refuse(parked->link, &parked->tuple, parked->place.stream, stream ? SHUNT_REFUSED_UNUSED :
	       shunt_have_strangers(service, &parked->tuple) ? SHUNT_REFUSED_STRANGER : SHUNT_REFUSED_NOT_HAD);
	if (!stream)
		return;
	give_up(engine, stream, SHUNT_REASON_UNUSED);
	shunt_streams_unhold(stream);
}

int shunt_claim_tick(struct shunt_service *service)
{
	uint64_t now = shunt_now(service->engine);
	uint64_t first = SHUNT_NEVER;

	if (service->connecting && !atomic_load(&service->leaving))
		retry_connecting(service);
	for (struct shunt_parked **p = &service->parked; *p;) {
		if ((*p)->deadline <= now || atomic_load(&service->leaving)) {
			miss(service, *p);
			unpark(service, p);
			continue;
		}
		if ((*p)->deadline < first)
			first = (*p)->deadline;
		p = &(*p)->next;
	}
	if (service->connecting)
		return 1;
	return first == SHUNT_NEVER ? -1 : (int)((first - now) / 1000000 + 1);
}
