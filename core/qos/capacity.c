/* SPDX-License-Identifier: MIT */
#include "core/qos/capacity.h"

static uint64_t root(unsigned __int128 square)
{
	uint64_t value = 0;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t more = value | 1ull << bit;

		if ((unsigned __int128)more * more <= square)
			value = more;
	}
	return value;
}

void shunt_capacity_profile(const uint64_t *samples, size_t count, uint64_t *mean, uint64_t *sigma)
{
	unsigned __int128 sum = 0, squares = 0;

	*mean = *sigma = 0;
	if (!count)
		return;
	for (size_t i = 0; i < count; i++)
		sum += samples[i];
	*mean = (uint64_t)(sum / count);
	for (size_t i = 0; i < count; i++) {
		uint64_t off = samples[i] > *mean ? samples[i] - *mean : *mean - samples[i];

		squares += (unsigned __int128)off * off;
	}
	*sigma = root(squares / count);
}

void shunt_capacity_begin(struct shunt_capacity *capacity, uint64_t mean, uint64_t sigma)
{
	*capacity =
		(struct shunt_capacity) { .mean = mean, .sigma = sigma, .estimate = mean };
}

static uint64_t remember(struct shunt_capacity *capacity, uint64_t used)
{
	unsigned __int128 sum = 0;

	capacity->history[capacity->next] = used;
	capacity->next = (capacity->next + 1) % SHUNT_CAPACITY_PERIODS;
	if (capacity->count < SHUNT_CAPACITY_PERIODS)
		capacity->count++;
	for (uint32_t i = 0; i < capacity->count; i++)
		sum += capacity->history[i];
	return (uint64_t)(sum / capacity->count);
}

uint64_t shunt_capacity_step(struct shunt_capacity *capacity, uint64_t used)
{
	uint64_t estimate = capacity->estimate,
		 least = capacity->mean / 3 > capacity->sigma ?
				 capacity->mean - 3 * capacity->sigma :
				 0;

	if (used >= estimate - estimate / 200)
		capacity->estimate += estimate >= 100 ? estimate / 100 : 1;
	else if (used >= least)
		capacity->estimate = remember(capacity, used);
	return capacity->estimate;
}

bool shunt_capacity_unused(uint32_t *periods, uint64_t used, uint64_t reservation)
{
	if (used >= reservation)
		*periods = 0;
	else if (*periods <= SHUNT_CAPACITY_PERIODS)
		return ++*periods == SHUNT_CAPACITY_PERIODS;
	return false;
}
