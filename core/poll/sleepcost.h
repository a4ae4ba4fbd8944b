/* SPDX-License-Identifier: MIT */
/*
 * The cost of sleeping instead of polling, measured once: the round trip of two threads that sleep and wake each
 * other. These are the service thread and the thread that starts it. Only round trips between two cores count,
 * because who spins has a core of its own; of these the shortest, because the others were disturbed.
 */
#ifndef SHUNT_CORE_POLL_SLEEPCOST_H
#define SHUNT_CORE_POLL_SLEEPCOST_H

#include <stdint.h>
#include "core/base/sys.h"

struct shunt_sleepcost {
	_Atomic uint32_t turn;	/* odd: the partner's */
	_Atomic int cpu;	/* where the partner was */
};

struct shunt_sys;

/* Nanoseconds, 0 where nothing could be measured; takes less than a millisecond. */
uint64_t shunt_sleepcost_measure(const struct shunt_sys *sys, struct shunt_sleepcost *cost);
/* The partner: returns when the measurement is over. */
void shunt_sleepcost_partner(struct shunt_sleepcost *cost);

#endif
