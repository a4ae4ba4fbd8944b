/* SPDX-License-Identifier: MIT */
#include "core/peer/possession.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/peer/limits.h"
#include "core/peer/link_make.h"
#include "core/peer/links.h"
#include "core/peer/proof_parts.h"
#include "core/peer/proofs.h"
#include "core/peer/witness.h"
#include "core/service.h"
#include "core/stream/decision.h"
#include "core/stream/tuple.h"

static bool is_under_way(const struct shunt_possession *proof)
{
	return proof->state == SHUNT_PROOF_CHALLENGED || proof->state == SHUNT_PROOF_SHOWING;
}

static void set_limit(struct shunt_possession *proof, uint64_t ns)
{
	struct shunt_engine *engine = proof->link->engine;

	proof->until = shunt_now(engine) + ns;
	shunt_task_at(&engine->service->tasks.possession, proof->until);
}

/* --- the end of a proof --- */

/* The stream is as before. The hold of the claim is not the proof's. */
static void proof_end(struct shunt_possession *proof)
{
	struct shunt_service *service = proof->link->engine->service;
	struct shunt_stream *stream = proof->stream;

	shunt_proofs_remove(proof);
	if (proof->shows)
		shunt_marks_undo(stream);
	if (stream->possession == proof)
		stream->possession = NULL;
	if (is_under_way(proof) && !proof->link->initiator) {
		proof->link->proving--;
		service->proofs.queued_due = true;
		shunt_task_at(&service->tasks.possession, 0);
	}
	free(proof);
	shunt_streams_unhold(stream);
}

static void proof_tell(struct shunt_link *link, uint32_t number, enum shunt_refusal why)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE, .stream = number, .why = why };

	if (number)
		shunt_link_send(link, &message, NULL, 0);
}

/* We give it up: the peer hears of it, and the claim is over. */
static void proof_fail(struct shunt_possession *proof, enum shunt_refusal why)
{
	struct shunt_link *link = proof->link;
	struct shunt_engine *engine = link->engine;
	struct shunt_stream *stream = proof->stream;
	struct shunt_tuple claimed = shunt_tuple_reverse(&stream->tuple);

	proof_tell(link, proof->peer_number, why);
	proof_end(proof);
	if (link->initiator) {
		engine->link_hooks->unproven(link, stream, shunt_decision_told(why));
		return;
	}
	atomic_fetch_add(&engine->refused_claims, 1);
	shunt_decision_refused(link, &claimed, why);
}

/* The peer's digest was wrong, or it has shown nothing in time although it knew the bits. */
static void disbelieve(struct shunt_possession *proof)
{
	struct shunt_link *link = proof->link;

	atomic_fetch_add(&link->engine->disproven, 1);
	shunt_limits_wrong(link->engine->service, link->peer_user);
	proof_fail(proof, SHUNT_REFUSED_DISPROVEN);
}

/* It was no right answer of the peer, whose socket is seen. */
static void doubt(struct shunt_possession *proof, const struct shunt_sighting *peer)
{
	struct shunt_tuple tuple = shunt_tuple_reverse(&proof->stream->tuple);
	struct shunt_link *link = proof->link;

	if (peer->established)
		shunt_limits_doubt(link->engine->service, link->peer_user, &tuple, peer->cookie);
	else
		shunt_limits_vain(link->engine->service, link->peer_user);
}

/* The peer's socket showed wrong bits. */
static void disprove(struct shunt_possession *proof, const struct shunt_sighting *peer)
{
	atomic_fetch_add(&proof->link->engine->disproven, 1);
	doubt(proof, peer);
	proof_fail(proof, SHUNT_REFUSED_DISPROVEN);
}

/* The peer's socket has shown all parts: the peer holds it. */
static void believe(struct shunt_possession *proof)
{
	struct shunt_link *link = proof->link;

	atomic_fetch_add(&link->engine->proven, 1);
	proof->stream->proven_on = link->channel.number;
	shunt_decision_step(proof->stream, "process %u has proven that it holds it",
			    link->peer_pid);
	if (!link->channel.proven)
		shunt_link_proven(link);
}

/* Both ends know. */
static void succeed(struct shunt_possession *proof)
{
	struct shunt_link *link = proof->link;
	struct shunt_stream *stream = proof->stream;

	shunt_streams_hold(stream);
	proof_end(proof);
	if (link->initiator)
		link->engine->link_hooks->proven(link, stream);
	shunt_streams_unhold(stream);
}

/* --- the claimant asks --- */

bool shunt_possession_is_proven(const struct shunt_link *link, const struct shunt_stream *stream)
{
	return !link->channel.proves || link->channel.other_netns ||
	       stream->proven_on == link->channel.number;
}

void shunt_possession_ask(struct shunt_link *link, struct shunt_stream *stream)
{
	struct shunt_message message = { .type = SHUNT_MSG_ASK };
	struct shunt_possession *proof = stream->possession ? NULL : shunt_proofs_make(link, stream, SHUNT_PROOF_ASKED);

	if (!proof) {
		link->engine->link_hooks->unproven(link, stream, SHUNT_CAUSE_NO_MEMORY);
		return;
	}
	stream->possession = proof;
	message.proof.number = proof->number;
	message.proof.tuple = stream->tuple;
	message.proof.network = stream->network;
	shunt_proof_digest(proof->half, message.proof.bytes);
	/* The peer may wait for its program as long as it may for a claim. */
	set_limit(proof, SHUNT_PROOF_NS + 4 * link->engine->config.claim_ms * 1000000);
	shunt_decision_step(stream, "process %u is asked to prove that it has it", link->peer_pid);
	if (shunt_link_send(link, &message, NULL, 0))
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
}

/* --- the acceptor challenges --- */

static void challenge(struct shunt_possession *proof)
{
	struct shunt_message message = { .type = SHUNT_MSG_CHALLENGE, .stream = proof->peer_number };

	proof->state = SHUNT_PROOF_CHALLENGED;
	proof->stream->possession = proof;
	proof->link->proving++;
	message.proof.number = proof->number;
	memcpy(message.proof.bytes, proof->half, SHUNT_PROOF_HALF);
	set_limit(proof, SHUNT_PROOF_NS);
	if (shunt_link_send(proof->link, &message, NULL, 0))
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
}

static void start_queued(struct shunt_service *service)
{
	struct shunt_possession *proof = service->proofs.first, *next;

	service->proofs.queued_due = false;
	for (; proof; proof = next) {
		next = proof->next;
		if (proof->state != SHUNT_PROOF_QUEUED)
			continue;
		if (atomic_load(&proof->stream->state) != SHUNT_CANDIDATE ||
		    proof->stream->seat->link)
			proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
		else if (!proof->stream->possession && proof->link->proving < SHUNT_PROOFS_PER_LINK)
			challenge(proof);
	}
}

void shunt_possession_asked(struct shunt_link *link, struct shunt_stream *stream, uint32_t number,
			    const uint8_t digest[SHUNT_DIGEST_BYTES])
{
	struct shunt_possession *proof = NULL;

	if (!shunt_proofs_of(link, stream))	/* no peer needs two at once */
		proof = shunt_proofs_make(link, stream, SHUNT_PROOF_QUEUED);
	if (!proof) {
		proof_tell(link, number, SHUNT_REFUSED_NO_ROOM);
		return;
	}
	proof->peer_number = number;
	memcpy(proof->digest, digest, sizeof(proof->digest));
	set_limit(proof, SHUNT_PROOF_NS);
	if (!stream->possession && link->proving < SHUNT_PROOFS_PER_LINK)
		challenge(proof);
}

/* --- rounds --- */

static void look_soon(struct shunt_possession *proof)
{
	proof->looks = true;
	shunt_task_at(&proof->link->engine->service->tasks.possession, 0);
}

/* Our socket shows the part of this round. False: the proof is over. */
static bool proof_show(struct shunt_possession *proof)
{
	if (!shunt_marks_show(proof->stream, shunt_proof_part(proof->ours, proof->round),
			      !proof->shows)) {
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
		return false;
	}
	proof->shows = true;
	return true;
}

static void say_shown(struct shunt_possession *proof, uint32_t round)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHOWN, .stream = proof->peer_number };

	message.proof.round = round;
	if (shunt_link_send(proof->link, &message, NULL, 0))
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
}

/* The peer's socket shows what it has to in this round. */
static void is_right(struct shunt_possession *proof)
{
	struct shunt_message message = { .type = SHUNT_MSG_SHOWN, .stream = proof->peer_number };

	if (!proof->link->initiator) {
		if (!proof_show(proof))
			return;
		if (proof->round == SHUNT_PROOF_ROUNDS - 1)
			believe(proof);	/* before a HELLO can come, for which this says SHOWN */
		say_shown(proof, proof->round);
		return;
	}
	if (++proof->round < SHUNT_PROOF_ROUNDS) {
		if (proof_show(proof))
			say_shown(proof, proof->round);
		return;
	}
	message.proof.round = SHUNT_PROOF_ROUNDS;
	if (shunt_link_send(proof->link, &message, NULL, 0)) {
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
		return;
	}
	believe(proof);
	succeed(proof);
}

/* Both halves are known. False: the kernel does not show the ends of the channel. */
static bool compute(struct shunt_possession *proof, const uint8_t peers[SHUNT_PROOF_HALF])
{
	struct shunt_link *link = proof->link;
	struct shunt_proof_facts facts = { .claimants = peers, .acceptors = proof->half,
					   .tuple = shunt_tuple_reverse(&proof->stream->tuple) };
	uint32_t ends[2];	/* ours comes first */
	uint64_t processes[2];	/* the same */

	if (shunt_witness_channel(link->engine->service, link->channel.fd, ends) ||
	    shunt_witness_processes(link->engine->service, link->channel.fd, processes))
		return false;
	facts.claimants_process = processes[!link->initiator];
	facts.acceptors_process = processes[link->initiator];
	facts.claimants_end = ends[!link->initiator];
	facts.acceptors_end = ends[link->initiator];
	if (link->initiator) {
		facts.claimants = proof->half;
		facts.acceptors = peers;
		facts.tuple = proof->stream->tuple;
	}
	proof->ours = shunt_proof_parts(&facts, link->initiator);
	proof->theirs = shunt_proof_parts(&facts, !link->initiator);
	return true;
}

static void on_challenge(struct shunt_possession *proof, const struct shunt_message *message)
{
	struct shunt_message answer = { .type = SHUNT_MSG_REVEAL };

	proof->peer_number = message->proof.number;
	proof->state = SHUNT_PROOF_SHOWING;
	set_limit(proof, SHUNT_PROOF_NS);
	if (!compute(proof, message->proof.bytes)) {
		proof_fail(proof, SHUNT_REFUSED_UNSEEN);
		return;
	}
	if (!proof_show(proof))
		return;
	answer.stream = proof->peer_number;
	memcpy(answer.proof.bytes, proof->half, SHUNT_PROOF_HALF);
	if (shunt_link_send(proof->link, &answer, NULL, 0))
		proof_fail(proof, SHUNT_REFUSED_NO_ROOM);
}

static void on_reveal(struct shunt_possession *proof, const struct shunt_message *message)
{
	uint8_t digest[SHUNT_DIGEST_BYTES];

	shunt_proof_digest(message->proof.bytes, digest);
	proof->state = SHUNT_PROOF_SHOWING;
	if (memcmp(digest, proof->digest, sizeof(digest)))
		disbelieve(proof);
	else if (!compute(proof, message->proof.bytes))
		proof_fail(proof, SHUNT_REFUSED_UNSEEN);
	else
		look_soon(proof);
}

/* False: out of turn. */
static bool on_shown(struct shunt_possession *proof, uint32_t round)
{
	bool claims = proof->link->initiator;

	if (proof->looks || round != proof->round + !claims || (!claims && !proof->shows))
		return false;
	if (!claims && round == SHUNT_PROOF_ROUNDS) {
		succeed(proof);
		return true;
	}
	proof->round = round;
	look_soon(proof);
	return true;
}

static bool peer_is_seen(struct shunt_possession *proof, struct shunt_sighting *seen)
{
	struct shunt_tuple peer = shunt_tuple_reverse(&proof->stream->tuple);

	return !shunt_witness_look(proof->link->engine->service, &peer, seen, 1) && seen->seen;
}

/*
 * The peer gives up. It knew what to show, and may have seen that chance was against it, so that is a wrong answer,
 * too. Not if the connection has ended, which a peer that does not have it cannot bring about.
 */
static void give_up(struct shunt_possession *proof)
{
	struct shunt_sighting seen;

	if (!is_under_way(proof))
		return;
	if (peer_is_seen(proof, &seen))
		doubt(proof, &seen);
	else
		shunt_limits_vain(proof->link->engine->service, proof->link->peer_user);
}

static void on_refuse(struct shunt_possession *proof, uint32_t why)
{
	struct shunt_link *link = proof->link;
	struct shunt_stream *stream = proof->stream;

	give_up(proof);
	proof_end(proof);
	if (link->initiator)
		link->engine->link_hooks->unproven(link, stream, shunt_decision_told(why));
}

static void on_redirect(struct shunt_possession *proof, const struct shunt_message *message)
{
	struct shunt_link *link = proof->link;
	struct shunt_stream *stream = proof->stream;

	proof_end(proof);
	link->engine->link_hooks->sent_on(link, stream, &message->onward);
}

bool shunt_possession_is_for(const struct shunt_message *message)
{
	return message->type == SHUNT_MSG_CHALLENGE || message->type == SHUNT_MSG_REVEAL ||
	       message->type == SHUNT_MSG_SHOWN ||
	       ((message->type == SHUNT_MSG_REFUSE || message->type == SHUNT_MSG_REDIRECT) &&
		message->stream & SHUNT_PROOF_BIT);
}

/* The one place where a message moves a proof. False: out of turn. */
static bool proof_move(struct shunt_possession *proof, const struct shunt_message *message)
{
	bool claims = proof->link->initiator;

	if (message->type == SHUNT_MSG_CHALLENGE && claims && proof->state == SHUNT_PROOF_ASKED &&
	    message->proof.number & SHUNT_PROOF_BIT)
		on_challenge(proof, message);
	else if (message->type == SHUNT_MSG_REVEAL && !claims &&
		 proof->state == SHUNT_PROOF_CHALLENGED)
		on_reveal(proof, message);
	else if (message->type == SHUNT_MSG_SHOWN && proof->state == SHUNT_PROOF_SHOWING)
		return on_shown(proof, message->proof.round);
	else if (message->type == SHUNT_MSG_REFUSE)
		on_refuse(proof, message->why);
	else if (message->type == SHUNT_MSG_REDIRECT && claims && proof->state == SHUNT_PROOF_ASKED)
		on_redirect(proof, message);
	else
		return false;
	return true;
}

void shunt_possession_hear(struct shunt_link *link, const struct shunt_message *message)
{
	struct shunt_possession *proof = shunt_proofs_find(link, message->stream);

	if (proof && !proof_move(proof, message))
		shunt_link_distrust(link, "a step of a proof out of turn");
}

/* --- the witness --- */

struct look {
	struct shunt_possession *proofs[SHUNT_WITNESS_BATCH];
	struct shunt_tuple tuples[2 * SHUNT_WITNESS_BATCH];	/* of each the peer's socket, and our own */
	struct shunt_sighting seen[2 * SHUNT_WITNESS_BATCH];
	uint32_t count;
};

/* The namespace in which the witness looks is our socket's: it has been seen there. */
static bool is_own(struct shunt_stream *stream, const struct shunt_sighting *own)
{
	struct shunt_engine *engine = shunt_stream_engine(stream);
	socklen_t length;
	uint64_t cookie = 0;
	bool is;

	shunt_lock_take(&engine->streams_lock);
	length = sizeof(cookie);
	is = stream->fd >= 0 &&
	     !engine->sys->getsockopt(stream->fd, SOL_SOCKET, SO_COOKIE, &cookie, &length);
	shunt_lock_leave(&engine->streams_lock);
	return is && own->seen && own->cookie == cookie;
}

static void proof_judge(struct shunt_possession *proof, const struct shunt_sighting *peer,
			const struct shunt_sighting *own)
{
	bool here = is_own(proof->stream, own);

	proof->looks = false;
	if (here && !peer->seen)
		shunt_limits_vain(proof->link->engine->service, proof->link->peer_user);
	if (!here || !peer->seen) {
		proof_fail(proof, SHUNT_REFUSED_UNSEEN);
	} else if ((proof->cookie && proof->cookie != peer->cookie) ||
		 peer->bits != shunt_proof_part(proof->theirs, proof->round)) {
		disprove(proof, peer);
	} else {
		proof->cookie = peer->cookie;
		is_right(proof);
	}
}

/* Some of those that are to be looked at. False: there was none. */
static bool proof_look(struct shunt_service *service, struct look *look)
{
	look->count = 0;
	for (struct shunt_possession *proof = service->proofs.first;
	     proof && look->count < SHUNT_WITNESS_BATCH; proof = proof->next) {
		if (!proof->looks)
			continue;
		look->tuples[2 * look->count] = shunt_tuple_reverse(&proof->stream->tuple);
		look->tuples[2 * look->count + 1] = proof->stream->tuple;
		look->proofs[look->count++] = proof;
	}
	if (!look->count)
		return false;
	if (shunt_witness_look(service, look->tuples, look->seen, 2 * look->count))
		memset(look->seen, 0, sizeof(look->seen));
	for (uint32_t i = 0; i < look->count; i++)
		proof_judge(look->proofs[i], &look->seen[2 * i], &look->seen[2 * i + 1]);
	return true;
}

/* It has had its time. A connection that lives could have been proven. */
static void end_silent(struct shunt_possession *proof)
{
	struct shunt_sighting seen;

	if (is_under_way(proof) && peer_is_seen(proof, &seen) && seen.established) {
		disbelieve(proof);
		return;
	}
	if (is_under_way(proof))
		shunt_limits_vain(proof->link->engine->service, proof->link->peer_user);
	proof_fail(proof, SHUNT_REFUSED_SILENT);
}

static void end_overdue(struct shunt_service *service, struct shunt_task *task)
{
	uint64_t now = shunt_now(service->engine);
	struct shunt_possession *proof = service->proofs.first, *next;

	for (; proof; proof = next) {
		next = proof->next;
		if (proof->until > now)
			shunt_task_at(task, proof->until);
		else
			end_silent(proof);
	}
}

void shunt_possession_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, possession);
	struct look some;

	while (proof_look(service, &some))
		;
	end_overdue(service, task);
	if (service->proofs.queued_due)
		start_queued(service);
}

/* One proof counts for all of the link, and rather one whose connection lives. */
static void give_up_all(struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_sighting seen;
	bool any = false;

	for (struct shunt_possession *proof = service->proofs.first; proof; proof = proof->next) {
		if (proof->link != link || !is_under_way(proof))
			continue;
		any = true;
		if (peer_is_seen(proof, &seen) && seen.established) {
			doubt(proof, &seen);
			return;
		}
	}
	if (any)
		shunt_limits_vain(service, link->peer_user);
}

void shunt_possession_link_down(struct shunt_link *link, enum shunt_cause cause)
{
	struct shunt_service *service = link->engine->service;
	struct shunt_possession *proof = service->proofs.first, *next;

	if (!atomic_load(&service->leaving))
		give_up_all(link);
	for (; proof; proof = next) {
		struct shunt_stream *stream = proof->stream;

		next = proof->next;
		if (proof->link != link)
			continue;
		proof_end(proof);
		if (link->initiator)
			link->engine->link_hooks->unproven(link, stream, cause);
	}
}
