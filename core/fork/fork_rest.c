/* SPDX-License-Identifier: MIT */
#include "core/fork/fork_rest.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include "core/engine.h"
#include "core/fork/fork_slots.h"
#include "core/loop/request.h"

/*
 * The word: who has taken it, a mark for that, a count. The count is odd while the stream is in use and even while it
 * rests, and never comes twice, not even for the next stream of the slot.
 */
#define TAKER_MASK ((1ull << 22) - 1) /* pids are below 2^22 */
#define TAKEN (1ull << 22)
#define COUNT_SHIFT 24

#define BUSY_WORK                                                                                  \
	(SHUNT_WORK_UPGRADE | SHUNT_WORK_DATA | SHUNT_WORK_HANDBACK | SHUNT_WORK_FIN |             \
	 SHUNT_WORK_RESET | SHUNT_WORK_RELEASE)

static uint64_t count_of(uint64_t word)
{
	return word >> COUNT_SHIFT;
}

static uint64_t in_use(uint64_t word)
{
	return ((count_of(word) + 1) | 1) << COUNT_SHIFT;
}

/* --- the owner --- */

static bool may_be_reached(const struct shunt_link *link)
{
	return link && atomic_load(&((struct shunt_link *)link)->state) == SHUNT_LINK_UP &&
	       !atomic_load(&((struct shunt_link *)link)->failed) &&
	       link->channel.kind == SHUNT_CHANNEL_UNIX && link->channel.known;
}

/* Nothing of what is to be sent lies in our memory alone. */
static bool has_sent_all(struct shunt_stream *stream)
{
	struct shunt_tx *tx = &stream->tx;
	struct shunt_seat_out *out = &stream->seat->out;

	return !(atomic_load(&stream->seat->work) & BUSY_WORK) &&
	       atomic_load(&out->staged) == atomic_load(&out->posted) && !tx->backlog.bytes &&
	       !shunt_heading_is(&out->heading, SHUNT_HEADING_UNPOSTED | SHUNT_HEADING_HALTED |
							SHUNT_HEADING_KERNELS) &&
	       !shunt_seat_fin_is_due(out) && !out->pin &&
	       !atomic_load(&out->gather_since) && atomic_load(&out->show) == SHUNT_SHOWN;
}

static bool is_whole(struct shunt_stream *stream)
{
	const struct shunt_seat_in *in = &stream->seat->in;

	return atomic_load(&stream->state) == SHUNT_LINKED &&
	       atomic_load(&stream->seat->leaving.retiring) == SHUNT_STAYING &&
	       atomic_load(&stream->seat->leaving.asked) == SHUNT_NOT_ASKED &&
	       !atomic_load(&stream->seat->release) && !atomic_load(&stream->end.word) &&
	       atomic_load(&stream->end.fin) == SHUNT_NEVER &&
	       atomic_load(&in->proof.state) == SHUNT_PROVEN &&
	       !shunt_intake_is(&in->intake,
				SHUNT_INTAKE_FINAL | SHUNT_INTAKE_COPIED | SHUNT_INTAKE_REPEAT) &&
	       stream->parting == SHUNT_PARTING_NONE && !stream->refusing && has_sent_all(stream);
}

/* The peer is told by what it will know our relatives, before there is one. */
static bool introduce(struct shunt_link *link)
{
	struct shunt_message message = { .type = SHUNT_MSG_KIN };

	if (link->kin_told)
		return true;
	if (link->engine->sys->getrandom(message.kin, sizeof(message.kin), GRND_NONBLOCK) !=
	    sizeof(message.kin))
		return false;
	memcpy(link->kin, message.kin, sizeof(link->kin));
	link->kin_told = !shunt_link_send(link, &message, NULL, 0);
	return link->kin_told;
}

/* Both locks of the stream held. */
static void come_to_rest(struct shunt_stream *stream)
{
	struct shunt_fork_slot *slot = stream->sharing.slot;
	uint64_t word = atomic_load(&slot->use);

	if (!is_whole(stream) || !may_be_reached(stream->seat->link) ||
	    !introduce(stream->seat->link) || !(count_of(word) & 1) || word & TAKEN)
		return;
	stream->sharing.rest = count_of(word) + 1;
	stream->seat->out.quick = false;
	atomic_store(&stream->seat->leaving.retiring, SHUNT_RESTING);
	atomic_store(&slot->use, stream->sharing.rest << COUNT_SHIFT);
}

/* A thread that is using it does so during the fork, too. */
void shunt_fork_rest_begin(struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	if (retiring == SHUNT_RESTING)
		return; /* since an earlier fork */
	stream->sharing.rest = 0;
	if (retiring != SHUNT_STAYING || !shunt_lock_try(&stream->rx.lock))
		return;
	if (shunt_lock_try(&stream->tx.lock)) {
		come_to_rest(stream);
		shunt_lock_leave(&stream->tx.lock);
	}
	shunt_lock_leave(&stream->rx.lock);
}

bool shunt_fork_rest_end(struct shunt_stream *stream)
{
	struct shunt_fork_slot *slot = stream->sharing.slot;
	uint64_t word = atomic_load(&slot->use);

	/* A reader and a sender may come at once: then the count is odd already. */
	while (!(word & TAKEN))
		if (count_of(word) & 1 ||
		    atomic_compare_exchange_strong(&slot->use, &word, in_use(word))) {
			atomic_store(&stream->seat->leaving.retiring, SHUNT_STAYING);
			return true;
		}
	return false;
}

void shunt_fork_rest_revoke(struct shunt_stream *stream)
{
	shunt_fork_rest_none(stream->sharing.slot);
	atomic_store(&stream->seat->leaving.retiring, SHUNT_STAYING);
}

void shunt_fork_rest_none(struct shunt_fork_slot *slot)
{
	uint64_t word = atomic_load(&slot->use);

	while (!atomic_compare_exchange_strong(&slot->use, &word, in_use(word)))
		;
}

bool shunt_fork_rest_is_taken(const struct shunt_stream *stream)
{
	const struct shunt_fork_slot *slot = stream->sharing.slot;

	return slot && atomic_load(&((struct shunt_fork_slot *)slot)->use) & TAKEN;
}

/* A relative has it: the service thread asks the peer whether it knows, until it does. */
static void lose(struct shunt_stream *stream)
{
	atomic_store(&stream->seat->leaving.retiring, SHUNT_TAKEN);
	shunt_request_owner(&stream->engine->loop);
}

bool shunt_fork_rest_holds(struct shunt_stream *stream)
{
	switch (atomic_load(&stream->seat->leaving.retiring)) {
	case SHUNT_RESTING:
		if (shunt_fork_rest_end(stream))
			return false;
		lose(stream);
		return true;
	case SHUNT_TAKEN:
	case SHUNT_RETIRING:
		return true;
	default:
		return false;
	}
}

void shunt_fork_rest_over(struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	if (retiring == SHUNT_RESTING || retiring == SHUNT_TAKEN)
		shunt_fork_rest_revoke(stream);
	if (retiring == SHUNT_RETIRING)
		shunt_patience_end(stream->seat->link);
	if (retiring == SHUNT_TAKEN || retiring == SHUNT_RETIRING)
		atomic_store(&stream->seat->leaving.retiring, SHUNT_CANNOT_RETIRE);
}

/* --- a relative --- */

/* One that has been killed meanwhile had the same copy, and the peer hears of it as often as it is told. */
static bool is_abandoned(uint64_t word)
{
	pid_t taker = (pid_t)(word & TAKER_MASK);

	return word & TAKEN && kill(taker, 0) && errno == ESRCH;
}

bool shunt_fork_rest_take(struct shunt_stream *stream)
{
	uint64_t rest = stream->sharing.rest;
	uint64_t ours = rest << COUNT_SHIFT | TAKEN | (uint64_t)stream->engine->pid;
	uint64_t word;

	if (!rest || !shunt_fork_slots_owner(stream))
		return false;
	word = atomic_load(&stream->sharing.slot->use);
	if (word == ours)
		return true;
	return (word == rest << COUNT_SHIFT || (count_of(word) == rest && is_abandoned(word))) &&
	       atomic_compare_exchange_strong(&stream->sharing.slot->use, &word, ours);
}
