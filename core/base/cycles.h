/* SPDX-License-Identifier: MIT */
/* The time for those who ask for it in every call: cycles of the processor, where that has a counter of them. */
#ifndef SHUNT_CORE_BASE_CYCLES_H
#define SHUNT_CORE_BASE_CYCLES_H

#include <stdint.h>
#include <time.h>

static inline uint64_t shunt_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

#endif
