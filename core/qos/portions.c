/* SPDX-License-Identifier: MIT */
#include "core/qos/portions.h"
#include <stddef.h>
#include "core/qos/tokens.h"

#define MILLITOKEN_NS 1000000000000ull /* tokens * this / ns is a rate */
#define IDLE 16 /* part of an equal portion */

void shunt_portion_begin(struct shunt_portion *portion, uint64_t taken, uint64_t waits,
			 uint64_t now)
{
	*portion = (struct shunt_portion) { .demand = SHUNT_PORTION_ALL,
					    .least = portion->least,
					    .at = now,
					    .taken = taken,
					    .waits = waits };
}

void shunt_portion_used(struct shunt_portion *portion, uint64_t taken, uint64_t waits, uint64_t now)
{
	unsigned __int128 rate;

	if (now <= portion->at)
		return;
	if (taken < portion->taken)
		taken = portion->taken;
	rate = (unsigned __int128)(taken - portion->taken) * MILLITOKEN_NS / (now - portion->at);
	portion->used = rate < SHUNT_RATE_MAX ? (uint64_t)rate : SHUNT_RATE_MAX;
	if (waits > portion->waits || rate > SHUNT_RATE_MAX)
		portion->demand = SHUNT_PORTION_ALL;
	else
		portion->demand = portion->used + portion->used / 4;
	portion->known = true;
	portion->at = now;
	portion->taken = taken;
	portion->waits = waits > portion->waits ? waits : portion->waits;
}

/* Each that wants no more than the level gets that, and leaves the rest. True: the level has risen. */
static bool portions_settle(struct shunt_portion *first, uint64_t level, uint64_t least,
			    uint64_t *left, uint64_t *count)
{
	bool settled = false;

	for (struct shunt_portion *portion = first; portion; portion = portion->next) {
		uint64_t keeps = portion->least ? portion->least : least;
		uint64_t wanted = portion->demand > keeps ? portion->demand : keeps;

		if (portion->settled || wanted > level)
			continue;
		portion->settled = settled = true;
		portion->rate = wanted;
		*left -= wanted;
		(*count)--;
	}
	return settled;
}

void shunt_portion_split(struct shunt_portion *first, uint64_t limit)
{
	uint64_t all = 0, count, left = limit, least;

	for (struct shunt_portion *portion = first; portion; portion = portion->next, all++)
		portion->settled = false;
	if (!all)
		return;
	count = all;
	least = limit / all / IDLE;
	while (count && portions_settle(first, left / count, least, &left, &count))
		;
	for (struct shunt_portion *portion = first; portion; portion = portion->next) {
		if (!portion->settled)
			portion->rate = left / count;
		else if (!count)
			portion->rate +=
				left / all; /* all have what they want: nobody need wait for more */
		if (portion->rate < SHUNT_RATE_MIN)
			portion->rate = SHUNT_RATE_MIN;
	}
}
