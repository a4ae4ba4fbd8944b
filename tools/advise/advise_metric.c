/* SPDX-License-Identifier: MIT */
/* The figure of a run: of known programs, and by a user's expression, from what the command has printed. */
#include "tools/advise/advise.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER "([0-9]+[0-9.]*)"

/*
 * Programs whose runs last as long as they are told to, or print a figure that is better than their time. Rows of a program
 * follow each other; the first that matches counts. A second group is a factor: K, M, G or T.
 */
static const struct advise_metric known[] = {
	{ "redis-benchmark", NUMBER " requests per second", "requests/s", false, true },
	{ "redis-benchmark", "^\"[^\"]*\",\"" NUMBER "\"", "requests/s", false, true }, /* --csv */
	{ "valkey-benchmark", NUMBER " requests per second", "requests/s", false, true },
	{ "wrk", "Requests/sec: +" NUMBER, "requests/s", false, true },
	{ "ab", "Requests per second: +" NUMBER, "requests/s", false, true },
	{ "pgbench", "^tps = " NUMBER, "transactions/s", false, true },
	{ "iperf3", "\"sum_received\":[^}]*\"bits_per_second\":[[:space:]]*([0-9.e+]+)", "bit/s",
	  false, false },
	{ "iperf3", "^\\[SUM\\].* " NUMBER " ([KMGT]?)bits/sec.*receiver", "bit/s", false, true },
	{ "iperf3", " " NUMBER " ([KMGT]?)bits/sec.*receiver", "bit/s", false, true },
	{ "memaslap", "TPS: " NUMBER, "operations/s", false, true },
	{ "memcaslap", "TPS: " NUMBER, "operations/s", false, true },
	{ "memcslap", "Took " NUMBER " seconds", "s", true, true },
};
static const size_t known_count = sizeof(known) / sizeof(known[0]);

/* They run the program that is named further behind. */
static const char *const wrappers[] = { "env",	   "nice", "taskset", "timeout", "stdbuf",
					"numactl", "chrt", "ionice",  "setarch" };

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static size_t find_program(const char *name, const struct advise_metric **rows)
{
	size_t count = 0;

	for (size_t i = 0; i < known_count; i++)
		if (!strcmp(known[i].program, name) && !count++)
			*rows = &known[i];
	return count;
}

size_t advise_metric_find(char *const *argv, const struct advise_metric **rows)
{
	const char *name = base_of(argv[0]);
	size_t count = find_program(name, rows);
	bool wraps = false;

	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		wraps |= !strcmp(name, wrappers[i]);
	for (size_t i = 1; wraps && !count && argv[i]; i++)
		count = find_program(base_of(argv[i]), rows);
	return count;
}

const char *advise_metric_check(const char *pattern, char why[SHUNT_WHY_MAX])
{
	regex_t expression;
	int rc = regcomp(&expression, pattern, REG_EXTENDED);

	if (!rc) {
		regfree(&expression);
		return NULL;
	}
	regerror(rc, &expression, why, SHUNT_WHY_MAX);
	return why;
}

static double factor_of(char letter)
{
	switch (letter) {
	case 'K':
		return 1e3;
	case 'M':
		return 1e6;
	case 'G':
		return 1e9;
	case 'T':
		return 1e12;
	default:
		return 1;
	}
}

/* The number of a match, or 0. Without a group it is the match. */
static double number_in(const char *text, const regmatch_t groups[3])
{
	double number = strtod(text + groups[groups[1].rm_so >= 0].rm_so, NULL);

	if (groups[2].rm_so >= 0 && groups[2].rm_eo > groups[2].rm_so)
		number *= factor_of(text[groups[2].rm_so]);
	return isfinite(number) ? number : 0;
}

static int read_row(const struct advise_metric *row, const char *text, double *figure)
{
	regmatch_t groups[3];
	regex_t expression;
	double sum = 0;
	int count = 0;

	if (regcomp(&expression, row->pattern, REG_EXTENDED | (row->lines ? REG_NEWLINE : 0)))
		return -1;
	for (bool first = true; !regexec(&expression, text, 3, groups, first ? 0 : REG_NOTBOL);
	     first = false) {
		double number = number_in(text, groups);

		if (number > 0) {
			sum += log(number);
			count++;
		}
		text += groups[0].rm_eo > 0 ? groups[0].rm_eo : 1;
		if (!*text)
			break;
	}
	regfree(&expression);
	if (!count)
		return -1;
	*figure = exp(sum / count);
	return 0;
}

int advise_metric_read(const struct advise_metric *rows, size_t count, const char *text,
		       double *figure)
{
	for (size_t i = 0; i < count; i++)
		if (!read_row(&rows[i], text, figure))
			return 0;
	return -1;
}
