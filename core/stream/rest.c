/* SPDX-License-Identifier: MIT */
#include "core/stream/rest.h"
#include <string.h>
#include <sys/random.h>
#include "core/engine.h"
#include "core/fork/fork_rest.h"
#include "core/fork/fork_slots.h"
#include "core/loop/request.h"

#define BUSY_WORK                                                                                  \
	(SHUNT_WORK_UPGRADE | SHUNT_WORK_DATA | SHUNT_WORK_HANDBACK | SHUNT_WORK_FIN |             \
	 SHUNT_WORK_RESET | SHUNT_WORK_RELEASE)

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
	uint64_t rest = shunt_fork_rest_next(stream->sharing.slot);

	if (!is_whole(stream) || !may_be_reached(stream->seat->link) ||
	    !introduce(stream->seat->link) || !rest)
		return;
	stream->sharing.rest = rest;
	stream->seat->out.quick = false;
	atomic_store(&stream->seat->leaving.retiring, SHUNT_RESTING);
	shunt_fork_rest_begin(stream->sharing.slot, rest);
}

/* A thread that is using it does so during the fork, too. */
static void rest_begin(struct shunt_stream *stream)
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

bool shunt_rest_end(struct shunt_stream *stream)
{
	if (!shunt_fork_rest_end(stream->sharing.slot))
		return false;
	atomic_store(&stream->seat->leaving.retiring, SHUNT_STAYING);
	return true;
}

void shunt_rest_revoke(struct shunt_stream *stream)
{
	shunt_fork_rest_revoke(stream->sharing.slot);
	atomic_store(&stream->seat->leaving.retiring, SHUNT_STAYING);
}

/* A relative has it: the service thread asks the peer whether it knows, until it does. */
static void lose(struct shunt_stream *stream)
{
	atomic_store(&stream->seat->leaving.retiring, SHUNT_TAKEN);
	shunt_request_owner(stream->group->loop);
}

bool shunt_rest_holds(struct shunt_stream *stream)
{
	switch (atomic_load(&stream->seat->leaving.retiring)) {
	case SHUNT_RESTING:
		if (shunt_rest_end(stream))
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

void shunt_rest_over(struct shunt_stream *stream)
{
	uint8_t retiring = atomic_load(&stream->seat->leaving.retiring);

	if (retiring == SHUNT_RESTING || retiring == SHUNT_TAKEN)
		shunt_rest_revoke(stream);
	if (retiring == SHUNT_RETIRING)
		shunt_patience_end(stream->seat->link);
	if (retiring == SHUNT_TAKEN || retiring == SHUNT_RETIRING)
		atomic_store(&stream->seat->leaving.retiring, SHUNT_UNANSWERED);
}

/* --- a relative --- */

bool shunt_rest_take(struct shunt_stream *stream)
{
	const struct shunt_holders *holders = &stream->sharing;

	return holders->rest && shunt_fork_slots_owner(holders) &&
	       shunt_fork_rest_take(holders->slot, holders->rest,
				    shunt_stream_engine(stream)->forks.pid);
}

/* --- before a fork --- */

static bool has_slot(struct shunt_sharing *sharing, struct shunt_stream *stream, uint8_t state)
{
	if (shunt_fork_slots_counts(&stream->sharing))
		return true;
	if (sharing->full || state == SHUNT_FOREIGN)
		return false;
	sharing->full = !shunt_fork_slots_prepare(sharing->forks, stream->group->sys) ||
			!shunt_fork_slots_take(sharing->forks, &stream->sharing,
					       state == SHUNT_LINKED);
	return !sharing->full;
}

int shunt_rest_share(struct shunt_stream *stream, void *arg)
{
	struct shunt_sharing *sharing = arg;
	uint8_t state = atomic_load(&stream->state);

	if (stream->fd < 0 || stream->sharing.forked & SHUNT_FORK_LOST ||
	    (state != SHUNT_CANDIDATE && state != SHUNT_LINKED && state != SHUNT_FOREIGN))
		return 0;
	if (state == SHUNT_CANDIDATE && atomic_load(&stream->usage)) {
		shunt_fork_slots_settle(sharing->forks, &stream->sharing);
		return 0;
	}
	if (!has_slot(sharing, stream, state))
		return 0;
	shunt_fork_slots_add(&stream->sharing);
	atomic_fetch_or(&stream->mode, SHUNT_MODE_SHARED);
	if (state == SHUNT_LINKED)
		rest_begin(stream);
	/* A thread that uses it now sees the slot, or is seen here. */
	if (state == SHUNT_CANDIDATE && atomic_load(&stream->usage))
		shunt_fork_slots_settle(sharing->forks, &stream->sharing);
	return 0;
}
