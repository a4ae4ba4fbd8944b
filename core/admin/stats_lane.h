/* SPDX-License-Identifier: MIT */
/* Lanes and links in the statistics. group.lock held, in all calls. */
#ifndef SHUNT_CORE_ADMIN_STATS_LANE_H
#define SHUNT_CORE_ADMIN_STATS_LANE_H

#include "core/base/json.h"

struct shunt_engine;
struct shunt_group;
struct shunt_lane_stats;

/* Counters of all lanes, those of ended links with them, which become `tally`. */
void shunt_stats_put_lanes(struct shunt_json *text, struct shunt_engine *engine,
			   struct shunt_lane_stats *tally);
/* "stalls":{…},"bound_by":"…", with what was short how often. */
void shunt_stats_put_stalls(struct shunt_json *text, const uint64_t *stalls);
/* "lanes":[…], with a row for each lane: whether they share the work. */
void shunt_stats_put_each_lane(struct shunt_json *text, const struct shunt_group *group);
/* Memory regions that are registered now. */
void shunt_stats_put_memory(struct shunt_json *text, struct shunt_group *group);
/* "links":[…], with a row for each link: its peer, its queue pairs, its memory and that of the peer's which is mapped. */
void shunt_stats_put_links(struct shunt_json *text, const struct shunt_group *group);

#endif
