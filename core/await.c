/* SPDX-License-Identifier: MIT */
#include "core/await.h"
#include "core/stream/retire.h"
#include <sched.h>
#include "core/lane/roster.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"

#define SERVED_NS 20000000ull	/* that an ending process gives other threads to post what they have in hand */
#define MS 1000000ull
#define REFUSED_MS 1		/* until a WR is offered again that a QP did not take */

static bool any_stalled(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; atomic_load(&link->state) == SHUNT_LINK_UP && i < link->lane_count; i++)
			if (shunt_lane_stalled(&link->lanes[i]) || shunt_keepalive_waits(&link->lanes[i]))
				return true;
	return shunt_retire_waits(service->engine);
}

/* Arrivals must be acted upon, and perhaps the program never polls again. */
static bool must_poll(struct shunt_service *service)
{
	return any_stalled(service) || atomic_load(&service->engine->loop.requests.refusing);
}

/* Several threads sleep, and this one is their leader. */
static bool leads(struct shunt_service *service)
{
	const struct shunt_waiters *waiters = &service->engine->group.waiters;

	return waiters->begun && !waiters->deaf;
}

/* A QP that takes no WR now may take it later, and says nothing when. */
static bool was_refused(struct shunt_service *service)
{
	bool refused = false;

	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			refused |= atomic_exchange(&link->lanes[i].refused, false);
	return refused;
}

static void set_asleep(struct shunt_group *group, bool sends)
{
	shunt_lock_take(&group->lock);
	group->polled.service_asleep = true;
	group->polled.service_sends = sends;
	shunt_waiters_serve(group);
	shunt_lock_leave(&group->lock);
}

static bool need_not_rest(struct shunt_group *group, void *arg)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	struct shunt_service *service = engine->service;
	struct shunt_rest *rest = arg;
	uint64_t soon = shunt_now(engine) + REFUSED_MS * MS;

	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			shunt_lane_kick(&link->lanes[i]);
	atomic_store(&engine->loop.requests.resting, true);
	if (was_refused(service)) {
		atomic_store(&engine->loop.requests.resting, false);
		if (soon < rest->until)
			rest->until = soon;
	}
	return !must_poll(service) && !leads(service);
}

/*
 * A lane has bytes that wait for credit, and perhaps nobody else polls (PF-21): sleep on the
 * completion channel as well. `sends` is false where no lane has, and this thread is the leader.
 */
static void await_completion(struct shunt_service *service, int timeout_ms, bool sends)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_group *group = &engine->group;
	struct shunt_rest rest = { .over = need_not_rest,
				   .fd = engine->loop.epfd,
				   .until = SHUNT_NEVER };

	rest.arg = &rest;
	if (timeout_ms >= 0)
		rest.until = shunt_now(engine) + (uint64_t)timeout_ms * MS;
	set_asleep(group, sends);
	shunt_group_rest(&engine->group, &rest);
	atomic_store(&engine->loop.requests.resting, false);
	shunt_lock_take(&group->lock);
	group->polled.service_asleep = false;
	shunt_gap_woke(&engine->group);
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(&engine->group);
}

int shunt_await_completions(struct shunt_service *service, int timeout_ms)
{
	bool sends;

	atomic_store(&service->engine->loop.requests.watching, false);
	if (!service->engine->group.open)
		return timeout_ms;
	sends = must_poll(service);
	if (!sends && !leads(service))
		return timeout_ms;
	/* A leader that awaits arrivals alone is woken for what stalls from here on, and arms for sends. */
	atomic_store(&service->engine->loop.requests.watching, sends);
	await_completion(service, timeout_ms, sends);
	return 0;
}

/* A queue pair has failed, and what it had is not TCP's yet. */
static bool is_breaking(struct shunt_engine *engine)
{
	bool breaking = atomic_load(&engine->breaking);

	shunt_lock_take(&engine->group.lock);
	for (struct shunt_lane *lane = engine->group.lanes; lane; lane = lane->next_in_group)
		breaking |= atomic_load(&lane->failed) && atomic_load(&lane->link->state) == SHUNT_LINK_UP;
	shunt_lock_leave(&engine->group.lock);
	return breaking;
}

/* That a slow device is through, or a failover over, is told to the service thread only. */
static uint64_t look_again(struct shunt_engine *engine, uint64_t until)
{
	uint64_t soon = shunt_now(engine) + 1000000;

	return (engine->config.soft_model[0] || is_breaking(engine)) && soon < until ? soon : until;
}

/* Nothing is still to be posted or written. A thread that is ended by a signal's handler may itself be serving. */
static bool is_drained(struct shunt_group *group, void *arg)
{
	struct shunt_engine *engine = shunt_engine_of(group, group);
	struct shunt_service *service = engine->service;
	uint64_t served_until = *(const uint64_t *)arg;
	bool served, idle = shunt_roster_idle(&engine->group, &served);

	while (served && shunt_now(engine) < served_until) {
		sched_yield();
		idle = shunt_roster_idle(&engine->group, &served);
	}
	return idle && !atomic_load(&service->engine->work.resends) &&
	       !shunt_retire_waits(service->engine) && !is_breaking(engine);
}

void shunt_await_drained(struct shunt_engine *engine, uint64_t until)
{
	uint64_t served_until = shunt_now(engine) + SERVED_NS;
	struct shunt_rest rest = { .over = is_drained, .arg = &served_until, .fd = -1 };

	while (engine->service && !is_drained(&engine->group, &served_until) &&
	       shunt_now(engine) < until) {
		if (atomic_load(&engine->work.resends))
			rest.fd = engine->loop.epfd;
		rest.until = look_again(engine, until);
		shunt_group_rest(&engine->group, &rest);
	}
}
