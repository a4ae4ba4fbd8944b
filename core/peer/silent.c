/* SPDX-License-Identifier: MIT */
#include "core/peer/silent.h"
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "core/engine.h"
#include "core/peer/link_end.h"
#include "core/peer/links.h"
#include "core/recovery/failover.h"
#include "core/service.h"

#define WHY "its process does not answer"

/* The lanes post nothing more. True: the device has carried out all that they have posted. */
static bool come_to_rest(struct shunt_link *link)
{
	bool rests = atomic_load(&link->state) == SHUNT_LINK_UP && shunt_link_condemn(link);

	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct shunt_lane *lane = &link->lanes[i];

		shunt_lock_take(&lane->lock);
		rests &= shunt_lane_arrived(lane);
		shunt_lock_leave(&lane->lock);
	}
	return rests;
}

/* The peer can say nothing more. Messages that it has sent before count, LEFT above all. */
static void hear_the_rest(struct shunt_link *link)
{
	const struct shunt_sys *sys = link->engine->sys;
	int there = 0;

	sys->shutdown(link->channel.fd, SHUT_RD);
	while (!atomic_load(&link->distrusted) &&
	       !sys->ioctl(link->channel.fd, FIONREAD, &there) && there &&
	       link->engine->link_hooks->next(link))
		;
}

/* The channel stays until the peer's socket has room for what it is told. */
static void go_on_alone(struct shunt_link *link)
{
	shunt_failover_alone(link);
	link->resumed = true;
	shunt_loop_change(&link->engine->loop, link->channel.fd, &link->source,
			  shunt_link_events(link));
}

static void end(struct shunt_link *link)
{
	bool rests = come_to_rest(link);

	link->silent = true;
	if (rests)
		shunt_link_break(link, WHY);
	hear_the_rest(link);
	if (rests && !link->resumed && !atomic_load(&link->distrusted) &&
	    atomic_load(&link->state) == SHUNT_LINK_BROKEN)
		go_on_alone(link);
	if (!link->resumed)
		shunt_link_kill(link, link->failure ? link->failure : WHY);
}

void shunt_silent_look(struct shunt_service *service, struct shunt_link *link)
{
	uint64_t due = shunt_patience_due(link);

	shunt_assert_service_thread(service->engine);
	if (due == SHUNT_NEVER || link->silent || atomic_load(&link->state) == SHUNT_LINK_DEAD)
		return;
	if (shunt_now(service->engine) >= due)
		end(link);
	else
		shunt_task_at(&service->tasks.links, due);
}
