/* SPDX-License-Identifier: MIT */
#include "core/base/kernel_clock.h"

int (*shunt_kernel_clock)(clockid_t clock, struct timespec *now) = clock_gettime;
