/* SPDX-License-Identifier: MIT */
#include "core/trace/histogram.h"

void shunt_histogram_merge(uint64_t *sum, const uint64_t *more, uint32_t buckets)
{
	for (uint32_t i = 0; i < buckets; i++)
		__atomic_store_n(&sum[i], __atomic_load_n(&sum[i], __ATOMIC_RELAXED) +
				 __atomic_load_n(&more[i], __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
