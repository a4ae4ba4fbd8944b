/* SPDX-License-Identifier: MIT */
/*
 * Who we asked for a connection does not have it, but knows who does: another process that accepts at the same
 * address (listener_owner.c). It is claimed there, once.
 */
#include <errno.h>
#include "core/fd/own_fds.h"
#include "core/link/trust.h"
#include "core/peer/claim.h"
#include "core/peer/redirect.h"
#include "core/service.h"
#include "core/stream/decision.h"

/* Links are between processes: one that was made to another name of that process will do. */
static struct shunt_link *link_to(struct shunt_service *service,
				  const struct shunt_identity *process, bool abroad)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->initiator && link->met && link->channel.kind == SHUNT_CHANNEL_UNIX &&
		    link->channel.abroad == abroad &&
		    atomic_load(&link->state) != SHUNT_LINK_DEAD && !atomic_load(&link->failed) &&
		    !memcmp(&link->channel.peer, process, sizeof(*process)))
			return link;
	return NULL;
}

void shunt_redirect_follow(struct shunt_link *link, struct shunt_stream *stream,
			   const struct shunt_identity *process)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_service *service = engine->service;
	struct shunt_name name;
	enum shunt_reason reason;
	bool abroad = link->channel.abroad, strange = false;
	int fd;

	if (!link->initiator || link->channel.kind != SHUNT_CHANNEL_UNIX || !stream->claimed) {
		shunt_link_distrust(link, "a redirection out of turn");
		return;
	}
	shunt_group_poll_fully(engine);
	if (stream->redirected) {
		shunt_claim_stays(engine, stream, SHUNT_REASON_REDIRECTED_TWICE);
		return;
	}
	stream->redirected = true;
	if (abroad)
		shunt_rendezvous_process_abroad(process, &name);
	else
		shunt_rendezvous_process(process, &name);
	shunt_decision_step(stream, "redirected to %s", name.text + 1);
	shunt_streams_vacate(stream);
	link = link_to(service, process, abroad);
	if (!link) {
		fd = shunt_rendezvous_knock(engine, &name, &strange);
		link = shunt_claim_new_link(service, fd, strange, &name, &reason);
	}
	if (link)
		shunt_claim_on(link, stream);
	else
		shunt_claim_stays(engine, stream, reason);
}
