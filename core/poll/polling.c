/* SPDX-License-Identifier: MIT */
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/poll/polling.h"

#define DISPLACED 100000	/* ns: no turn of a spin takes so long while its thread has the core */
#define STAY 50000		/* ns between two looks around of a wait that never sleeps */

/* In the order of the words of SHUNT_POLL. */
static const struct shunt_polling modes[] = {
	{ .name = "event" },
	{ .name = "batch", .bounded = true },
	{ .name = "hybrid", .drains = true },
	{ .name = "busy", .drains = true, .stays = true },
	{ .name = "adaptive", .drains = true, .spins = true },
};

const struct shunt_polling *shunt_polling(const struct shunt_engine *engine)
{
	return &modes[shunt_config_live(&engine->config.poll)];
}

bool shunt_spin_begin(struct shunt_engine *engine, struct shunt_spin *spin, uint64_t deadline)
{
	*spin = (struct shunt_spin) { .mode = shunt_polling(engine),
				      .deadline = deadline,
				      .gap = DISPLACED,
				      .retries = shunt_config_live(&engine->config.poll_retry) };
	if (spin->mode->stays) {
		spin->budget = STAY;
		spin->retries = UINT64_MAX;
		return !engine->single_core;
	}
	if (!spin->mode->spins || !spin->retries)
		return false;
	spin->budget = shunt_thread_budget(engine);
	return spin->budget != 0;
}

bool shunt_spin_look(struct shunt_engine *engine, struct shunt_spin *spin)
{
	uint64_t now = shunt_now(engine);

	if (!spin->until)
		spin->until = spin->deadline < now + spin->budget ? spin->deadline : now + spin->budget;
	else if (now - spin->looked > spin->gap)
		spin->displaced = true;
	spin->looked = now;
	return now < spin->until;
}

bool shunt_spin_end(struct shunt_engine *engine, struct shunt_spin *spin, bool hit)
{
	bool expired = spin->looked >= spin->deadline;

	if (spin->mode->stays) {
		if (hit || expired)
			return false;
		engine->sys->yield();	/* perhaps to whom we wait for */
		return true;
	}
	if (hit && spin->until)
		shunt_spin_look(engine, spin);	/* was it found only because somebody else ran meanwhile? */
	shunt_thread_polled(engine, hit ? SHUNT_SPUN_FOUND : expired ? SHUNT_SPUN_EXPIRED : SHUNT_SPUN_IN_VAIN,
			    spin->displaced);
	return false;
}
