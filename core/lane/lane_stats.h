/* SPDX-License-Identifier: MIT */
/* Counters of lanes, for the statistics. The group keeps those of ended links. */
#ifndef SHUNT_CORE_LANE_LANE_STATS_H
#define SHUNT_CORE_LANE_LANE_STATS_H

#include <stdint.h>
#include "core/lane/window.h"
#include "core/trace/histogram.h"

struct shunt_lane;

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

void shunt_lane_stats_add(struct shunt_lane_stats *tally, const struct shunt_lane *lane);

/* The peer's ring has no room, once for each place that the peer has read up to. Any thread. */
void shunt_lane_no_room(struct shunt_lane *lane, int fd);

#endif
