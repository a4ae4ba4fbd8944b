/* SPDX-License-Identifier: MIT */
#include "core/lane/nop.h"
#include "core/lane/lane_serve.h"
#include "core/lane/roster.h"
#include "core/lane/wr.h"
#include "core/poll/group.h"

/* `allowed`, if a stream waits for more of them; else 0. */
static uint64_t starved_at(struct shunt_lane *lane)
{
	uint64_t allowed = 0;

	if (!shunt_lock_try(&lane->lock))
		return 0;	/* somebody is sending */
	if (atomic_load(&lane->waiting) && !atomic_load(&lane->failed) &&
	    shunt_wr_slots(lane, 0, lane->reserve) == SHUNT_LIMIT_RECEIVES)
		allowed = atomic_load(&lane->allowed);
	shunt_lane_leave(lane);
	return allowed;
}

bool shunt_nop_ask(struct shunt_lane *lane)
{
	uint64_t allowed = starved_at(lane);

	if (!allowed || lane->nop_allowed == allowed + 1)
		return false;
	lane->nop_allowed = allowed + 1;
	shunt_lock_take(&lane->group->lock);
	lane->repeated = true;
	atomic_store(&lane->lane_value, lane->granted);	/* with more it would be news, and no question */
	atomic_store(&lane->lane_due, true);
	shunt_lock_leave(&lane->group->lock);
	shunt_lane_kick(lane);
	return true;
}

/* A LANE that comes before any was due here is one of a queue pair that is tried out (core/peer/reconnect.c). */
void shunt_nop_answer(struct shunt_lane *lane)
{
	shunt_assert_held(&lane->group->lock);
	if (lane->repeated || lane->granted <= lane->rq_depth)
		return;
	lane->repeated = true;
	shunt_lane_announce(lane);
	shunt_roster_kick(lane->group, lane);
}
