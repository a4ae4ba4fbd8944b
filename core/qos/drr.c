/* SPDX-License-Identifier: MIT */
#include "core/qos/drr.h"

#define PARTS 16
#define TURN (16ull << PARTS)

void shunt_drr_begin(struct shunt_drr *drr, const uint32_t weights[], uint32_t count)
{
	uint64_t most = 1;

	*drr = (struct shunt_drr) { .count = count };
	for (uint32_t i = 0; i < count; i++)
		if (weights[i] > most)
			most = weights[i];
	for (uint32_t i = 0; i < count; i++) {
		drr->share[i] = (weights[i] ? weights[i] : 1) * TURN / most;
		if (!drr->share[i])
			drr->share[i] = 1;
	}
}

/* All turns in which nobody has enough, at once. False: nobody wants any. */
static bool skip_turns(struct shunt_drr *drr, const uint32_t wanted[])
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < drr->count; i++) {
		uint64_t price = (uint64_t)wanted[i] << PARTS, turns;

		if (!wanted[i]) {
			drr->deficit[i] = 0;
			continue;
		}
		turns = price > drr->deficit[i] ?
				(price - drr->deficit[i] - 1) / drr->share[i] :
				0;
		if (turns < least)
			least = turns;
	}
	for (uint32_t i = 0; i < drr->count && least != UINT64_MAX; i++)
		if (wanted[i])
			drr->deficit[i] += least * drr->share[i];
	return least != UINT64_MAX;
}

uint32_t shunt_drr_next(struct shunt_drr *drr, const uint32_t wanted[], uint64_t available,
			uint32_t *tokens)
{
	*tokens = 0;
	for (uint32_t looked = 0;; looked++) {
		uint32_t at = drr->at;

		if (looked > drr->count) {
			if (!skip_turns(drr, wanted))
				return SHUNT_DRR_NONE;
			looked = 0;
		}
		if (!wanted[at])
			drr->deficit[at] = 0;
		else if (!drr->visited)
			drr->deficit[at] += drr->share[at];
		drr->visited = true;
		if (wanted[at] && drr->deficit[at] >= (uint64_t)wanted[at] << PARTS) {
			*tokens = wanted[at];
			if (wanted[at] > available)
				return SHUNT_DRR_NONE;
			drr->deficit[at] -= (uint64_t)wanted[at] << PARTS;
			return at;
		}
		drr->at = (at + 1) % drr->count;
		drr->visited = false;
	}
}
