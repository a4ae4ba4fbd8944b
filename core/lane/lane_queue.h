/* SPDX-License-Identifier: MIT */
/*
 * The merge queue of a lane: streams with work for it, and those whose work waits for a completion. A
 * stream is in one of the two at most; its work is in seat.work. Under lane.queue_lock.
 */
#ifndef SHUNT_CORE_LANE_LANE_QUEUE_H
#define SHUNT_CORE_LANE_LANE_QUEUE_H

#include "core/lane/lane.h"

/* Queues work for the stream. Any lock left of queue_lock may be held. */
void shunt_lane_enqueue(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work);
/* The same until WRs have completed. */
void shunt_lane_hold(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work);
/* Those that were held are looked at again. */
void shunt_lane_requeue(struct shunt_lane *lane);
/* The first in it, and its work. NULL: it is empty. */
struct shunt_seat *shunt_lane_dequeue(struct shunt_lane *lane, uint32_t *work);
/* Nothing that is queued will be posted any more. */
void shunt_lane_abandon(struct shunt_lane *lane);

#endif
