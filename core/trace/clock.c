/* SPDX-License-Identifier: MIT */
#include "core/trace/clock.h"

bool shunt_clock_sample(struct shunt_clock *clock, uint64_t asked, uint64_t heard, uint64_t told,
			uint64_t now)
{
	struct shunt_clock_sample *sample = &clock->samples[clock->next];

	if (now < asked || told < heard || told - heard > now - asked ||
	    told > SHUNT_CLOCK_TIME_MAX || now > SHUNT_CLOCK_TIME_MAX)
		return false;
	/* The middle of the question's way and the answer's: neither sum has more than 63 bits. */
	*sample = (struct shunt_clock_sample) {
		.at = now,
		.round = now - asked - (told - heard),
		.offset = (int64_t)(asked + (now - asked) / 2) -
			  (int64_t)(heard + (told - heard) / 2),
	};
	clock->next = (clock->next + 1) % SHUNT_CLOCK_SAMPLES;
	if (clock->count < SHUNT_CLOCK_SAMPLES)
		clock->count++;
	return true;
}

bool shunt_clock_read(const struct shunt_clock *clock, uint64_t now, int64_t *offset,
		      uint64_t *error)
{
	*error = UINT64_MAX;
	for (uint32_t i = 0; i < clock->count; i++) {
		const struct shunt_clock_sample *sample = &clock->samples[i];
		uint64_t age = now > sample->at ? now - sample->at : 0;
		uint64_t off = sample->round / 2 + 1 + age / SHUNT_CLOCK_DRIFT;

		if (off >= *error)
			continue;
		*error = off;
		*offset = sample->offset;
	}
	return clock->count > 0;
}
