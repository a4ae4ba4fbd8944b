/* SPDX-License-Identifier: MIT */
/*
 * One timer for all lanes of the process (XR-06): a look twice in keepalive_ms. A lane that
 * has not moved from one look to the next is probed. So a peer that has gone is known within
 * keepalive_ms and the time that the device itself tries (dead_ms). Sends and receives
 * are seen by the counts that they leave behind, and cost nothing more for it.
 */
#include "core/recovery/keepalive.h"
#include "core/lane/wr.h"
#include "core/service.h"

#define LANES 64		/* looked at in one go */
#define BREATH 10000000ull	/* ns between two goes of one look */

void shunt_keepalive_begin(struct shunt_link *link)
{
	struct shunt_engine *engine = link->engine;
	struct shunt_service *service = engine->service;

	if (!engine->config.keepalive_ms || !link->lanes[0].retains || service->keeping)
		return;
	service->keeping = true;
	shunt_task_at(&service->tasks.keepalive, shunt_now(engine) + engine->config.keepalive_ms * 500000);
}

/* A look that was due later comes earlier; one that finds no lane to ask is the last. */
void shunt_keepalive_change(struct shunt_service *service)
{
	struct shunt_engine *engine = service->engine;

	if (!engine->config.keepalive_ms || !service->links)
		return;
	service->keeping = true;
	shunt_task_at(&service->tasks.keepalive,
		      shunt_now(engine) + engine->config.keepalive_ms * 500000);
}

void shunt_keepalive_forget(struct shunt_link *link)
{
	struct shunt_service *service = link->engine->service;

	if (service && service->keep_next == link)
		service->keep_next = link->next;
}

/* The device itself gives up in time on WRs under way. */
static void ask(struct shunt_lane *lane)
{
	uint64_t number;

	if (lane->sent == atomic_load(&lane->retired) && shunt_wr_probe(lane, &number)) {
		lane->probe = number;
		atomic_fetch_add(&lane->link->engine->probes, 1);
	}
}

/*
 * A device gives up after dead_ms, and says so. E810's driver does not pass IBV_QP_TIMEOUT on, and iWARP has TCP's
 * timers. So a lane fails that gets no completion for 2 x dead_ms and a second. lane.lock held.
 */
static bool is_stuck(struct shunt_engine *engine, struct shunt_lane *lane)
{
	uint64_t retired = atomic_load(&lane->retired), now = shunt_now(engine);
	bool awaits = lane->last_signaled > retired;

	if (!awaits || retired != lane->seen_retired || !lane->stuck_since)
		lane->stuck_since = awaits ? now : 0;
	lane->seen_retired = retired;
	return awaits &&
	       now - lane->stuck_since > 2 * engine->config.dead_ms * 1000000 + 1000000000;
}

/* Its completions may have come while this process stood still. */
static bool is_silent(struct shunt_engine *engine, const struct shunt_lane *lane)
{
	shunt_group_poll_fully(&engine->group);
	return atomic_load(&lane->retired) == lane->seen_retired;
}

static void look_at(struct shunt_engine *engine, struct shunt_lane *lane)
{
	uint64_t received;
	bool stuck;

	if (!shunt_lock_try(&lane->lock))
		return;	/* somebody is sending */
	shunt_lock_take(&engine->group.lock);
	received = lane->received;
	shunt_lock_leave(&engine->group.lock);
	if (lane->sent == lane->seen_sent && received == lane->seen_received)
		ask(lane);
	lane->seen_sent = lane->sent;
	lane->seen_received = received;
	stuck = is_stuck(engine, lane);
	shunt_lock_leave(&lane->lock);
	if (stuck && is_silent(engine, lane))
		shunt_link_fail(lane->link, "the device does not complete what it was given");
	shunt_lane_kick(lane);	/* for a thread that has found it locked */
}

static bool is_kept(struct shunt_link *link)
{
	return link->lane_count && link->lanes[0].retains && atomic_load(&link->state) == SHUNT_LINK_UP &&
	       !atomic_load(&link->failed);
}

/* Some of them, from where the last go ended. True: that were all. */
static bool look(struct shunt_service *service)
{
	struct shunt_link *link = service->keep_next;

	if (!link) {
		shunt_group_poll_fully(&service->engine->group);	/* perhaps nobody else does, and one has failed */
		service->keeping = false;
		link = service->links;
	}
	for (uint32_t lanes = 0; link && lanes < LANES; lanes += link->lane_count ? link->lane_count : 1, link = link->next) {
		if (!is_kept(link))
			continue;
		service->keeping = true;
		for (uint32_t i = 0; i < link->lane_count; i++)
			look_at(service->engine, &link->lanes[i]);
	}
	service->keep_next = link;
	return !link;
}

void shunt_keepalive_run(struct shunt_task *task)
{
	struct shunt_service *service = shunt_service_of(task, keepalive);
	struct shunt_engine *engine = service->engine;
	uint64_t next;

	if (!engine->config.keepalive_ms) {
		service->keeping = false;
		service->keep_next = NULL;
		return;
	}
	next = shunt_now(engine) + (look(service) ? engine->config.keepalive_ms * 500000 : BREATH);

	if (service->keeping || service->keep_next)
		shunt_task_at(task, next);
}
