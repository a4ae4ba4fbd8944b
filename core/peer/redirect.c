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

static bool is_process(struct shunt_engine *engine, int fd, pid_t process)
{
	struct ucred peer;

	return shunt_trust_peer(engine, fd, &peer) && peer.pid == process;
}

/* Links are between processes: one that was made to another name of that process will do. */
static struct shunt_link *link_to(struct shunt_service *service, pid_t process)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		if (link->initiator && link->channel.kind == SHUNT_CHANNEL_UNIX &&
		    atomic_load(&link->state) != SHUNT_LINK_DEAD && !atomic_load(&link->failed) &&
		    is_process(service->engine, link->channel.fd, process))
			return link;
	return NULL;
}

/* A name says little about who has it: anybody could have taken it. */
static int connect_to(struct shunt_engine *engine, pid_t process, struct shunt_name *name)
{
	int fd;

	shunt_rendezvous_process(process, name);
	fd = shunt_rendezvous_knock(engine, name);
	if (fd >= 0 && !is_process(engine, fd, process)) {
		shunt_own_fds_close(engine, fd);
		return -EPERM;
	}
	return fd;
}

void shunt_redirect_follow(struct shunt_link *link, struct shunt_stream *stream, uint32_t process)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_service *service = engine->service;
	struct shunt_name name;
	enum shunt_reason reason;

	if (!link->initiator || link->channel.kind != SHUNT_CHANNEL_UNIX || !stream->claimed || !process ||
	    process > INT32_MAX) {
		shunt_link_distrust(link, "a redirection out of turn");
		return;
	}
	shunt_group_poll_fully(engine);
	if (stream->redirected) {
		shunt_claim_stays(engine, stream, SHUNT_REASON_REDIRECTED_TWICE);
		return;
	}
	stream->redirected = true;
	shunt_decision_step(stream, "redirected to process %u", process);
	shunt_streams_vacate(stream);
	link = link_to(service, process);
	if (!link)
		link = shunt_claim_new_link(service, connect_to(engine, process, &name), &name, &reason);
	if (link)
		shunt_claim_on(link, stream);
	else
		shunt_claim_stays(engine, stream, reason);
}
