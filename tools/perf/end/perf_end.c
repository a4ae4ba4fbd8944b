/* SPDX-License-Identifier: MIT */
/* shunt perf-end: one end of a measurement of shunt perf. Not for people. */
#include "tools/perf/end/perf_end.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/qos/perf_qos.h"
#include "tools/shunt.h"

uint64_t perf_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Possibly from one of several threads, so nothing is cleaned up. */
void perf_end_fail(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(status);
}

struct perf_usage perf_usage_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct perf_usage){
		.cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		.switches = (double)usage.ru_nvcsw,
	};
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int shunt_perf_end(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} ends[] = { { "server", perf_server },
		     { "open-server", perf_open_server },
		     { "client", perf_client },
		     { "qos", perf_qos_client } };

	for (size_t i = 0; argc >= 2 && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (strcmp(argv[1], ends[i].name))
			continue;
		raise_descriptor_limit();
		if (perf_pattern_make(0))
			perf_end_fail(PERF_END_FAILED, "out of memory");
		return ends[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "shunt perf-end: started by `shunt perf` only\n");
	return EXIT_USAGE;
}
