/* SPDX-License-Identifier: MIT */
/*
 * The kernel's clocks, for what the engine measures and how long it waits. A library of the program may stand before
 * libc's clock_gettime() and let time stand still or run faster (libfaketime). Waits that end by the kernel's clock must
 * not be counted by another.
 */
#ifndef SHUNT_CORE_BASE_KERNEL_CLOCK_H
#define SHUNT_CORE_BASE_KERNEL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* libc's clock_gettime(), which reads the vDSO. preload/calls.c finds libc's own; tools and tests use the name. */
extern int (*shunt_kernel_clock)(clockid_t clock, struct timespec *now);

/* CLOCK_MONOTONIC in nanoseconds. */
static inline uint64_t shunt_kernel_clock_now(void)
{
	struct timespec now;

	shunt_kernel_clock(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
