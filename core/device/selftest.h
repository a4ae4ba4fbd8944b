/* SPDX-License-Identifier: MIT */
/*
 * What a device really has, found out when it is opened, on a queue pair that is connected to itself. Providers refuse
 * queues and inline sizes that their limits allow, and one takes an inline work request that it cannot carry.
 */
#ifndef SHUNT_CORE_DEVICE_SELFTEST_H
#define SHUNT_CORE_DEVICE_SELFTEST_H

#include <stdint.h>

struct shunt_device;

/*
 * Settles sq_depth, rq_depth and most_inline of an open device that has a channel: no more than they are, and
 * `inline_bytes`. 0, or -errno of what the device refuses. Service thread; some ms.
 */
int shunt_selftest(struct shunt_device *device, uint32_t inline_bytes);

#endif
