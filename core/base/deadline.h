/* SPDX-License-Identifier: MIT */
/*
 * Points in time, in nanoseconds of sys->now(); SHUNT_NEVER: none.
 */
#ifndef SHUNT_CORE_BASE_DEADLINE_H
#define SHUNT_CORE_BASE_DEADLINE_H

#include <stdint.h>
#include <time.h>

#define SHUNT_NEVER UINT64_MAX

struct shunt_sys;

/* The time that is left until the deadline, in *left; NULL for no deadline. */
struct timespec *shunt_deadline_left(const struct shunt_sys *sys, uint64_t deadline, struct timespec *left);
/* The point in time `timeout` (NULL: for ever) from now. */
uint64_t shunt_deadline_in(const struct shunt_sys *sys, const struct timespec *timeout);

#endif
