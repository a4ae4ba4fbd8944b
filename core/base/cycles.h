/* SPDX-License-Identifier: MIT */
/* The time for those who ask for it in every call: cycles of the processor, where that has a counter of them. */
#ifndef SHUNT_CORE_BASE_CYCLES_H
#define SHUNT_CORE_BASE_CYCLES_H

#include <stdint.h>
#include "core/base/kernel_clock.h"

static inline uint64_t shunt_cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return shunt_kernel_clock_now();
#endif
}

#endif
