/* SPDX-License-Identifier: MIT */
/*
 * An opened device is tried on a queue pair that is connected to itself. Providers refuse queues and inline sizes that
 * their limits allow, and mana takes inline work requests that it does not carry.
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
/* The next inline size to try where `bytes` are refused; 0 behind the smallest. */
uint32_t shunt_selftest_less_inline(uint32_t bytes);

#endif
