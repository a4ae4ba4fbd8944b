/* SPDX-License-Identifier: MIT */
/*
 * A lane's records of sends that are followed, as the peer wants them (struct shunt_trace_record). They are made in a
 * page of our arena and written to the ring that the peer has offered. That happens before the last byte of a send,
 * and again when it is known when the byte was placed. A slot is never waited for. lane.lock held throughout.
 */
#ifndef SHUNT_CORE_LANE_LANE_TRACE_H
#define SHUNT_CORE_LANE_LANE_TRACE_H

#include "core/lane/lane.h"
#include "core/trace/pending.h"

/* Records are made in `page`, which has SHUNT_TRACE_SLOTS of them. NULL: there is no memory. */
struct shunt_lane_trace *shunt_lane_trace_make(struct shunt_trace_record *page, uint32_t lkey,
					       uint64_t remote, uint32_t rkey);

/* That, and what is followed of the peer's. The lane is going. */
void shunt_lane_trace_free(struct shunt_lane *lane);

/* Records of sends of the stream that end at `upto` or before: their last bytes are about to be posted. */
void shunt_lane_trace_write(struct shunt_lane *lane, struct shunt_seat *seat, uint64_t upto);
/* A doorbell is about to be rung. */
void shunt_lane_trace_stamp(struct shunt_lane *lane);
/* Bytes up to `end` have been posted, the last of them with WR `number`. */
void shunt_lane_trace_post(struct shunt_lane *lane, const struct shunt_seat *seat, uint64_t end,
			   uint64_t number);
/* Tells the peer of what the device has placed. True: there is more, and the service thread looks again. */
bool shunt_lane_trace_look(struct shunt_lane *lane);
/* Nothing that is told from here on is of this stream: its memory may become another's. */
void shunt_lane_trace_forget(struct shunt_lane *lane, const struct shunt_seat *seat);

/* Bytes of the stream are about to be posted: may there be records to write before them? */
static inline bool shunt_lane_trace_due(const struct shunt_seat *seat)
{
	struct shunt_pendings *pendings = atomic_load_explicit(&seat->pendings,
							       memory_order_acquire);

	return __builtin_expect(pendings != NULL, 0) && shunt_pendings_any(pendings);
}

#endif
