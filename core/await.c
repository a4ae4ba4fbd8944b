/* SPDX-License-Identifier: MIT */
#include "core/await.h"
#include "core/stream/retire.h"
#include <poll.h>
#include <sched.h>
#include "core/base/deadline.h"
#include "core/lane/roster.h"
#include "core/recovery/keepalive.h"
#include "core/service.h"

#define SERVED_NS 20000000ull	/* that an ending process gives other threads to post what they have in hand */
#define REFUSED_MS 1		/* until a WR is offered again that a QP did not take */

static bool any_stalled(struct shunt_service *service)
{
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; atomic_load(&link->state) == SHUNT_LINK_UP && i < link->lane_count; i++)
			if (shunt_lane_stalled(&link->lanes[i]) || shunt_keepalive_waits(&link->lanes[i]))
				return true;
	return shunt_retire_waits(service);
}

/* Arrivals must be acted upon, and perhaps the program never polls again. */
static bool must_poll(struct shunt_service *service)
{
	return any_stalled(service) || atomic_load(&service->refusing);
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

/*
 * A lane has bytes that wait for credit, and perhaps nobody else polls (PF-21): sleep on the
 * completion channel as well.
 */
static void await_completion(struct shunt_service *service, int timeout_ms)
{
	struct shunt_engine *engine = service->engine;
	struct shunt_group *group = &engine->group;
	struct pollfd fds[2] = { { .fd = engine->loop.epfd, .events = POLLIN },
				 { .fd = atomic_load(&group->bell), .events = POLLIN } };
	struct timespec timeout;

	shunt_lock_take(&group->lock);
	group->service_asleep = true;
	shunt_group_arm(engine);
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(engine);
	for (struct shunt_link *link = service->links; link; link = link->next)
		for (uint32_t i = 0; i < link->lane_count; i++)
			shunt_lane_kick(&link->lanes[i]);
	atomic_store(&service->resting, true);
	if (was_refused(service)) {
		atomic_store(&service->resting, false);
		timeout_ms = shunt_loop_sooner(timeout_ms, REFUSED_MS);
	}
	timeout = (struct timespec) { timeout_ms / 1000, timeout_ms % 1000 * 1000000 };
	if (must_poll(service) &&
	    engine->sys->ppoll(fds, 2, timeout_ms < 0 ? NULL : &timeout, NULL) > 0 && fds[1].revents)
		shunt_group_take_event(engine);
	atomic_store(&service->resting, false);
	shunt_lock_take(&group->lock);
	group->service_asleep = false;
	shunt_gap_woke(engine);
	shunt_lock_leave(&group->lock);
	shunt_group_poll_fully(engine);
}

int shunt_await_completions(struct shunt_service *service, int timeout_ms)
{
	atomic_store(&service->watching, false);
	if (!service->engine->group.open || !must_poll(service))
		return timeout_ms;
	atomic_store(&service->watching, true);
	await_completion(service, timeout_ms);
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

/* Something is still to be posted or written. A thread that is ended by a signal's handler may itself be serving. */
static bool unfinished(struct shunt_service *service, uint64_t served_until)
{
	bool served, idle = shunt_roster_idle(service->engine, &served);

	while (served && shunt_now(service->engine) < served_until) {
		sched_yield();
		idle = shunt_roster_idle(service->engine, &served);
	}
	return !idle || atomic_load(&service->resends) || shunt_retire_waits(service) ||
	       is_breaking(service->engine);
}

void shunt_await_drained(struct shunt_engine *engine, uint64_t until)
{
	uint64_t served_until = shunt_now(engine) + SERVED_NS;
	struct shunt_group *group = &engine->group;
	struct pollfd fds[2] = { { .events = POLLIN }, { .fd = -1, .events = POLLIN } };
	struct timespec left;

	while (engine->service && unfinished(engine->service, served_until) && shunt_now(engine) < until) {
		fds[0].fd = atomic_load(&group->bell);
		if (atomic_load(&engine->service->resends))
			fds[1].fd = engine->loop.epfd;
		shunt_lock_take(&group->lock);
		shunt_group_arm(engine);
		shunt_lock_leave(&group->lock);
		shunt_group_poll_fully(engine);
		if (unfinished(engine->service, served_until) &&
		    engine->sys->ppoll(fds, 2, shunt_deadline_left(engine, look_again(engine, until), &left),
				       NULL) > 0 &&
		    fds[0].revents)
			shunt_group_take_event(engine);
	}
}
