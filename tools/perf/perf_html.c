/* SPDX-License-Identifier: MIT */
/* The result of shunt perf as a page. Models that differ in their sizes alone are points of lines; the others are bars. */
#include "tools/perf/perf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/chart.h"

static const char who[] = "shunt perf";

#define LEAST_POINTS 3 /* of a line */

static struct shunt_spread spread_of(const struct perf_result *result, size_t transport,
				     size_t flow, enum perf_metric metric)
{
	struct shunt_spread spread = { INFINITY,
				       perf_result_median(result, transport, flow, metric), 0 };

	for (int round = 0; round < result->rounds; round++) {
		double figure = perf_result_run(result, round, transport)->metrics[flow][metric];

		spread.min = fmin(spread.min, figure);
		spread.max = fmax(spread.max, figure);
	}
	return spread;
}

static size_t name_transports(const struct perf_result *result,
			      const char *names[PERF_TRANSPORTS_MAX])
{
	for (size_t i = 0; i < result->transports->count; i++)
		names[i] = result->transports->list[i].name;
	return result->transports->count;
}

/* ---- lines ---- */

static uint64_t size_of(const struct perf_result *result)
{
	return result->model->flows[0].sizes.request;
}

static size_t kind_length(const struct perf_result *result)
{
	return strcspn(result->model->name, ":@");
}

/* "@1000" of an open loop, or "". */
static const char *rate_of(const struct perf_result *result)
{
	return strchrnul(result->model->name, '@');
}

/* One flow, the name up to the first colon, and the rate are the same. */
static bool is_of_kind(const struct perf_result *result, const struct perf_result *first)
{
	size_t length = kind_length(first);

	return result->rounds && result->model->flow_count == 1 && kind_length(result) == length &&
	       !strncmp(result->model->name, first->model->name, length) &&
	       !strcmp(rate_of(result), rate_of(first));
}

static int compare_sizes(const void *a, const void *b)
{
	uint64_t x = size_of(*(const struct perf_result *const *)a),
		 y = size_of(*(const struct perf_result *const *)b);

	return (x > y) - (x < y);
}

/* The models of a kind by their sizes, each once; 0: too few for a line. */
static size_t find_points(const struct perf_result *results, size_t count,
			  const struct perf_result *first,
			  const struct perf_result *points[PERF_MODELS_MAX])
{
	size_t found = 0, kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_of_kind(&results[i], first))
			points[found++] = &results[i];
	qsort(points, found, sizeof(points[0]), compare_sizes);
	for (size_t i = 1; i < found; i++)
		if (size_of(points[i]) != size_of(points[kept]))
			points[++kept] = points[i];
	return kept + 1 < LEAST_POINTS ? 0 : kept + 1;
}

static void put_lines(struct shunt_page *page, const struct perf_result *const *points,
		      size_t count, enum perf_metric metric, const char *title)
{
	static struct shunt_spread values[PERF_TRANSPORTS_MAX * PERF_MODELS_MAX];
	const char *names[PERF_TRANSPORTS_MAX];
	size_t transports = name_transports(points[0], names);
	double x[PERF_MODELS_MAX];
	char text[PERF_NAME_MAX + 32];

	for (size_t i = 0; i < count; i++) {
		x[i] = (double)size_of(points[i]);
		for (size_t t = 0; t < transports; t++)
			values[t * count + i] = spread_of(points[i], t, 0, metric);
	}
	snprintf(text, sizeof(text), "%.*s%s: %s", (int)kind_length(points[0]),
		 points[0]->model->name, rate_of(points[0]), title);
	shunt_chart_lines(
		page, &(struct shunt_chart_lines) { .title = text,
						    .x_title = "bytes of a request",
						    .y_title = "medians, and the range of rounds",
						    .series = names,
						    .series_count = transports,
						    .x = x,
						    .x_count = count,
						    .values = values });
}

/* Each kind once, where its first model is. */
static void put_kinds(struct shunt_page *page, const struct perf_result *results, size_t count)
{
	const struct perf_result *points[PERF_MODELS_MAX];

	for (size_t i = 0; i < count; i++) {
		size_t found = find_points(results, count, &results[i], points), j = 0;

		while (j < i && !is_of_kind(&results[j], &results[i]))
			j++;
		if (!found || j < i)
			continue;
		put_lines(page, points, found, PERF_MBYTES, "megabytes/s");
		put_lines(page, points, found, PERF_P50, "median latency, us");
	}
}

/* ---- bars ---- */

static void put_bars(struct shunt_page *page, const struct perf_result *results, size_t count)
{
	const struct perf_result *points[PERF_MODELS_MAX];
	const char *names[PERF_TRANSPORTS_MAX];
	struct shunt_chart_bars chart = {
		.title = "operations/s",
		.unit = "medians, and the range of rounds; each row has its own scale",
		.series = names,
		.series_count = name_transports(&results[0], names),
	};

	for (size_t i = 0; i < count; i++) {
		if (!results[i].rounds || find_points(results, count, &results[i], points))
			continue;
		for (size_t flow = 0; flow < results[i].model->flow_count; flow++) {
			struct shunt_spread values[PERF_TRANSPORTS_MAX];
			char label[PERF_NAME_MAX + 32];

			for (size_t t = 0; t < chart.series_count; t++)
				values[t] = spread_of(&results[i], t, flow, PERF_RATE);
			shunt_chart_row(&chart, perf_label(results[i].model, flow, label), "",
					values);
		}
	}
	shunt_chart_bars(page, &chart);
}

/* ---- the table ---- */

static void put_figure(struct shunt_page *page, double figure)
{
	char text[16];

	if (isnan(figure))
		shunt_page_cell(page, "-");
	else if (figure < 100)
		shunt_page_cell(page, "%.2f", figure);
	else
		shunt_page_cell(page, "%s", shunt_figure_text(figure, text));
}

static void put_rows(struct shunt_page *page, const struct perf_result *result)
{
	static const enum perf_metric metrics[] = { PERF_RATE, PERF_MBYTES, PERF_P50,  PERF_P99,
						    PERF_P999, PERF_MAX,    PERF_RATIO };
	char label[PERF_NAME_MAX + 32], share_text[24];

	for (size_t flow = 0; flow < result->model->flow_count; flow++) {
		for (size_t t = 0; result->rounds && t < result->transports->count; t++) {
			const struct perf_transport *transport = &result->transports->list[t];
			struct shunt_share share = perf_result_share(result, t);

			shunt_page_row(page);
			shunt_page_cell(page, "%s", perf_label(result->model, flow, label));
			shunt_page_cell(page, "%s", transport->name);
			for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
				put_figure(page, perf_result_median(result, t, flow, metrics[i]));
			shunt_page_cell(page, "%s",
					transport->shunt ? shunt_share_text(&share, share_text) :
							   "-");
		}
	}
	if (result->failed) {
		shunt_page_row(page);
		shunt_page_cell(page, "%s", result->model->name);
		shunt_page_wide(page, 9, "failed: %s", result->why);
	}
}

int perf_html(const char *path, const struct perf_result *results, size_t count)
{
	struct shunt_page page;

	if (shunt_page_start(&page, who, path, "Models of traffic"))
		return -1;
	put_kinds(&page, results, count);
	put_bars(&page, results, count);
	shunt_page_table(
		&page, "Medians", "",
		"model|transport|#operations/s|#MB/s|#p50 us|#p99 us|#p99.9 us|#max us|#ratio to TCP|#on link");
	for (size_t i = 0; i < count; i++)
		put_rows(&page, &results[i]);
	shunt_page_table_end(&page, NULL);
	shunt_page_heading(&page, "This machine");
	shunt_host_lines(&results[0].setup->machine, shunt_page_say, &page);
	return shunt_page_finish(&page);
}
