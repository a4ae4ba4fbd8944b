/* SPDX-License-Identifier: MIT */
/*
 * The lanes of a process, and those of them for which a poll has left something to do.
 */
#ifndef SHUNT_CORE_LANE_ROSTER_H
#define SHUNT_CORE_LANE_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_cq;
struct shunt_group;
struct shunt_group;
struct shunt_lane;

void shunt_roster_add(struct shunt_group *group, struct shunt_lane *lane);
void shunt_roster_remove(struct shunt_group *group, struct shunt_lane *lane);
/* Nothing that was posted is still on its way. */
bool shunt_roster_settled(struct shunt_group *group);
/*
 * Every lane gets its turn. True: none has work that waits. *served: somebody is serving one, and has work in hand
 * that is in no list.
 */
bool shunt_roster_idle(struct shunt_group *group, bool *served);
/* The lane whose queue pair has that number, and completes in that CQ. NULL: it is gone. group.lock held. */
struct shunt_lane *shunt_roster_find(struct shunt_group *group, const struct ibv_cq *cq,
				     uint32_t qp_num);

/* The receives of the lane are posted again at the end of this poll. group.lock held, as for the next two. */
void shunt_roster_repost(struct shunt_group *group, struct shunt_lane *lane);
void shunt_roster_post(struct shunt_group *group);
/* A lane has work that the completion of a send may make possible. */
bool shunt_roster_stalls(struct shunt_group *group);
/* The lane is served by shunt_group_after(). group.lock held. */
void shunt_roster_kick(struct shunt_group *group, struct shunt_lane *lane);
/*
 * The next lane to be served, its lock taken, or NULL; `served`: the one before it, which is left. A lane without a
 * stream is kept by its lock. Until that is taken group.lock keeps it, because lanes are removed under group.lock. As
 * in shunt_lane_kick(), a thread that does not get the lock leaves a mark instead. *stalled: the lane that is left
 * has work that waits. group.lock held.
 */
struct shunt_lane *shunt_roster_next(struct shunt_group *group, struct shunt_lane *served, bool *stalled);

#endif
