/* SPDX-License-Identifier: MIT */
/*
 * The process that we asked for a connection does not have it, but knows its holder: another
 * process that accepts at the same address (listener_owner.c). It is claimed there, once.
 */
#include <string.h>
#include "core/peer/claim.h"
#include "core/peer/claim_link.h"
#include "core/peer/claim_state.h"
#include "core/peer/redirect.h"
#include "core/peer/remote_link.h"
#include "core/peer/remote_words.h"
#include "core/service.h"
#include "core/stream/decision.h"

/* Links are between processes: one that was made to another name of that process will do. */
static struct shunt_link *link_to(const struct shunt_link *from, const struct shunt_stream *stream,
				  const struct shunt_identity *process)
{
	const struct shunt_channel *by = &from->channel;

	for (struct shunt_link *link = from->engine->service->links; link; link = link->next)
		if (link->initiator && link->met && link->channel.kind == by->kind &&
		    link->channel.other_netns == by->other_netns &&
		    atomic_load(&link->state) != SHUNT_LINK_DEAD && !atomic_load(&link->failed) &&
		    shunt_channel_joins(&link->channel, stream->tuple.local, stream->tuple.peer) &&
		    !memcmp(&link->channel.peer, process, sizeof(*process)))
			return link;
	return NULL;
}

/* A process of this host. */
static struct shunt_link *worker_knock(const struct shunt_link *from, const struct shunt_name *name,
				       enum shunt_cause *cause)
{
	bool strange = false;
	int fd = shunt_rendezvous_knock(from->engine, name, &strange);

	return shunt_claim_new_link(from->engine->service, fd, strange, name, cause);
}

/* A process of the peer's host, whose gate has been told of us: packets go there as on this link. */
static struct shunt_link *come(const struct shunt_link *from, const struct shunt_stream *stream,
			       const struct shunt_onward *onward, const struct shunt_name *name,
			       enum shunt_cause *cause)
{
	struct shunt_remote_gate gate = { .tuple = &stream->tuple,
					  .port = onward->gate,
					  .course = from->channel.course };
	struct shunt_link *link;

	shunt_remote_words_onward(from->engine->key, onward, true, &gate.seal, gate.shown);
	link = shunt_remote_link(from->engine->service, &gate, &onward->process, name);
	explicit_bzero(&gate, sizeof(gate));
	*cause = SHUNT_CAUSE_NO_LINK;
	return link && atomic_load(&link->state) != SHUNT_LINK_DEAD ? link : NULL;
}

/* Between hosts, and only there, the way in is told, too. */
static bool is_sound(const struct shunt_link *link, const struct shunt_stream *stream,
		     const struct shunt_onward *onward)
{
	return link->initiator && stream->claim.state == SHUNT_CLAIM_UNDER_WAY &&
	       (link->channel.kind == SHUNT_CHANNEL_TCP) == (onward->gate != 0);
}

void shunt_redirect_follow(struct shunt_link *link, struct shunt_stream *stream,
			   const struct shunt_onward *onward)
{
	struct shunt_engine *engine = link->engine;
	enum shunt_cause cause = SHUNT_CAUSE_NO_LINK;
	struct shunt_link *to;
	struct shunt_name name;

	if (!is_sound(link, stream, onward)) {
		shunt_link_distrust(link, "a redirection out of turn");
		return;
	}
	shunt_group_poll_fully(&engine->group);
	if (stream->claim.moved & SHUNT_MOVED_REDIRECTED) {
		shunt_claim_stays(engine, stream, SHUNT_CAUSE_REDIRECTED_TWICE);
		return;
	}
	stream->claim.moved |= SHUNT_MOVED_REDIRECTED;
	if (link->channel.other_netns)
		shunt_rendezvous_process_meeting(&onward->process, &name);
	else
		shunt_rendezvous_process(&onward->process, &name);
	shunt_decision_step(stream, "redirected to %s", name.text + 1);
	shunt_streams_vacate(stream);
	to = link_to(link, stream, &onward->process);
	if (!to)
		to = onward->gate ? come(link, stream, onward, &name, &cause) :
				    worker_knock(link, &name, &cause);
	if (to)
		shunt_claim_on(to, stream);
	else
		shunt_claim_stays(engine, stream, cause);
}
