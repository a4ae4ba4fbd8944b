/* SPDX-License-Identifier: MIT */
/* Devices in the statistics. */
#ifndef SHUNT_CORE_ADMIN_STATS_DEVICE_H
#define SHUNT_CORE_ADMIN_STATS_DEVICE_H

#include "core/base/json.h"

struct shunt_group;

/* Counters of the cost model (SHUNT_SOFT_MODEL); nothing without one. group.lock held. */
void shunt_stats_put_gauges(struct shunt_json *text, struct shunt_group *group);

#endif
