/* SPDX-License-Identifier: MIT */
/* Devices in the statistics. */
#ifndef SHUNT_CORE_ADMIN_STATS_DEVICE_H
#define SHUNT_CORE_ADMIN_STATS_DEVICE_H

#include "core/base/json.h"

struct shunt_engine;
struct shunt_group;

/* Counters of the cost model (SHUNT_SOFT_MODEL); nothing without one. group.lock held. */
void shunt_stats_put_gauges(struct shunt_json *text, struct shunt_group *group);
/*
 * "devices":[…], with a row for each that is open: state, link layer and the kernel's hw_counters, where it has any. The
 * kernel may ask the device for them, so no lock is held while they are read.
 */
void shunt_stats_put_devices(struct shunt_json *text, struct shunt_engine *engine);

#endif
