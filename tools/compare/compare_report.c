/* SPDX-License-Identifier: MIT */
/* Output of shunt perf programs, while it runs and at the end. */
#include "tools/compare/compare.h"

#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"

static double get_figure(const struct compare_run *run)
{
	return run->figure;
}

static double get_cpu(const struct compare_run *run)
{
	return run->cpu;
}

static struct shunt_spread spread_of(const struct compare_result *result, enum compare_mode mode,
				    double (*get)(const struct compare_run *run))
{
	double values[COMPARE_ROUNDS_MAX];
	int n = result->rounds;

	for (int i = 0; i < n; i++)
		values[i] = get(&result->runs[mode][i]);
	return shunt_spread_of(values, (size_t)n);
}

struct shunt_spread compare_report_figure(const struct compare_result *result,
					  enum compare_mode mode)
{
	return spread_of(result, mode, get_figure);
}

double compare_report_cpu(const struct compare_result *result, enum compare_mode mode)
{
	return spread_of(result, mode, get_cpu).median;
}

double compare_report_ratio(const struct compare_result *result)
{
	double tcp = compare_report_figure(result, COMPARE_TCP).median;

	return tcp > 0 ? compare_report_figure(result, COMPARE_SHUNT).median / tcp : 0;
}

struct shunt_share compare_report_share(const struct compare_result *result)
{
	struct shunt_share worst = result->runs[COMPARE_SHUNT][0].share;

	for (int i = 1; i < result->rounds; i++)
		shunt_share_worse(&worst, &result->runs[COMPARE_SHUNT][i].share);
	return worst;
}

void compare_report_progress(const struct compare_result *result, size_t index, size_t count,
			     int rounds)
{
	static const char *const modes[] = { "TCP", "shunt" };
	char figure[16];

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r\033[K[%zu/%zu] %s, round %d of %d", index + 1, count,
		result->workload->title, result->rounds + 1, rounds);
	for (int mode = 0; mode < COMPARE_MODES && result->rounds; mode++)
		fprintf(stderr, "  %s %s", modes[mode],
			shunt_figure_text(result->runs[mode][result->rounds - 1].figure, figure));
}

/* The workload's line stays. */
void compare_report_progress_end(const struct compare_result *result)
{
	char tcp[16], shunt[16];

	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	if (result->skipped || result->failed)
		fprintf(stderr, "%s: %s: %s\n", result->workload->title,
			result->skipped ? "skipped" : "failed", result->why);
	else
		fprintf(stderr, "%s: TCP %s, shunt %s %s\n", result->workload->title,
			shunt_figure_text(compare_report_figure(result, COMPARE_TCP).median, tcp),
			shunt_figure_text(compare_report_figure(result, COMPARE_SHUNT).median,
					  shunt),
			compare_workload_unit(result->workload));
}

const char *compare_report_spread(struct shunt_spread s, char buf[40])
{
	char min[16], max[16];

	snprintf(buf, 40, "%s-%s", shunt_figure_text(s.min, min), shunt_figure_text(s.max, max));
	return buf;
}

static void print_figures(const struct compare_result *result)
{
	struct shunt_share share = compare_report_share(result);
	struct shunt_spread tcp = compare_report_figure(result, COMPARE_TCP);
	struct shunt_spread shunt = compare_report_figure(result, COMPARE_SHUNT);
	char medians[2][16], spreads[2][40], link[24];

	printf("%-31s %-10s %6s %-13s %6s %-13s %5.2fx %8s\n", result->workload->title,
	       compare_workload_unit(result->workload), shunt_figure_text(tcp.median, medians[0]),
	       compare_report_spread(tcp, spreads[0]), shunt_figure_text(shunt.median, medians[1]),
	       compare_report_spread(shunt, spreads[1]), compare_report_ratio(result),
	       shunt_share_text(&share, link));
}

static void print_cpu(const struct compare_result *result)
{
	printf("%-31s %-11s %9.3f %9.3f\n", result->workload->title,
	       compare_workload_cpu_unit(result->workload),
	       spread_of(result, COMPARE_TCP, get_cpu).median,
	       spread_of(result, COMPARE_SHUNT, get_cpu).median);
}

static void print_notes(const struct compare_result *results, size_t count)
{
	struct shunt_share_legend legend = { 0 };
	struct shunt_share share;

	for (size_t i = 0; i < count; i++) {
		if (!results[i].rounds)
			continue;
		share = compare_report_share(&results[i]);
		shunt_share_legend_add(&legend, &share);
	}
	puts("\nTCP, SHUNT: medians, and the slowest to the fastest round. CPU: user and system time of "
	     "client and\nserver. ON LINK: share of the bytes after each connection's first 256 KiB that "
	     "travelled on the\nlink, the worst round.");
	shunt_share_legend_print(&legend);
}

void compare_report_table(const struct compare_result *results, size_t count,
			  const struct shunt_host *host)
{
	int measured = 0;

	for (size_t i = 0; i < count; i++)
		measured += results[i].rounds > 0;
	if (measured)
		printf("%-31s %-10s %6s %-13s %6s %-13s %6s %8s\n", "WORKLOAD", "UNIT", "TCP", "ROUNDS",
		       "SHUNT", "ROUNDS", "RATIO", "ON LINK");
	for (size_t i = 0; i < count; i++) {
		const struct compare_result *result = &results[i];

		if (result->skipped || result->failed)
			printf("%-31s %s: %s\n", result->workload->title,
			       result->skipped ? "skipped" : "FAILED", result->why);
		else if (result->rounds)
			print_figures(result);
	}
	if (measured)
		printf("\n%-31s %-11s %9s %9s\n", "WORKLOAD", "CPU UNIT", "TCP", "SHUNT");
	for (size_t i = 0; i < count; i++)
		if (results[i].rounds && !results[i].skipped && !results[i].failed)
			print_cpu(&results[i]);
	if (!measured)
		return;
	print_notes(results, count);
	putchar('\n');
	shunt_host_print(host);
}

static json_t *mode_json(const struct compare_result *result, enum compare_mode mode)
{
	struct shunt_spread figure = spread_of(result, mode, get_figure);
	json_t *runs = json_array();

	for (int i = 0; i < result->rounds; i++)
		json_array_append_new(runs, json_pack("{s:f, s:f}", "figure",
						      result->runs[mode][i].figure, "cpu",
						      result->runs[mode][i].cpu));
	return json_pack("{s:f, s:f, s:f, s:f, s:o}", "median", figure.median, "min", figure.min,
			 "max", figure.max, "cpu", spread_of(result, mode, get_cpu).median, "runs", runs);
}

static json_t *share_json(const struct compare_result *result)
{
	struct shunt_share share = compare_report_share(result);

	if (!share.known)
		return json_pack("{s:n, s:s}", "share", "reason", share.why);
	return json_pack("{s:f, s:s, s:b}", "share", share.share, "of",
			 share.late ? "bytes after the first 256 KiB" : "all bytes", "agree",
			 share.agree);
}

static json_t *result_json(const struct compare_result *result)
{
	const struct compare_workload *w = result->workload;
	json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "name", w->name, "title", w->title, "unit",
				   compare_workload_unit(w), "cpu_unit", compare_workload_cpu_unit(w));

	if (result->skipped || result->failed)
		json_object_set_new(object, result->skipped ? "skipped" : "failed",
				    json_string(result->why));
	if (result->rounds) {
		json_object_set_new(object, "tcp", mode_json(result, COMPARE_TCP));
		json_object_set_new(object, "shunt", mode_json(result, COMPARE_SHUNT));
		json_object_set_new(object, "ratio", json_real(compare_report_ratio(result)));
		json_object_set_new(object, "link", share_json(result));
	}
	return object;
}

void compare_report_json(const struct compare_result *results, size_t count, int rounds,
			 const struct shunt_host *host)
{
	json_t *workloads = json_array(), *root;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(workloads, result_json(&results[i]));
	root = json_pack("{s:i, s:s, s:i, s:i, s:o, s:o}", "schema", SHUNT_JSON_SCHEMA, "version",
			 PACKAGE_VERSION, "processors", host->cpus, "rounds", rounds, "machine",
			 shunt_host_json(host), "workloads", workloads);
	shunt_print_json(stdout, root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
}
