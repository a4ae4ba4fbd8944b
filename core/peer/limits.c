/* SPDX-License-Identifier: MIT */
#include "core/peer/limits.h"
#include "core/link/trust.h"
#include "core/service.h"

bool shunt_limits_allow(struct shunt_service *service, uint32_t pid, uint32_t count, uint32_t most,
			const char *what)
{
	if (count < most)
		return true;
	if (!service->limited)
		shunt_log(SHUNT_LOG_WARN, "process %u has %u %s here: more are refused", pid, count, what);
	service->limited = true;
	return false;
}

bool shunt_limits_link(struct shunt_service *service, int fd)
{
	uint32_t count = 0;
	struct ucred peer;

	if (!shunt_trust_peer(service->engine, fd, &peer))
		return false;
	for (struct shunt_link *link = service->links; link; link = link->next)
		count += !link->initiator && link->channel.kind == SHUNT_CHANNEL_UNIX &&
			 link->peer_pid == (uint32_t)peer.pid && atomic_load(&link->state) != SHUNT_LINK_DEAD;
	return shunt_limits_allow(service, (uint32_t)peer.pid, count, SHUNT_LINKS_PER_PROCESS, "links");
}

void shunt_limits_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, limits);
	uint64_t now = shunt_now(service->engine);

	for (struct shunt_link *link = service->links; link; link = link->next) {
		if (link->initiator || atomic_load(&link->state) != SHUNT_LINK_HELLO)
			continue;
		if (now >= link->hello_by)
			shunt_link_fail(link, "it does not introduce itself");
		else
			shunt_task_at(task, link->hello_by);
	}
}
