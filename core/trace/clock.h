/* SPDX-License-Identifier: MIT */
/*
 * How far another host's CLOCK_MONOTONIC is from ours (XR-30). A question and its answer have four times. The answer's
 * way may have taken any part of the round trip, so the offset they give is off by half of it at most. The best of the
 * last questions counts: the shortest round trip, because queues only lengthen it. A sample gets worse with time, as the
 * two clocks drift.
 */
#ifndef SHUNT_CORE_TRACE_CLOCK_H
#define SHUNT_CORE_TRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define SHUNT_CLOCK_SAMPLES 16
#define SHUNT_CLOCK_DRIFT 5000 /* ns that two clocks may drift apart 1 ns in: 200 ppm */
#define SHUNT_CLOCK_TIME_MAX (1ull << 62) /* no time is later */

struct shunt_clock {
	uint32_t count, next; /* of the samples; where the next one goes */
	struct shunt_clock_sample {
		uint64_t at; /* ns of our clock: when the answer came */
		uint64_t round; /* ns of the round trip, without the other process's own time */
		int64_t offset; /* ours = theirs + offset */
	} samples[SHUNT_CLOCK_SAMPLES];
};

/* Asked at `asked`, answered at `now`, by our clock; heard and told by theirs. False: they cannot be right. */
bool shunt_clock_sample(struct shunt_clock *clock, uint64_t asked, uint64_t heard, uint64_t told,
			uint64_t now);
/* The best offset at `now`, and by how much it may be off. False: there is no sample. */
bool shunt_clock_read(const struct shunt_clock *clock, uint64_t now, int64_t *offset,
		      uint64_t *error);

#endif
