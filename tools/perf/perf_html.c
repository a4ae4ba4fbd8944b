/* SPDX-License-Identifier: MIT */
/* The result of shunt perf as a page. Models that differ in their sizes alone are points of lines; the others are bars. */
#include "tools/perf/perf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/chart.h"
#include "tools/common/html.h"

static const char who[] = "shunt perf";

#define LEAST_POINTS 3 /* of a line */
#define ROWS_MAX (PERF_MODELS_MAX * PERF_FLOWS_MAX)

static struct shunt_chart_value value_of(const struct perf_result *result, size_t transport,
					 size_t flow, enum perf_metric metric)
{
	struct shunt_chart_value value = { INFINITY,
					   perf_result_median(result, transport, flow, metric), 0 };

	for (int round = 0; round < result->rounds; round++) {
		double figure = perf_result_run(result, round, transport)->metrics[flow][metric];

		value.min = fmin(value.min, figure);
		value.max = fmax(value.max, figure);
	}
	return value;
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

/* The models of a kind by their sizes, each once. */
static size_t find_points(const struct perf_result *results, size_t count,
			  const struct perf_result *first,
			  const struct perf_result *points[PERF_MODELS_MAX])
{
	size_t found = 0, kept = 0;

	for (size_t i = 0; i < count; i++)
		if (is_of_kind(&results[i], first))
			points[found++] = &results[i];
	if (!found)
		return 0;
	qsort(points, found, sizeof(points[0]), compare_sizes);
	for (size_t i = 1; i < found; i++)
		if (size_of(points[i]) != size_of(points[kept]))
			points[++kept] = points[i];
	return kept + 1;
}

static void put_lines(FILE *file, const struct perf_result *const *points, size_t count,
		      enum perf_metric metric, const char *title)
{
	static struct shunt_chart_value values[PERF_TRANSPORTS_MAX * PERF_MODELS_MAX];
	const char *names[PERF_TRANSPORTS_MAX];
	size_t transports = name_transports(points[0], names);
	double x[PERF_MODELS_MAX];
	char text[PERF_NAME_MAX + 32];
	bool known = false;

	for (size_t i = 0; i < count; i++) {
		x[i] = (double)size_of(points[i]);
		for (size_t t = 0; t < transports; t++) {
			values[t * count + i] = value_of(points[i], t, 0, metric);
			known |= !isnan(values[t * count + i].middle);
		}
	}
	if (!known)
		return;
	snprintf(text, sizeof(text), "%.*s%s: %s", (int)kind_length(points[0]),
		 points[0]->model->name, rate_of(points[0]), title);
	shunt_chart_lines(
		file, &(struct shunt_chart_lines) { .title = text,
						    .x_title = "bytes of a request",
						    .y_title = "medians, and the range of rounds",
						    .series = names,
						    .series_count = transports,
						    .x = x,
						    .x_count = count,
						    .values = values });
}

static bool has_line(const struct perf_result *results, size_t count,
		     const struct perf_result *result)
{
	const struct perf_result *points[PERF_MODELS_MAX];

	return result->model->flow_count == 1 &&
	       find_points(results, count, result, points) >= LEAST_POINTS;
}

/* Each kind once, where its first model is. */
static void put_kinds(FILE *file, const struct perf_result *results, size_t count)
{
	const struct perf_result *points[PERF_MODELS_MAX];

	for (size_t i = 0; i < count; i++) {
		bool again = !has_line(results, count, &results[i]);

		for (size_t j = 0; j < i; j++)
			again |= is_of_kind(&results[j], &results[i]);
		if (again)
			continue;
		put_lines(file, points, find_points(results, count, &results[i], points),
			  PERF_MBYTES, "megabytes/s");
		put_lines(file, points, find_points(results, count, &results[i], points), PERF_P50,
			  "median latency, us");
	}
}

/* ---- bars ---- */

static void put_bars(FILE *file, const struct perf_result *results, size_t count)
{
	static struct shunt_chart_value values[ROWS_MAX * PERF_TRANSPORTS_MAX];
	static char labels[ROWS_MAX][PERF_NAME_MAX + 32];
	const char *names[PERF_TRANSPORTS_MAX], *rows[ROWS_MAX];
	size_t transports = name_transports(&results[0], names), row = 0;

	for (size_t i = 0; i < count; i++) {
		if (!results[i].rounds || has_line(results, count, &results[i]))
			continue;
		for (size_t flow = 0; flow < results[i].model->flow_count; flow++, row++) {
			rows[row] = perf_label(results[i].model, flow, labels[row]);
			for (size_t t = 0; t < transports; t++)
				values[row * transports + t] = value_of(&results[i], t, flow,
									PERF_RATE);
		}
	}
	if (row)
		shunt_chart_bars(
			file,
			&(struct shunt_chart_bars) {
				.title = "operations/s",
				.unit = "medians, and the range of rounds; each row has its own scale",
				.series = names,
				.series_count = transports,
				.rows = rows,
				.row_count = row,
				.values = values,
				.each = 1 });
}

/* ---- the table ---- */

static void put_figure(FILE *file, const struct perf_result *result, size_t transport, size_t flow,
		       enum perf_metric metric)
{
	double figure = perf_result_median(result, transport, flow, metric);
	char text[16];

	if (isnan(figure))
		snprintf(text, sizeof(text), "-");
	else if (figure < 100)
		snprintf(text, sizeof(text), "%.2f", figure);
	else
		shunt_figure_text(figure, text);
	shunt_html_cell(file, "n", text);
}

static void put_rows(FILE *file, const struct perf_result *result)
{
	static const enum perf_metric metrics[] = { PERF_RATE, PERF_MBYTES, PERF_P50,  PERF_P99,
						    PERF_P999, PERF_MAX,    PERF_RATIO };
	char label[PERF_NAME_MAX + 32], share_text[24];

	for (size_t flow = 0; flow < result->model->flow_count; flow++) {
		for (size_t t = 0; result->rounds && t < result->transports->count; t++) {
			struct shunt_share share = perf_result_share(result, t);

			fputs("<tr>", file);
			shunt_html_cell(file, "", perf_label(result->model, flow, label));
			shunt_html_cell(file, "", result->transports->list[t].name);
			for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++)
				put_figure(file, result, t, flow, metrics[i]);
			shunt_html_cell(file, "n",
					result->transports->list[t].shunt ?
						shunt_share_text(&share, share_text) :
						"-");
			fputs("</tr>\n", file);
		}
	}
	if (result->failed) {
		fputs("<tr>", file);
		shunt_html_cell(file, "", result->model->name);
		fputs("<td colspan=\"9\">failed: ", file);
		shunt_html_text(file, result->why);
		fputs("</td></tr>\n", file);
	}
}

static void put_item(void *file, const char *text)
{
	fputs("<li>", file);
	shunt_html_text(file, text);
	fputs("</li>\n", file);
}

int perf_html(const char *path, const struct perf_result *results, size_t count)
{
	static const char *const head[] = { "model",	"transport", "operations/s",
					    "MB/s",	"p50 us",    "p99 us",
					    "p99.9 us", "max us",    "ratio to TCP",
					    "on link",	NULL };
	FILE *file = shunt_html_begin(who, path, "Models of traffic");

	if (!file)
		return -1;
	put_kinds(file, results, count);
	put_bars(file, results, count);
	fputs("<h2>Medians</h2>\n<div class=\"wide\"><table>\n", file);
	shunt_html_head(file, head);
	for (size_t i = 0; i < count; i++)
		put_rows(file, &results[i]);
	fputs("</table></div>\n<h2>This machine</h2>\n<ul>\n", file);
	shunt_host_lines(&results[0].setup->machine, put_item, file);
	fputs("</ul>\n", file);
	return shunt_html_end(who, path, file);
}
