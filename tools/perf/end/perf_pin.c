/* SPDX-License-Identifier: MIT */
/* --cpu: which CPUs the two ends may run on. */
#include "tools/perf/perf.h"

#include <stdlib.h>
#include <string.h>

/* "3" or "0-2", up to `end`: 0, or -1. */
static int parse_range(const char *text, const char *end, cpu_set_t *set)
{
	unsigned long first, last;
	char *rest;

	CPU_ZERO(set);
	if (*text < '0' || *text > '9')
		return -1;
	first = last = strtoul(text, &rest, 10);
	if (*rest == '-') {
		if (rest[1] < '0' || rest[1] > '9')
			return -1;
		last = strtoul(rest + 1, &rest, 10);
	}
	if (rest != end || first > last || last >= CPU_SETSIZE)
		return -1;
	for (; first <= last; first++)
		CPU_SET(first, set);
	return 0;
}

/* The first CPU of the set that this process may not use, or -1. */
static int forbidden(const cpu_set_t *set, const cpu_set_t *allowed)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, set) && !CPU_ISSET(cpu, allowed))
			return cpu;
	return -1;
}

static int check(const cpu_set_t *set, char why[SHUNT_WHY_MAX])
{
	cpu_set_t allowed;
	int cpu;

	if (sched_getaffinity(0, sizeof(allowed), &allowed)) {
		snprintf(why, SHUNT_WHY_MAX, "the CPUs of this process are not known: %m");
		return -1;
	}
	cpu = forbidden(set, &allowed);
	if (cpu < 0)
		return 0;
	snprintf(why, SHUNT_WHY_MAX,
		 "CPU %d is not there or not for this process, which may use %d; see nproc(1) and "
		 "taskset -p $$",
		 cpu, CPU_COUNT(&allowed));
	return -1;
}

int perf_pin_parse(struct perf_pin *pin, const char *text, char why[SHUNT_WHY_MAX])
{
	const char *comma = strchrnul(text, ','), *end = text + strlen(text);

	if (strlen(text) >= sizeof(pin->text) || parse_range(text, comma, &pin->server) ||
	    parse_range(*comma ? comma + 1 : text, end, &pin->client)) {
		snprintf(why, SHUNT_WHY_MAX,
			 "CPUs are SERVER[,CLIENT], each a number or a range as in 0,1 or 0,2-3");
		return -1;
	}
	pin->given = true;
	strcpy(pin->text, text);
	return check(&pin->server, why) || check(&pin->client, why) ? -1 : 0;
}
