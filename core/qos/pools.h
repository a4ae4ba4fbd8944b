/* SPDX-License-Identifier: MIT */
/*
 * The pools of a monitor: what the ledger allows, divided among the words of the trust domains. Service thread.
 */
#ifndef SHUNT_CORE_QOS_POOLS_H
#define SHUNT_CORE_QOS_POOLS_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_engine;
struct shunt_link;
struct shunt_monitor;
struct shunt_pool;

/* The pool of the link's domain, with one link more. NULL: there are too many, or the device has no atomics. */
struct shunt_pool *shunt_pools_of(struct shunt_monitor *monitor, const struct shunt_link *link);
/* One link less. */
void shunt_pools_left(struct shunt_monitor *monitor, struct shunt_pool *pool);
/* Takes notice of what was drawn. True: something was. */
bool shunt_pools_read(struct shunt_monitor *monitor);
/* Fills the pools up to what they may hold by now. */
void shunt_pools_fill(struct shunt_monitor *monitor, uint64_t now, bool convert);
/* A device's atomics are not the processor's: the monitor uses the device, too. */
bool shunt_pools_by_device(const struct shunt_monitor *monitor);
void shunt_pools_free(struct shunt_monitor *monitor);
/* In a fork's child: its copies of the descriptors are closed. */
void shunt_pools_abandon(struct shunt_engine *engine, struct shunt_monitor *monitor);

#endif
