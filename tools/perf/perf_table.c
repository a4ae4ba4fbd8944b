/* SPDX-License-Identifier: MIT */
/* The table that shunt perf prints. */
#include "tools/perf/perf.h"

#include <math.h>

#include <string.h>

#include "tools/common/output.h"

#define CELL_MAX 24
#define LABEL 22 /* columns; a longer one has a line to itself */

static const struct perf_work no_work;

static const char *figure_cell(double figure, char cell[CELL_MAX])
{
	char text[16];

	snprintf(cell, CELL_MAX, "%s", isnan(figure) ? "-" : shunt_figure_text(figure, text));
	return cell;
}

/* Microseconds: 0.31, 59.8, 1234. */
static const char *latency_cell(double us, char cell[CELL_MAX])
{
	if (isnan(us))
		snprintf(cell, CELL_MAX, "-");
	else
		snprintf(cell, CELL_MAX, "%.*f", us < 10 ? 2 : us < 1000 ? 1 : 0, us);
	return cell;
}

static const char *each_cell(double figure, double operations, char cell[CELL_MAX])
{
	double each = figure / operations;

	if (!isfinite(each))
		snprintf(cell, CELL_MAX, "-");
	else
		snprintf(cell, CELL_MAX, "%.*f", each < 10 ? 3 : 1, each);
	return cell;
}

static const char *ratio_cell(double ratio, char cell[CELL_MAX])
{
	snprintf(cell, CELL_MAX, isnan(ratio) ? "-" : "%.2fx", ratio);
	return cell;
}

/* A model's name stands before its first transport. */
static void print_label(const struct perf_result *result, size_t transport, size_t flow)
{
	char label[PERF_NAME_MAX + 32] = "";

	if (!transport)
		perf_label(result->model, flow, label);
	if (strlen(label) > LABEL) {
		puts(label);
		label[0] = '\0';
	}
	printf("%-*s %-10s", LABEL, label, result->transports->list[transport].name);
}

static void print_flow(const struct perf_result *result, size_t transport, size_t flow)
{
	char cells[8][CELL_MAX];

	print_label(result, transport, flow);
#define MEDIAN(metric) perf_result_median(result, transport, flow, metric)
	printf(" %7s %7s %7s %7s %7s %7s %7s %8s\n", figure_cell(MEDIAN(PERF_RATE), cells[0]),
	       figure_cell(MEDIAN(PERF_MBYTES), cells[1]), latency_cell(MEDIAN(PERF_P50), cells[2]),
	       latency_cell(MEDIAN(PERF_P90), cells[3]), latency_cell(MEDIAN(PERF_P99), cells[4]),
	       latency_cell(MEDIAN(PERF_P999), cells[5]), latency_cell(MEDIAN(PERF_MAX), cells[6]),
	       ratio_cell(MEDIAN(PERF_RATIO), cells[7]));
#undef MEDIAN
}

static const char *spread_cell(double percent, char cell[CELL_MAX])
{
	snprintf(cell, CELL_MAX, isnan(percent) ? "-" : "%.1f%%", percent);
	return cell;
}

/* The flows of a model have these in common, but for the spread, which is the first's. */
static void print_costs(const struct perf_result *result, size_t transport)
{
	double operations = perf_result_median(result, transport, 0, PERF_RUN_OPERATIONS);
	struct shunt_share share = perf_result_share(result, transport);
	char link[24], cells[7][CELL_MAX];

	print_label(result, transport, 0);
#define MEDIAN(metric) perf_result_median(result, transport, 0, metric)
	printf(" %9s %7s %7s %8s %7s %7s %6s %7s\n",
	       result->transports->list[transport].shunt ? shunt_share_text(&share, link) : "-",
	       each_cell(MEDIAN(PERF_WR), operations, cells[0]),
	       each_cell(MEDIAN(PERF_DOORBELLS), operations, cells[1]),
	       figure_cell(MEDIAN(PERF_PER_WR), cells[2]),
	       each_cell(MEDIAN(PERF_EVENTS), operations, cells[3]),
	       each_cell(MEDIAN(PERF_CPU) * 1e6, operations, cells[4]),
	       each_cell(MEDIAN(PERF_SWITCHES), operations, cells[5]),
	       spread_cell(MEDIAN(PERF_SPREAD), cells[6]));
#undef MEDIAN
}

static void print_flows(const struct perf_result *result)
{
	char label[PERF_NAME_MAX + 32];

	if (result->failed)
		printf("%-22s FAILED: %s\n", perf_label(result->model, 0, label), result->why);
	for (size_t f = 0; f < result->model->flow_count && result->rounds; f++)
		for (size_t t = 0; t < result->transports->count; t++)
			print_flow(result, t, f);
}

/* The machines and what was asked for. */
static void print_head(const struct perf_setup *setup)
{
	char line[512], remote[2 * sizeof(setup->remote_machine)];
	size_t have = 0;

	shunt_host_print(&setup->machine);
	if (setup->pin.given)
		have += (size_t)snprintf(line, sizeof(line), "cpu=%s", setup->pin.text);
	for (size_t i = 0; perf_work_field(i); i++)
		if (strcmp(perf_work_name(&setup->work, i), perf_work_name(&no_work, i)))
			have += (size_t)snprintf(line + have, sizeof(line) - have, "%s%s=%s",
						 have ? "; " : "", perf_work_field(i),
						 perf_work_name(&setup->work, i));
	if (have)
		shunt_print_wrapped(0, 0, line);
	if (setup->remote[0]) {
		printf("Server %s: ", setup->remote);
		shunt_print_wrapped(2, (int)strlen(setup->remote) + 9,
				    shunt_escape(setup->remote_machine, remote, sizeof(remote)));
	}
	putchar('\n');
}

/* The requests that an open loop could not send in time. */
static void print_open(const struct perf_result *result)
{
	char cells[3][CELL_MAX];

	if (!result->model->open.rate || !result->rounds)
		return;
	for (size_t t = 0; t < result->transports->count; t++) {
		print_label(result, t, 0);
		printf(" %9s %9s %9s\n", figure_cell(result->model->open.rate, cells[0]),
		       figure_cell(perf_result_median(result, t, 0, PERF_LATE), cells[1]),
		       figure_cell(perf_result_median(result, t, 0, PERF_UNSENT), cells[2]));
	}
}

static void print_open_loops(const struct perf_result *results, size_t count)
{
	bool any = false;

	for (size_t i = 0; i < count; i++)
		any |= results[i].model->open.rate && results[i].rounds;
	if (!any)
		return;
	printf("\n%-22s %-10s %9s %9s %9s\n", "OPEN LOOP", "TRANSPORT", "DUE/S", "LATE", "UNSENT");
	for (size_t i = 0; i < count; i++)
		print_open(&results[i]);
	puts("In an open loop a latency counts from when the request was due. LATE: sent more than 1 ms\n"
	     "after that. UNSENT: due in the measured time and not sent in it; these are in the latencies\n"
	     "with the time they had waited.");
}

/* Of the models whose rounds had to settle. */
static void print_ended(const struct perf_result *result)
{
	char label[PERF_NAME_MAX + 32];

	if (result->ended == PERF_ENDED_SPREAD)
		printf("%s: %d rounds until every spread was below %g%%.\n",
		       perf_label(result->model, 0, label), result->rounds, result->setup->spread);
	else if (result->ended == PERF_ENDED_LIMIT)
		printf("%s: %d rounds, the most allowed, and a spread is not below %g%%.\n",
		       perf_label(result->model, 0, label), result->rounds, result->setup->spread);
}

static void print_notes(const struct perf_result *results, size_t count)
{
	struct shunt_share_legend legend = { 0 };
	int sampled = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t t = 0; t < results[i].transports->count && results[i].rounds; t++) {
			struct shunt_share share = perf_result_share(&results[i], t);

			sampled |= perf_result_median(&results[i], t, 0, PERF_LATENCIES) >
				   perf_result_median(&results[i], t, 0, PERF_KEPT);
			if (results[i].transports->list[t].shunt)
				shunt_share_legend_add(&legend, &share);
		}
	}
	puts("\nMedians of the rounds. P50 to MAX: latency in microseconds. RATIO: OPS/S to plain TCP. "
	     "ON LINK:\nshare of the bytes after each connection's first 256 KiB that travelled on the link, "
	     "the worst\nround. For each operation, both ends together: work requests, doorbells, completion "
	     "events, CPU\ntime in microseconds, voluntary context switches. SPREAD: relative standard deviation of OPS/S\n"
	     "from round to round; of P50 in an open loop.");
	shunt_share_legend_print(&legend);
	if (sampled)
		puts("Percentiles are exact up to 1048576 latencies of a run, and of a uniform sample of as "
		     "many beyond\nthat; MAX is exact.");
}

void perf_table(const struct perf_result *results, size_t count)
{
	int measured = 0;

	for (size_t i = 0; i < count; i++)
		measured += results[i].rounds > 0;
	if (measured)
		print_head(results[0].setup);
	if (measured)
		printf("%-22s %-10s %7s %7s %7s %7s %7s %7s %7s %8s\n", "MODEL", "TRANSPORT", "OPS/S", "MB/S",
		       "P50", "P90", "P99", "P99.9", "MAX", "RATIO");
	for (size_t i = 0; i < count; i++)
		print_flows(&results[i]);
	if (measured)
		printf("\n%-22s %-10s %9s %7s %7s %8s %7s %7s %6s %7s\n", "MODEL", "TRANSPORT",
		       "ON LINK", "WR/OP", "BELL/OP", "BYTE/WR", "EVNT/OP", "CPU/OP", "SLP/OP",
		       "SPREAD");
	for (size_t i = 0; i < count; i++)
		for (size_t t = 0; t < results[i].transports->count && results[i].rounds; t++)
			print_costs(&results[i], t);
	print_open_loops(results, count);
	if (measured)
		print_notes(results, count);
	for (size_t i = 0; i < count; i++)
		print_ended(&results[i]);
}
