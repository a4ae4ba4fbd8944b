/* SPDX-License-Identifier: MIT */
#include "core/lane/lane.h"
#include "core/lane/lane_stats.h"
#include "core/lane/roster.h"
#include "core/poll/devices.h"
#include "core/lane/lane_serve.h"
#include "core/poll/group.h"
#include "core/device/fault.h"

static void count(struct shunt_group *group, const struct shunt_lane *lane, int change)
{
	shunt_devices_count(group, lane->qp->send_cq, change);
}

/* Devices number their queue pairs one after the other, so rows fill evenly. */
static struct shunt_lane **row_of(struct shunt_group *group, uint32_t qp_num)
{
	return &group->lane_rows[qp_num % SHUNT_LANE_ROWS];
}

/* Neither list is walked: a peer may end a thousand links at once. */
static void enter(struct shunt_group *group, struct shunt_lane *lane)
{
	struct shunt_lane **row = row_of(group, lane->qp->qp_num);

	lane->next_in_group = group->lanes;
	lane->at_in_group = &group->lanes;
	if (lane->next_in_group)
		lane->next_in_group->at_in_group = &lane->next_in_group;
	group->lanes = lane;
	lane->next_in_row = *row;
	lane->at_in_row = row;
	if (lane->next_in_row)
		lane->next_in_row->at_in_row = &lane->next_in_row;
	*row = lane;
}

static void leave_group(struct shunt_lane *lane)
{
	*lane->at_in_group = lane->next_in_group;
	if (lane->next_in_group)
		lane->next_in_group->at_in_group = lane->at_in_group;
	*lane->at_in_row = lane->next_in_row;
	if (lane->next_in_row)
		lane->next_in_row->at_in_row = lane->at_in_row;
	lane->at_in_group = NULL;
}

static void forget_kick(struct shunt_group *group, const struct shunt_lane *lane)
{
	struct shunt_lane **p = &group->polled.kick_lanes;

	if (!lane->kicked)
		return;
	while (*p != lane)
		p = &(*p)->next_kick;
	*p = lane->next_kick;
}

void shunt_roster_add(struct shunt_group *group, struct shunt_lane *lane)
{
	shunt_lock_take(&group->lock);
	lane->serial = group->fault->lanes++;
	enter(group, lane);
	count(group, lane, 1);
	shunt_lock_leave(&group->lock);
}

void shunt_roster_remove(struct shunt_group *group, struct shunt_lane *lane)
{
	shunt_lock_take(&group->lock);
	if (lane->at_in_group) {
		leave_group(lane);
		shunt_lane_stats_add(&group->ended, lane);
		count(group, lane, -1);
	}
	forget_kick(group, lane);
	while (!shunt_lock_try(&lane->lock)) {	/* who serves it leaves it with group.lock held (shunt_roster_next) */
		shunt_lock_leave(&group->lock);
		shunt_lock_take(&lane->lock);
		shunt_lock_leave(&lane->lock);
		shunt_lock_take(&group->lock);
	}
	shunt_lock_leave(&lane->lock);
	shunt_lock_leave(&group->lock);
}

/* Each device has numbers of its own: the CQ tells them apart. */
struct shunt_lane *shunt_roster_find(struct shunt_group *group, const struct ibv_cq *cq,
				     uint32_t qp_num)
{
	struct shunt_lane *lane = *row_of(group, qp_num);

	shunt_assert_held(&group->lock);
	while (lane && (lane->qp->qp_num != qp_num || lane->qp->send_cq != cq))
		lane = lane->next_in_row;
	return lane;
}

bool shunt_roster_settled(struct shunt_group *group)
{
	bool settled = true;

	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		settled &= atomic_load(&lane->failed) || shunt_lane_arrived(lane);
	shunt_lock_leave(&group->lock);
	return settled;
}

bool shunt_roster_idle(struct shunt_group *group, bool *served)
{
	bool idle = true;

	*served = false;
	shunt_lock_take(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group) {
		if (shunt_lock_try(&lane->lock))
			shunt_lock_leave(&lane->lock);
		else
			*served = true;
		idle &= !shunt_lane_stalled(lane);
		shunt_roster_kick(group, lane);	/* also for a thread that has left us a mark meanwhile */
	}
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	return idle;
}

/* --- what a poll leaves to be done for them --- */

void shunt_roster_repost(struct shunt_group *group, struct shunt_lane *lane)
{
	shunt_assert_held(&group->lock);
	if (lane->repost_due)
		return;
	lane->repost_due = true;
	lane->next_repost = group->polled.repost_lanes;
	group->polled.repost_lanes = lane;
}

void shunt_roster_post(struct shunt_group *group)
{
	struct shunt_lane *lane;

	shunt_assert_held(&group->lock);
	while ((lane = group->polled.repost_lanes) != NULL) {
		group->polled.repost_lanes = lane->next_repost;
		lane->repost_due = false;
		shunt_lane_repost(lane);
	}
}

void shunt_roster_kick(struct shunt_group *group, struct shunt_lane *lane)
{
	shunt_assert_held(&group->lock);
	if (lane->kicked)
		return;
	lane->kicked = true;
	lane->next_kick = group->polled.kick_lanes;
	group->polled.kick_lanes = lane;
	atomic_store_explicit(&group->after_due, true, memory_order_relaxed);
}

/* Not analysed: it leaves one lane and takes another. */
SHUNT_NO_LOCK_ANALYSIS struct shunt_lane *shunt_roster_next(struct shunt_group *group,
							    struct shunt_lane *served,
							    bool *stalled)
{
	struct shunt_lane *lane;

	shunt_assert_held(&group->lock);
	if (served) {
		shunt_lock_leave(&served->lock);
		shunt_lane_ring(served);	/* group.lock keeps it */
		*stalled |= shunt_lane_stalled(served);
		if (atomic_load(&served->dirty) && shunt_lock_try(&served->lock))
			return served;
	}
	while ((lane = group->polled.kick_lanes) != NULL) {
		group->polled.kick_lanes = lane->next_kick;
		lane->kicked = false;
		atomic_store(&lane->dirty, true);
		if (shunt_lock_try(&lane->lock))
			return lane;
	}
	return NULL;
}

bool shunt_roster_stalls(struct shunt_group *group)
{
	shunt_assert_held(&group->lock);
	for (struct shunt_lane *lane = group->lanes; lane; lane = lane->next_in_group)
		if (shunt_lane_stalled(lane))
			return true;
	return false;
}
