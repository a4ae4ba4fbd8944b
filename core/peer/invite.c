/* SPDX-License-Identifier: MIT */
#include "core/peer/invite.h"
#include <string.h>
#include <sys/random.h>
#include "core/engine.h"
#include "core/link/link.h"
#include "core/peer/listener_message.h"
#include "core/stream/tuple.h"

/* A ticket is given again for so long, in ns: for less than it is good (remote.c). */
#define AGAIN_NS 1000000000ull

static void describe(const struct shunt_course *course, struct shunt_invitation *invitation)
{
	memcpy(invitation->device, course->way.device, sizeof(invitation->device));
	memcpy(invitation->gid, &course->way.gid, sizeof(invitation->gid));
	invitation->port = course->way.port;
	invitation->pkey = course->path.pkey;
	invitation->slid = course->path.slid;
	invitation->dlid = course->path.dlid;
	invitation->sl = course->path.sl;
	invitation->traffic_class = course->path.traffic_class;
	invitation->hop_limit = course->path.hop_limit;
	invitation->mtu = course->path.mtu;
}

/* The place of this channel, or else the oldest. */
static struct shunt_invited *place_of(const struct shunt_worker *worker, uint32_t channel)
{
	struct shunt_invited *oldest = worker->invited;

	for (int i = 0; i < SHUNT_INVITED; i++) {
		if (worker->invited[i].channel == channel)
			return &worker->invited[i];
		if (worker->invited[i].until < oldest->until)
			oldest = &worker->invited[i];
	}
	return oldest;
}

/* The worker is told of a new ticket. False: it cannot be. */
static bool invite_tell(struct shunt_link *link, const struct shunt_worker *worker,
			const struct shunt_tuple *claimed, struct shunt_invited *invited)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_have have = { .type = SHUNT_HAVE_INVITE,
				   .tuple = shunt_tuple_reverse(claimed) };
	struct shunt_invitation *invitation = &have.invitation;

	if (engine->sys->getrandom(invitation->ticket, sizeof(invitation->ticket), GRND_NONBLOCK) !=
	    sizeof(invitation->ticket))
		return false;
	describe(&link->channel.course, invitation);
	if (shunt_listener_message_send(engine, worker->fd, &have))
		return false;
	invited->channel = link->channel.number;
	invited->until = shunt_now(engine) + AGAIN_NS;
	memcpy(invited->ticket, invitation->ticket, sizeof(invited->ticket));
	return true;
}

bool shunt_invite(struct shunt_link *link, const struct shunt_worker *worker,
		  const struct shunt_tuple *claimed, struct shunt_onward *onward)
{
	struct shunt_invited *invited;

	*onward = (struct shunt_onward) { .process = worker->process };
	if (link->channel.kind == SHUNT_CHANNEL_UNIX)
		return true;
	if (!worker->gate)
		return false;
	invited = place_of(worker, link->channel.number);
	if ((invited->channel != link->channel.number ||
	     invited->until < shunt_now(link->engine)) &&
	    !invite_tell(link, worker, claimed, invited))
		return false;
	onward->gate = worker->gate;
	memcpy(onward->ticket, invited->ticket, sizeof(onward->ticket));
	return true;
}
