/* SPDX-License-Identifier: MIT */
/* Bytes that tell where they belong. */
#include "tools/perf/end/perf_end.h"

#include <errno.h>
#include <stdlib.h>

/*
 * A prime: bytes that are off by the size of a ring, a page or a message do not match. Small, so
 * that sending from the table and comparing with it stay in the cache.
 */
#define PERIOD 65521

static uint8_t *table;
static size_t room; /* bytes behind the first period */

static void fill_period(void)
{
	uint32_t x = 2463534242;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		table[i] = (uint8_t)(x >> 11);
	}
}

int perf_pattern_make(size_t bytes)
{
	uint8_t *larger;

	if (bytes < PERF_CHUNK_MAX)
		bytes = PERF_CHUNK_MAX;
	if (table && bytes <= room)
		return 0;
	larger = realloc(table, PERIOD + bytes);
	if (!larger)
		return -ENOMEM;
	table = larger;
	if (!room)
		fill_period();
	for (size_t i = PERIOD + room; i < PERIOD + bytes; i++)
		table[i] = table[i - PERIOD];
	room = bytes;
	return 0;
}

const uint8_t *perf_pattern(uint32_t index, enum perf_direction direction, uint64_t offset)
{
	return table + (offset + index * 7919ULL + (uint64_t)direction * 31337) % PERIOD;
}
