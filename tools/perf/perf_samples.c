/* SPDX-License-Identifier: MIT */
/* Latencies, each of them as long as there is room, and their percentiles. */
#include "tools/perf/end/perf_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int perf_samples_init(struct perf_samples *samples, size_t room)
{
	memset(samples, 0, sizeof(*samples));
	samples->ns = malloc(room * sizeof(samples->ns[0]));
	if (!samples->ns)
		return -ENOMEM;
	/* No page shall be touched for the first time while time is taken. */
	memset(samples->ns, 0xff, room * sizeof(samples->ns[0]));
	samples->room = room;
	samples->random = 88172645463325252ULL;
	return 0;
}

static uint64_t next_random(struct perf_samples *samples)
{
	samples->random ^= samples->random << 13;
	samples->random ^= samples->random >> 7;
	samples->random ^= samples->random << 17;
	return samples->random;
}

/* Past the room, Vitter's algorithm R: each latency seen is kept with the same probability. */
void perf_samples_add(struct perf_samples *samples, uint64_t ns)
{
	uint64_t slot = samples->seen++;

	if (ns > samples->max)
		samples->max = ns;
	if (slot < samples->room)
		samples->kept++;
	else
		slot = next_random(samples) % samples->seen;
	if (slot < samples->room)
		samples->ns[slot] = ns;
}

/* Of each the same part, so that a thread which kept all does not outweigh one which could not. */
int perf_samples_merge(struct perf_samples *into, const struct perf_samples *const from[],
		       size_t count)
{
	size_t room = 1;
	double part = 1;

	for (size_t i = 0; i < count; i++) {
		room += from[i]->kept;
		if (from[i]->seen && part > (double)from[i]->kept / (double)from[i]->seen)
			part = (double)from[i]->kept / (double)from[i]->seen;
	}
	if (perf_samples_init(into, room))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		size_t take = (size_t)((double)from[i]->seen * part + 0.5);

		if (take > from[i]->kept)
			take = from[i]->kept;
		if (!take)
			continue;
		memcpy(into->ns + into->kept, from[i]->ns, take * sizeof(into->ns[0]));
		into->kept += take;
		into->seen += from[i]->seen;
		if (from[i]->max > into->max)
			into->max = from[i]->max;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void perf_samples_sort(struct perf_samples *samples)
{
	qsort(samples->ns, samples->kept, sizeof(samples->ns[0]), compare);
}

uint64_t perf_samples_rank(const struct perf_samples *samples, double p)
{
	double exact = p * (double)samples->kept;
	size_t rank = (size_t)exact;

	if ((double)rank < exact)
		rank++;
	return samples->ns[rank ? rank - 1 : 0];
}

void perf_samples_free(struct perf_samples *samples)
{
	free(samples->ns);
	samples->ns = NULL;
}
