/* SPDX-License-Identifier: MIT */
#include "core/fd/thread.h"
#include "core/poll/polling.h"
#include "core/poll/group.h"
#include "core/base/config.h"
#include "core/base/sys.h"

#define DISPLACED 100000	/* ns: no turn of a spin takes so long while its thread has the core */
#define STAY 50000		/* ns between two looks around of a wait that stays */

/* In the order of the words of `poll`. */
static const struct shunt_polling modes[] = {
	{ .name = "event" },
	{ .name = "batch", .bounded = true },
	{ .name = "hybrid", .drains = true },
	{ .name = "busy", .drains = true, .stays = true },
	{ .name = "adaptive", .drains = true, .spins = true },
};

const struct shunt_polling *shunt_polling(const struct shunt_group *group)
{
	return &modes[shunt_config_live(&group->config->poll)];
}

uint64_t shunt_polling_most(struct shunt_group *group)
{
	uint64_t wanted = group->single_core ? 0 :
						shunt_config_live(&group->config->spin_us) * 1000,
		 most = 2 * atomic_load_explicit(&group->sleep_cost, memory_order_relaxed);

	return most && wanted > most ? most : wanted;
}

bool shunt_spin_begin(struct shunt_group *group, struct shunt_spin *spin, uint64_t deadline)
{
	*spin = (struct shunt_spin) { .mode = shunt_polling(group),
				      .deadline = deadline,
				      .gap = DISPLACED,
				      .retries = shunt_config_live(&group->config->poll_retry) };
	if (spin->mode->stays) {
		spin->budget = group->single_core ? 0 : shunt_thread_budget(STAY);
		spin->retries = UINT64_MAX;
		return spin->budget != 0;
	}
	if (!spin->mode->spins || !spin->retries)
		return false;
	spin->budget = shunt_thread_budget(shunt_polling_most(group));
	return spin->budget != 0;
}

bool shunt_spin_look(struct shunt_group *group, struct shunt_spin *spin)
{
	uint64_t now = group->sys->now();

	if (!spin->until)
		spin->until = spin->deadline < now + spin->budget ? spin->deadline : now + spin->budget;
	else if (now - spin->looked > spin->gap)
		spin->displaced = true;
	spin->looked = now;
	return now < spin->until;
}

static void count_backoff(struct shunt_group *group, enum shunt_spun how, bool displaced)
{
	if (shunt_thread_polled(how, displaced))
		__atomic_fetch_add(&group->backoffs, 1, __ATOMIC_RELAXED);
}

/* Perhaps to the thread that we wait for. False: another one has had the core, and shall not wait for the next yield. */
static bool yield(struct shunt_group *group, bool displaced)
{
	uint64_t before = group->sys->now(), away;

	group->sys->yield();
	away = group->sys->now() - before;
	if (away <= SHUNT_YIELD_SHARED)
		return true;
	count_backoff(group, SHUNT_SPUN_IN_VAIN, displaced || away > DISPLACED);
	return false;
}

bool shunt_spin_end(struct shunt_group *group, struct shunt_spin *spin, bool hit)
{
	bool expired = spin->looked >= spin->deadline;

	if (spin->mode->stays) {
		if (hit)
			count_backoff(group, SHUNT_SPUN_FOUND, spin->displaced);
		return !hit && !expired && yield(group, spin->displaced);
	}
	if (hit && spin->until)
		shunt_spin_look(group, spin);	/* was it found only because somebody else ran meanwhile? */
	__atomic_fetch_add(hit ? &group->spin_hits : &group->spins, 1, __ATOMIC_RELAXED);
	count_backoff(group,
		      hit     ? SHUNT_SPUN_FOUND :
		      expired ? SHUNT_SPUN_EXPIRED :
				SHUNT_SPUN_IN_VAIN,
		      spin->displaced);
	return false;
}
