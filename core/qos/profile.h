/* SPDX-License-Identifier: MIT */
#ifndef SHUNT_CORE_QOS_PROFILE_H
#define SHUNT_CORE_QOS_PROFILE_H
#include <errno.h>
#include <stdint.h>
struct shunt_device;
static inline int shunt_profile(struct shunt_device *device, uint64_t *mean, uint64_t *sigma)
{
	(void)device, (void)mean, (void)sigma;
	return -ENOSYS;
}
#endif
