/* SPDX-License-Identifier: MIT */
/* Counters of lanes, for the statistics. */
#ifndef SHUNT_CORE_LANE_LANE_STATS_H
#define SHUNT_CORE_LANE_LANE_STATS_H

#include <stdint.h>
#include "core/poll/lane_counters.h"

struct shunt_lane;

void shunt_lane_stats_add(struct shunt_lane_stats *tally, const struct shunt_lane *lane);

/* The peer's ring has no room, once for each place that the peer has read up to. Any thread. */
void shunt_lane_no_room(struct shunt_lane *lane, int fd);

#endif
