/* SPDX-License-Identifier: MIT */
#include "tools/shunt.h"

#include <time.h>

double shunt_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
