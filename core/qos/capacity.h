/* SPDX-License-Identifier: MIT */
/*
 * The node's capacity in tokens a period, followed from what is used (HA-14, Algorithm 1). A period that used all of
 * the estimate raises it by 1 %. One that used less, yet at least mean - 3 sigma of the profile, goes to the history
 * of SHUNT_CAPACITY_PERIODS, whose mean is the estimate. Less than that is low demand and says nothing.
 */
#ifndef SHUNT_CORE_QOS_CAPACITY_H
#define SHUNT_CORE_QOS_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHUNT_CAPACITY_PERIODS 8u

struct shunt_capacity {
	uint64_t mean, sigma; /* of the profile */
	uint64_t estimate;
	uint64_t history[SHUNT_CAPACITY_PERIODS];
	uint32_t count, next; /* of the history */
};

/* Mean and standard deviation of `count` samples. */
void shunt_capacity_profile(const uint64_t *samples, size_t count, uint64_t *mean,
			    uint64_t *sigma);
void shunt_capacity_begin(struct shunt_capacity *capacity, uint64_t mean, uint64_t sigma);
/* A period's end, and the tokens that all clients used in it: the estimate for the next. */
uint64_t shunt_capacity_step(struct shunt_capacity *capacity, uint64_t used);
/* A class's period. `*periods`: in a row without all of the reservation. True: just now they are 8. */
bool shunt_capacity_unused(uint32_t *periods, uint64_t used, uint64_t reservation);

#endif
