/* SPDX-License-Identifier: MIT */
#include "core/link/patience.h"
#include "core/engine.h"

#define RETURNS 16	/* times slower than it is spent */

bool shunt_patience_strange(const struct shunt_link *link)
{
	return link->channel.proves || link->channel.abroad ||
	       link->channel.kind == SHUNT_CHANNEL_TCP;
}

static uint64_t spent_by(const struct shunt_patience *patience, uint64_t now)
{
	uint64_t spent = atomic_load(&patience->spent), at = atomic_load(&patience->at);
	uint64_t back = now > at ? (now - at) / RETURNS : 0;

	return spent > back ? spent - back : 0;
}

uint64_t shunt_patience_left(struct shunt_link *link, uint64_t now, bool moment)
{
	uint64_t all = shunt_patience_strange(link) ? SHUNT_PATIENCE_STRANGE : SHUNT_PATIENCE;
	uint64_t spent = spent_by(&link->patience, now), left = spent < all ? all - spent : 0;

	return moment && left > all / SHUNT_PATIENCE_MOMENT ? all / SHUNT_PATIENCE_MOMENT : left;
}

/* Threads that wait at once may count too little: each has its own end. */
void shunt_patience_spend(struct shunt_link *link, uint64_t begun, uint64_t now)
{
	uint64_t spent = spent_by(&link->patience, begun);

	atomic_store(&link->patience.spent, spent + (now > begun ? now - begun : 0));
	atomic_store(&link->patience.at, now);
}

bool shunt_patience_is_over(struct shunt_link *link)
{
	if (!shunt_patience_strange(link))
		return false;
	atomic_store(&link->deaf, true);
	shunt_link_fail(link, "its process does not answer");
	shunt_loop_wake(&link->engine->loop);
	return true;
}
