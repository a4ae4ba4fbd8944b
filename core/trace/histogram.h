/* SPDX-License-Identifier: MIT */
/*
 * Counts by powers of two (XR-31). Bucket i counts the values from 2^i to 2^(i+1) - 1. Bucket 0 counts 0 as well, and
 * the last bucket everything that is larger. A histogram is a plain array of its owner, who says how long it is.
 *
 * There is one writer at a time: the owner's lock, which its writer holds anyway. A reader needs no lock, and sees each
 * count as it was at some time. Nothing is ever lost: an addition is a load and a store of a word.
 */
#ifndef SHUNT_CORE_TRACE_HISTOGRAM_H
#define SHUNT_CORE_TRACE_HISTOGRAM_H

#include <stdint.h>

#define SHUNT_SIZE_BUCKETS 24	/* of bytes: the last bucket begins at 8 MiB */
#define SHUNT_TIME_BUCKETS 40	/* of ns: the last bucket begins at 550 s */

static inline uint32_t shunt_histogram_bucket(uint32_t buckets, uint64_t value)
{
	uint32_t bucket = 63 - (uint32_t)__builtin_clzll(value | 1);

	return bucket < buckets ? bucket : buckets - 1;
}

/* The owner's lock held. */
static inline void shunt_histogram_add(uint64_t *counts, uint32_t buckets, uint64_t value)
{
	uint64_t *count = &counts[shunt_histogram_bucket(buckets, value)];

	__atomic_store_n(count, __atomic_load_n(count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* Adds one histogram to another of the same length. The lock of `sum` held. */
void shunt_histogram_merge(uint64_t *sum, const uint64_t *more, uint32_t buckets);

#endif
