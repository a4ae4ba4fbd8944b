/* SPDX-License-Identifier: MIT */
/*
 * Serving a lane: what waits in its merge queue becomes messages, as far as credit, window and ring allow.
 */
#ifndef SHUNT_CORE_LANE_LANE_SERVE_H
#define SHUNT_CORE_LANE_LANE_SERVE_H

#include "core/lane/lane_queue.h"
#include "core/link/link.h"
#include "core/loop/request.h"
#include "core/poll/group.h"

/* Queues work for the stream and serves the lane unless somebody is. Any stream lock may be held. */
void shunt_lane_request(struct shunt_lane *lane, struct shunt_seat *seat, uint32_t work);
/* Serves what is queued. */
void shunt_lane_serve(struct shunt_lane *lane) SHUNT_REQUIRES(lane->lock);
/* Serves what is queued, unless somebody is. */
void shunt_lane_kick(struct shunt_lane *lane);
/* Work is waiting for credit, or for the QP to take it, or somebody for what was posted to arrive. */
bool shunt_lane_stalled(struct shunt_lane *lane);
/*
 * The peer offered another ring: what comes behind the bytes that were posted goes there. As soon
 * as it has RING_FROM, the peer may make another offer.
 */
void shunt_lane_take_offer(struct shunt_lane *lane, struct shunt_seat *seat)
	SHUNT_REQUIRES(lane->lock);

/*
 * Wakes those of the peer that sleep until what was posted comes. The poster does so after it has left lane.lock. A
 * thread that is woken may take the core at once, and the lock would be held meanwhile.
 */
static inline void shunt_lane_ring(struct shunt_lane *lane)
{
	if (lane->rings && __builtin_expect(__atomic_load_n(lane->rings, __ATOMIC_RELAXED), 0))
		lane->link->device->kind->ring(lane->qp);
}

/* Leaves lane.lock, and serves for those that found it taken. */
static inline void shunt_lane_leave(struct shunt_lane *lane) SHUNT_RELEASE(lane->lock);
static inline void shunt_lane_leave(struct shunt_lane *lane)
{
	shunt_lock_leave(&lane->lock);
	shunt_lane_ring(lane);
	if (__builtin_expect(atomic_load(&lane->dirty), 0))
		shunt_lane_kick(lane);
}

/*
 * Bytes of the stream are on their way, and the device will say when they have arrived: until then
 * more of them are gathered (CP-01). A device that is done at once is never waited for.
 */
static inline bool shunt_lane_under_way(struct shunt_lane *lane, const struct shunt_seat *seat)
{
	const struct shunt_seat_out *out = &seat->out;

	return lane->late && out->last_wr <= lane->last_signaled &&
	       out->last_wr > atomic_load_explicit(&lane->retired, memory_order_acquire);
}

/* Whether the device has WRs that it has not carried out. lane.lock held. */
static inline void shunt_lane_look(struct shunt_lane *lane)
{
	if (__builtin_expect(lane->backlog != NULL, 1))
		lane->late = __atomic_load_n(lane->backlog, __ATOMIC_RELAXED) != 0;
	else
		lane->late = lane->sent != atomic_load_explicit(&lane->retired, memory_order_relaxed);
	if (__builtin_expect(lane->late, 0))
		shunt_request_completions(lane->group->loop);
}

#endif
