/* SPDX-License-Identifier: MIT */
#include "core/peer/eviction.h"
#include "core/peer/link_end.h"
#include "core/service.h"

/* In the time that a link may be unused, so that it is exceeded by a quarter at most. */
#define LOOKS 4
#define SECOND 1000000000ull

static uint64_t patience_of(const struct shunt_engine *engine)
{
	return shunt_config_live(&engine->config.link_idle_s) * SECOND;
}

/* No stream is on it, and none is on its way there. */
static bool is_unused(const struct shunt_link *link)
{
	return link->initiator &&
	       atomic_load(&((struct shunt_link *)link)->state) == SHUNT_LINK_UP &&
	       !atomic_load(&((struct shunt_link *)link)->failed) && !link->seated &&
	       !link->waiting && (!link->line.number || link->bring_at == SHUNT_NEVER);
}

static void link_look_at(struct shunt_link *link, uint64_t now, uint64_t patience)
{
	if (!is_unused(link)) {
		link->unused_since = 0;
		return;
	}
	if (!link->unused_since)
		link->unused_since = now;
	if (now - link->unused_since < patience)
		return;
	atomic_fetch_add(&link->engine->evicted, 1);
	shunt_link_kill(link, "no connection has used it for a while (SHUNT_TUNE=link_idle_s)");
}

void shunt_eviction_begin(struct shunt_service *service)
{
	uint64_t patience = patience_of(service->engine);

	if (patience)
		shunt_task_at(&service->tasks.eviction,
			      shunt_now(service->engine) + patience / LOOKS);
}

void shunt_eviction_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, eviction);
	uint64_t patience = patience_of(service->engine), now = shunt_now(service->engine);

	if (!patience)
		return;
	for (struct shunt_link *link = service->links; link; link = link->next)
		link_look_at(link, now, patience);
	if (service->links)
		shunt_task_at(task, now + patience / LOOKS);
}
