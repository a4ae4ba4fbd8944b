/* SPDX-License-Identifier: MIT */
/* Bytes that tell where they belong. */
#include "tools/perf_end.h"

#include <string.h>

/*
 * A prime: bytes that are off by the size of a ring, a page or a message do not match. Small, so
 * that sending from the table and comparing with it stay in the cache.
 */
#define PERIOD 65521

static uint8_t table[PERIOD + PERF_MESSAGE_MAX];

void perf_pattern_make(void)
{
	uint32_t x = 2463534242;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		table[i] = (uint8_t)(x >> 11);
	}
	for (size_t i = PERIOD; i < sizeof(table); i++)
		table[i] = table[i - PERIOD];
}

const uint8_t *perf_pattern(uint32_t index, enum perf_direction direction, uint64_t offset)
{
	return table + (offset + index * 7919ULL + (uint64_t)direction * 31337) % PERIOD;
}

void perf_pattern_check(uint32_t index, enum perf_direction direction, uint64_t offset,
			const uint8_t *bytes, size_t count)
{
	const uint8_t *right = perf_pattern(index, direction, offset);
	size_t at = 0;

	if (!memcmp(right, bytes, count))
		return;
	while (right[at] == bytes[at])
		at++;
	perf_end_fail(PERF_END_FAILED, "connection %u: byte %llu of the %s is 0x%02x and should be 0x%02x",
		      index, (unsigned long long)(offset + at),
		      direction == PERF_REQUESTS ? "requests" : "replies", bytes[at], right[at]);
}
