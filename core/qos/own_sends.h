/* SPDX-License-Identifier: MIT */
/*
 * The node's own sends, where the rules have a capacity (HA-17: the node sees each of them, so a scheduler at the node
 * suffices). All links take their tokens from one bucket of the capacity. While somebody waits for it, the service
 * thread hands the tokens out by deficit round robin over the classes: a class has its reservation's part, and those
 * without one share the rest. So a bulk reader does not hold up the small answers of others.
 */
#ifndef SHUNT_CORE_QOS_OWN_SENDS_H
#define SHUNT_CORE_QOS_OWN_SENDS_H

#include <stdatomic.h>
#include "core/qos/drr.h"
#include "core/qos/rules.h"
#include "core/qos/tokens.h"

struct shunt_service;
struct shunt_task;
struct shunt_throttle;

struct shunt_own_sends {
	struct shunt_bucket bucket;
	_Atomic uint32_t waiting; /* throttles; while there are any, nobody takes tokens but from their hands */
	struct shunt_drr drr; /* service thread, as are the rest */
	struct shunt_link *last[SHUNT_QOS_CLASSES + 1]; /* which of a class was served last; it may be gone */
};

/* The capacity is so much from now on; `weights` of the classes, and of those who match none. */
void shunt_own_sends_begin(struct shunt_own_sends *own, uint64_t rate, const uint64_t weights[SHUNT_QOS_CLASSES + 1],
			   uint64_t now);
/* So many tokens for one work request, at once or out of what was handed to the throttle. Any thread. */
bool shunt_own_sends_take(struct shunt_own_sends *own, struct shunt_throttle *throttle, uint64_t now, uint32_t tokens);
/* Hands out what is due. `task` is told when there is more. */
void shunt_own_sends_serve(struct shunt_service *service, struct shunt_task *task, uint64_t now);

#endif
