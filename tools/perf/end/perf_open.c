/* SPDX-License-Identifier: MIT */
/* When the requests of an open loop are due: at equal distances, or as a Poisson process has them. */
#include "tools/perf/end/perf_open.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/end/perf_end.h"

static const char *const names[] = { "constant", "poisson" };

int perf_arrivals_parse(uint32_t *arrivals, const char *name)
{
	for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name))
			continue;
		*arrivals = i;
		return 0;
	}
	return -1;
}

const char *perf_arrivals_name(uint32_t arrivals)
{
	return names[arrivals];
}

void perf_open_text(const struct perf_open *open, char text[PERF_OPEN_TEXT_MAX])
{
	snprintf(text, PERF_OPEN_TEXT_MAX, "%s:%u", names[open->arrivals], open->rate);
}

int perf_open_parse(struct perf_open *open, const char *text)
{
	const char *colon = strchrnul(text, ':');
	char name[16];
	uint64_t rate;

	snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
	if (!*colon || perf_arrivals_parse(&open->arrivals, name) ||
	    perf_number(colon + 1, 0, PERF_RATE_MAX, &rate))
		return -1;
	open->rate = (uint32_t)rate;
	return 0;
}

/* 0 < x <= 1 */
static double uniform(struct perf_schedule *schedule)
{
	schedule->random ^= schedule->random << 13;
	schedule->random ^= schedule->random >> 7;
	schedule->random ^= schedule->random << 17;
	return (double)((schedule->random >> 11) + 1) / (double)(1ULL << 53);
}

static void set_next(struct perf_schedule *schedule)
{
	schedule->next = schedule->start + (uint64_t)schedule->at;
}

void perf_schedule_make(struct perf_schedule *schedule, const struct perf_open *open,
			uint64_t conns, uint64_t all_conns, uint64_t thread, uint64_t threads)
{
	if (!open->rate)
		return;
	schedule->open = true;
	schedule->arrivals = open->arrivals;
	schedule->gap = 1e9 / open->rate * (double)all_conns / (double)conns;
	schedule->at = schedule->gap * (double)thread / (double)threads;
	schedule->random = 88172645463325252ULL + thread * 0x9e3779b97f4a7c15ULL;
}

void perf_schedule_start(struct perf_schedule *schedule, uint64_t now)
{
	schedule->start = now;
	set_next(schedule);
}

void perf_schedule_advance(struct perf_schedule *schedule)
{
	schedule->at += schedule->arrivals == PERF_POISSON ?
				-log(uniform(schedule)) * schedule->gap :
				schedule->gap;
	set_next(schedule);
}
