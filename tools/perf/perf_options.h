/* SPDX-License-Identifier: MIT */
/* The wishes of a command line of shunt perf. */
#ifndef SHUNT_TOOLS_PERF_OPTIONS_H
#define SHUNT_TOOLS_PERF_OPTIONS_H

#include "tools/perf/perf.h"

#define PERF_RATES_MAX 8

struct perf_options {
	struct perf_transports transports;
	struct perf_setup setup;
	uint32_t depth;
	bool serve;			/* nothing is measured here; `to` is where */
	const char *to;			/* the server of another host, or NULL */
	const char *csv_path, *json_path, *plot_path, *html_path;
	FILE *csv, *json;
	uint32_t rates[PERF_RATES_MAX], arrivals;
	size_t rate_count;
	struct perf_model models[PERF_MODELS_MAX];
	size_t model_count;
};

/* All zero at first. 0, or the exit status after saying what is wrong. */
int perf_options_parse(struct perf_options *options, int argc, char **argv);

#endif
