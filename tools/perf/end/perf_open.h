/* SPDX-License-Identifier: MIT */
/*
 * An open loop: when requests are due, whatever became of those before. Requests that are due wait
 * here, so a pause of the server shows in the latencies of all that were due in it.
 */
#ifndef SHUNT_TOOLS_PERF_OPEN_H
#define SHUNT_TOOLS_PERF_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#define PERF_RATE_MAX 100000000
#define PERF_LATE_NS 1000000	/* later than this a request was not sent in time */

enum { PERF_CONSTANT, PERF_POISSON };

/* The wanted loop; a closed one where the rate is 0. */
struct perf_open {
	uint32_t rate;		/* requests a second of all connections together */
	uint32_t arrivals;
};

#define PERF_OPEN_TEXT_MAX 24
/* As an argument of the client, and back: 0, or -1. */
void perf_open_text(const struct perf_open *open, char text[PERF_OPEN_TEXT_MAX]);
int perf_open_parse(struct perf_open *open, const char *text);
/* "constant" or "poisson": 0, or -1. */
int perf_arrivals_parse(uint32_t *arrivals, const char *name);
const char *perf_arrivals_name(uint32_t arrivals);

/* Of one thread. */
struct perf_schedule {
	bool open;
	uint32_t arrivals;
	double gap;		/* ns from one to the next, in the mean */
	double at;		/* ns from the start to the next */
	uint64_t start;		/* CLOCK_MONOTONIC, ns */
	uint64_t next;		/* the same clock: when the next is due */
	uint64_t random;
	uint64_t late, unsent;	/* of those due in the measured time */
};

/* The part of a thread: its connections of all; threads of an equal part are as far apart as can be. */
void perf_schedule_make(struct perf_schedule *schedule, const struct perf_open *open,
			uint64_t conns, uint64_t all_conns, uint64_t thread, uint64_t threads);
void perf_schedule_start(struct perf_schedule *schedule, uint64_t now);
/* The next one has been sent. */
void perf_schedule_advance(struct perf_schedule *schedule);

#endif
