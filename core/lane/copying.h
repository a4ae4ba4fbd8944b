/* SPDX-License-Identifier: MIT */
/*
 * How a device that copies itself shall write the bytes of a WR (LN-12, `copy`): a send flag of its own.
 *
 * A place of the peer's ring that was used a moment ago lies in the cache of the peer's core. Plain stores fetch each
 * line from there, and the reader fetches it back: the dearest way between two cores. Stores past the caches spare the
 * first half of it. A place that was used long ago lies in the cache that all cores share, and there plain stores
 * are faster. So what counts is how many bytes the lane has carried since the place was written last.
 */
#ifndef SHUNT_CORE_LANE_COPYING_H
#define SHUNT_CORE_LANE_COPYING_H

#include "core/lane/lane.h"

/* Bytes from one use of a place to the next up to which `auto` writes past the caches. 0: never. */
uint64_t shunt_copying_near(void);
/* `copy` has been set. lane.lock held, or nobody else knows the lane. */
void shunt_copying_configure(struct shunt_lane *lane);

/* Of a WR of at least lane->copies_from bytes. */
int shunt_copying_choose(struct shunt_lane *lane, struct shunt_seat_out *out, uint64_t offset,
			 uint32_t bytes);

/* The send flags of a WR with `bytes` of the stream from `offset` on. lane.lock held. */
static inline int shunt_copying_flags(struct shunt_lane *lane, struct shunt_seat_out *out,
				      uint64_t offset, uint32_t bytes)
{
	return __builtin_expect(bytes < lane->copies_from, 1) ?
		       0 :
		       shunt_copying_choose(lane, out, offset, bytes);
}

#endif
