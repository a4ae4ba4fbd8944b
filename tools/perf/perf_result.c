/* SPDX-License-Identifier: MIT */
/* All runs of a model, and their medians. */
#include "tools/perf/perf.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const struct perf_metric_row perf_metric_rows[PERF_METRIC_COUNT] = {
#define X(metric, key, shared) { key, shared },
	PERF_METRICS(X)
#undef X
};

int perf_result_init(struct perf_result *result, const struct perf_setup *setup,
		     const struct perf_model *model, const struct perf_transports *transports)
{
	int rounds = setup->spread > 0 ? setup->max_rounds : setup->rounds;

	result->setup = setup;
	result->model = model;
	result->transports = transports;
	result->runs = calloc((size_t)rounds * transports->count, sizeof(result->runs[0]));
	return result->runs ? 0 : -ENOMEM;
}

void perf_result_free(struct perf_result *result)
{
	free(result->runs);
	result->runs = NULL;
}

struct perf_run *perf_result_run(const struct perf_result *result, int round, size_t transport)
{
	return &result->runs[(size_t)round * result->transports->count + transport];
}

static double ratio(double figure, double base)
{
	return base > 0 ? figure / base : NAN;
}

void perf_result_compare(struct perf_result *result, int round)
{
	const struct perf_run *base = perf_result_run(result, round, result->transports->base);

	for (size_t t = 0; t < result->transports->count && result->transports->has_base; t++) {
		struct perf_run *run = perf_result_run(result, round, t);

		for (size_t f = 0; f < result->model->flow_count; f++)
			run->metrics[f][PERF_RATIO] = ratio(run->metrics[f][PERF_RATE],
							    base->metrics[f][PERF_RATE]);
	}
}

/* A round in which there was no such figure does not count. */
static double median_of(const struct perf_result *result, size_t transport, size_t flow,
			enum perf_metric metric)
{
	double values[PERF_ROUNDS_MAX];
	size_t count = 0;

	for (int round = 0; round < result->rounds; round++) {
		double value = perf_result_run(result, round, transport)->metrics[flow][metric];

		if (!isnan(value))
			values[count++] = value;
	}
	return count ? shunt_spread_of(values, count).median : NAN;
}

/* NAN where there are fewer than two rounds with such a figure. */
static double relative_deviation(const struct perf_result *result, size_t transport, size_t flow,
				 enum perf_metric metric)
{
	double sum = 0, squares = 0, mean;
	int count = 0;

	for (int round = 0; round < result->rounds; round++) {
		double value = perf_result_run(result, round, transport)->metrics[flow][metric];

		if (isnan(value))
			continue;
		sum += value;
		count++;
	}
	mean = sum / count;
	for (int round = 0; round < result->rounds; round++) {
		double value = perf_result_run(result, round, transport)->metrics[flow][metric];

		if (!isnan(value))
			squares += (value - mean) * (value - mean);
	}
	return count < 2 || !(mean > 0) ? NAN : 100 * sqrt(squares / (count - 1)) / mean;
}

double perf_result_median(const struct perf_result *result, size_t transport, size_t flow,
			  enum perf_metric metric)
{
	if (metric == PERF_SPREAD)
		return relative_deviation(result, transport, flow,
					  result->model->open.rate ? PERF_P50 : PERF_RATE);
	if (metric != PERF_RATIO)
		return median_of(result, transport, flow, metric);
	if (!result->transports->has_base)
		return NAN;
	return ratio(median_of(result, transport, flow, PERF_RATE),
		     median_of(result, result->transports->base, flow, PERF_RATE));
}

/* NAN is not. */
static bool is_settled(const struct perf_result *result)
{
	for (size_t t = 0; t < result->transports->count; t++)
		for (size_t f = 0; f < result->model->flow_count; f++)
			if (!(perf_result_median(result, t, f, PERF_SPREAD) <
			      result->setup->spread))
				return false;
	return true;
}

bool perf_result_more(struct perf_result *result)
{
	const struct perf_setup *setup = result->setup;

	if (result->rounds < setup->rounds)
		return true;
	if (!(setup->spread > 0))
		result->ended = PERF_ENDED_COUNT;
	else if (is_settled(result))
		result->ended = PERF_ENDED_SPREAD;
	else if (result->rounds == setup->max_rounds)
		result->ended = PERF_ENDED_LIMIT;
	else
		return true;
	return false;
}

const char *perf_ended_text(enum perf_end_reason ended)
{
	static const char *const texts[] = { "early", "count", "spread", "limit" };

	return texts[ended];
}

struct shunt_share perf_result_share(const struct perf_result *result, size_t transport)
{
	struct shunt_share worst = perf_result_run(result, 0, transport)->share;

	for (int round = 1; round < result->rounds; round++)
		shunt_share_worse(&worst, &perf_result_run(result, round, transport)->share);
	return worst;
}

const char *perf_label(const struct perf_model *model, size_t flow, char buf[PERF_NAME_MAX + 32])
{
	const char *name = model->flow_names[flow];

	if (model->cluster == PERF_CLUSTER_GIVEN)
		snprintf(buf, PERF_NAME_MAX + 32, "%s%s%s", model->name, *name ? " " : "", name);
	else
		snprintf(buf, PERF_NAME_MAX + 32, "%s (%u)", model->name, model->flows[flow].burst);
	return buf;
}
