/* SPDX-License-Identifier: MIT */
/*
 * Buffers, and loops over their cache lines. All three orders are one loop over a list of lines
 * that is made before the measurement. So they differ in their cache misses only. The list itself
 * costs four bytes for each line of 64.
 */
#include "tools/perf/end/perf_work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/host.h"

/* ---- orders ---- */

static void make_stride(struct perf_order *order)
{
	size_t next = 0;

	for (uint32_t first = 0; first < PERF_STRIDE; first++)
		for (uint32_t line = first; line < order->count; line += PERF_STRIDE)
			order->lines[next++] = line;
}

/* Fisher and Yates, from a fixed seed. */
static void make_random(struct perf_order *order)
{
	uint64_t x = 88172645463325252ULL;

	for (size_t left = order->count; left > 1; left--) {
		uint32_t last = order->lines[left - 1];
		size_t other;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		other = x % left;
		order->lines[left - 1] = order->lines[other];
		order->lines[other] = last;
	}
}

int perf_order_make(struct perf_order *order, size_t bytes, unsigned int access)
{
	order->bytes = bytes;
	order->count = (bytes + PERF_LINE - 1) / PERF_LINE;
	order->lines = malloc((order->count + 1) * sizeof(order->lines[0]));
	if (!order->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < order->count; i++)
		order->lines[i] = i;
	if (access == PERF_ACCESS_STRIDE)
		make_stride(order);
	else if (access == PERF_ACCESS_RANDOM)
		make_random(order);
	return 0;
}

void perf_order_free(struct perf_order *order)
{
	free(order->lines);
	order->lines = NULL;
}

/* ---- buffers ---- */

size_t perf_buffers_fresh(void)
{
	return 2 * shunt_host_last_level();
}

int perf_buffers_make(struct perf_buffers *buffers, size_t bytes, size_t set,
		      const uint8_t *content)
{
	buffers->slot = (bytes + PERF_LINE - 1) / PERF_LINE * PERF_LINE;
	buffers->count = set ? set / buffers->slot + 2 : 1;
	buffers->next = 0;
	buffers->base = aligned_alloc(4096, (buffers->slot * buffers->count + 4095) / 4096 * 4096);
	if (!buffers->base)
		return -ENOMEM;
	for (size_t i = 0; i < buffers->count; i++)
		memcpy(buffers->base + i * buffers->slot, content, bytes);
	return 0;
}

uint8_t *perf_buffers_take(struct perf_buffers *buffers)
{
	uint8_t *bytes = buffers->base + buffers->next * buffers->slot;

	if (++buffers->next == buffers->count)
		buffers->next = 0;
	return bytes;
}

void perf_buffers_free(struct perf_buffers *buffers)
{
	free(buffers->base);
	buffers->base = NULL;
}

/* ---- lines ---- */

static void write_marks(uint8_t *bytes, const struct perf_order *order, uint64_t message)
{
	for (size_t i = 0; i < order->count; i++)
		bytes[(size_t)order->lines[i] * PERF_LINE] = perf_mark(message, order->lines[i]);
}

static void read_lines(const uint8_t *bytes, const struct perf_order *order)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < order->count; i++)
		sum += bytes[(size_t)order->lines[i] * PERF_LINE];
	/* The sum is wanted, as far as the compiler knows. */
	__asm__ volatile("" : : "r"(sum));
}

void perf_touch(uint8_t *bytes, const struct perf_order *order, bool write, uint64_t message)
{
	if (write)
		write_marks(bytes, order, message);
	else
		read_lines(bytes, order);
}

void perf_scan(uint8_t *bytes, const struct perf_order *order, bool write)
{
	if (write)
		write_marks(bytes, order, 0);
	else
		read_lines(bytes, order);
}

static bool is_line(const uint8_t *bytes, const uint8_t *right, size_t count, bool marked,
		    uint8_t mark)
{
	if (bytes[0] != (marked ? mark : right[0]))
		return false;
	return !memcmp(bytes + 1, right + 1, count - 1);
}

static size_t find_wrong(const uint8_t *bytes, const uint8_t *right, size_t count, bool marked,
			 uint8_t mark)
{
	size_t at = 0;

	if (!marked || bytes[0] == mark)
		at = marked;
	else
		return 0;
	while (at < count && bytes[at] == right[at])
		at++;
	return at;
}

size_t perf_compare(const uint8_t *bytes, const uint8_t *right, const struct perf_order *order,
		    bool marked, uint64_t message)
{
	for (size_t i = 0; i < order->count; i++) {
		size_t at = (size_t)order->lines[i] * PERF_LINE, count = order->bytes - at;
		uint8_t mark = perf_mark(message, order->lines[i]);

		if (count > PERF_LINE)
			count = PERF_LINE;
		if (!is_line(bytes + at, right + at, count, marked, mark))
			return at + find_wrong(bytes + at, right + at, count, marked, mark);
	}
	return order->bytes;
}
