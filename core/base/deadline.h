/* SPDX-License-Identifier: MIT */
/*
 * Points in time, in nanoseconds of the engine's clock; SHUNT_NEVER: none.
 */
#ifndef SHUNT_CORE_BASE_DEADLINE_H
#define SHUNT_CORE_BASE_DEADLINE_H

#include <stdint.h>
#include <time.h>

struct shunt_engine;

/* The time that is left until the deadline, in *left; NULL for no deadline. */
struct timespec *shunt_deadline_left(struct shunt_engine *engine, uint64_t deadline, struct timespec *left);
/* The point in time `timeout` (NULL: for ever) from now. */
uint64_t shunt_deadline_in(struct shunt_engine *engine, const struct timespec *timeout);

#endif
