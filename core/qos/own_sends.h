/* SPDX-License-Identifier: MIT */
/*
 * The node's own sends, where the rules have a capacity (HA-17: the node sees each of them, so a scheduler at the
 * node suffices). All links take their tokens from one bucket of the capacity. While a send waits for it, the service
 * thread hands the tokens out by deficit round robin over the classes. A class has its reservation's part, and those
 * without one share the rest. So a bulk reader does not hold up the small answers of others.
 */
#ifndef SHUNT_CORE_QOS_OWN_SENDS_H
#define SHUNT_CORE_QOS_OWN_SENDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/qos/drr.h"
#include "core/qos/rules.h"
#include "core/qos/tokens.h"

struct shunt_service;
struct shunt_task;
struct shunt_throttle;

struct shunt_own_sends {
	struct shunt_bucket bucket;
	_Atomic bool busy; /* somebody waits: tokens come by the service thread alone */
	struct shunt_drr drr; /* service thread, as is the next */
	uint64_t turn; /* how often somebody was served */
};

/* `rate`: the capacity. The weights of classes are what they reserve of it; the rest is for those that reserve nothing. */
void shunt_own_sends_begin(struct shunt_own_sends *own, const struct shunt_qos_rules *rules,
			   uint64_t rate, uint64_t now);
/* The capacity is another from now on. */
void shunt_own_sends_change(struct shunt_own_sends *own, uint64_t rate);
/* So many tokens for one work request, at once or of what was handed to the throttle. Any thread. */
bool shunt_own_sends_take(struct shunt_throttle *throttle, uint64_t now, uint32_t tokens);
/* Hands out what is due, and serves those lanes. `task` is told when there is more. */
void shunt_own_sends_serve(struct shunt_service *service, struct shunt_task *task, uint64_t now);

#endif
