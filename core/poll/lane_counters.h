/* SPDX-License-Identifier: MIT */
/* Counters of lanes. The group keeps the sums of those that are gone. */
#ifndef SHUNT_CORE_POLL_LANE_COUNTERS_H
#define SHUNT_CORE_POLL_LANE_COUNTERS_H

#include <stdint.h>
#include "core/trace/histogram.h"

enum shunt_limit {	/* what keeps a lane from posting */
	SHUNT_LIMIT_NONE,
	SHUNT_LIMIT_RING,	/* room in the peer's ring (credit) */
	SHUNT_LIMIT_RECEIVES,	/* receives that the peer has posted */
	SHUNT_LIMIT_SQ,		/* slots of the send queue */
	SHUNT_LIMIT_BYTES,	/* `window` */
	SHUNT_LIMIT_WRS,	/* window_wr */
	SHUNT_LIMIT_DEVICE,	/* window_device */
	SHUNT_LIMIT_POLICY,	/* the policy's own word */
	SHUNT_LIMIT_GATE,	/* the gate of a room above */
	SHUNT_LIMITS
};

struct shunt_lane_counters {	/* besides lane.sent, the WRs, and window.posted, their data bytes */
	uint64_t doorbells, signaled, direct, merged, staged_sends;
	uint64_t gathered;	/* WRs that were not inline */
	uint64_t chain_max, control, queue_stalls, post_failures, held;
	uint64_t copied_past;	/* bytes that a device wrote past the caches (copying.h) */
	uint64_t stalls[SHUNT_LIMITS];	/* by what was short */
};

struct shunt_lane_stats {	/* of several lanes */
	struct shunt_lane_counters counters;
	uint64_t wrs, bytes, cuts;
	uint64_t most_wrs, most_bytes;	/* in flight on one of them */
	uint64_t link_ns[SHUNT_TIME_BUCKETS];
};

#endif
