/* SPDX-License-Identifier: MIT */
#include "core/base/deadline.h"
#include "core/base/sys.h"

struct timespec *shunt_deadline_left(const struct shunt_sys *sys, uint64_t deadline,
				     struct timespec *left)
{
	uint64_t now;

	if (deadline == SHUNT_NEVER)
		return NULL;
	now = sys->now();
	now = deadline > now ? deadline - now : 0;
	*left = (struct timespec) { now / 1000000000, now % 1000000000 };
	return left;
}

uint64_t shunt_deadline_in(const struct shunt_sys *sys, const struct timespec *timeout)
{
	uint64_t now;

	if (!timeout)
		return SHUNT_NEVER;
	now = sys->now();
	if ((uint64_t)timeout->tv_sec > (SHUNT_NEVER - now) / 1000000000 - 1)
		return SHUNT_NEVER;
	return now + (uint64_t)timeout->tv_sec * 1000000000 + timeout->tv_nsec;
}
