/* SPDX-License-Identifier: MIT */
/* The result of shunt perf programs as a page, and as a picture alone. */
#include "tools/compare/compare.h"

#include <math.h>

#include "tools/common/chart.h"
#include "tools/common/html.h"

static const char who[] = "shunt perf programs";

static int is_measured(const struct compare_result *result)
{
	return result->rounds && !result->skipped && !result->failed;
}

struct picture {
	const char *title, *unit;
	unsigned int families;	/* bits by enum compare_family */
};

/* Without a row there is no picture. */
static void put_picture(FILE *file, const struct compare_result *results, size_t count,
			const struct picture *picture)
{
	static const char *const series[] = { "plain TCP", "Shunt" };
	const char *rows[COMPARE_WORKLOADS_MAX], *notes[COMPARE_WORKLOADS_MAX];
	struct shunt_chart_value values[COMPARE_MODES * COMPARE_WORKLOADS_MAX];
	char ratios[COMPARE_WORKLOADS_MAX][24];
	size_t row = 0;

	for (size_t i = 0; i < count && row < COMPARE_WORKLOADS_MAX; i++) {
		if (!(picture->families >> results[i].workload->family & 1) ||
		    !is_measured(&results[i]))
			continue;
		for (int mode = 0; mode < COMPARE_MODES; mode++) {
			struct shunt_spread spread = compare_report_figure(&results[i], mode);

			values[COMPARE_MODES * row + (size_t)mode] = (struct shunt_chart_value) {
				spread.min, spread.median, spread.max
			};
		}
		snprintf(ratios[row], sizeof(ratios[row]), "x %.2f",
			 compare_report_ratio(&results[i]));
		notes[row] = ratios[row];
		rows[row++] = results[i].workload->title;
	}
	if (!row)
		return;
	shunt_chart_bars(file, &(struct shunt_chart_bars) { .title = picture->title,
							    .unit = picture->unit,
							    .series = series,
							    .series_count = COMPARE_MODES,
							    .rows = rows,
							    .notes = notes,
							    .row_count = row,
							    .values = values,
							    .each = 1 });
}

static void put_row(FILE *file, const struct compare_result *result)
{
	struct shunt_share share;
	char text[40];

	fputs("<tr>", file);
	shunt_html_cell(file, "", result->workload->title);
	if (!is_measured(result)) {
		fputs("<td colspan=\"8\">", file);
		shunt_html_text(file, result->skipped ? "skipped: " :
				      result->failed  ? "failed: " :
							"not measured");
		shunt_html_text(file, result->why);
		fputs("</td></tr>\n", file);
		return;
	}
	shunt_html_cell(file, "", compare_workload_unit(result->workload));
	for (int mode = 0; mode < COMPARE_MODES; mode++) {
		shunt_html_cell(
			file, "n",
			shunt_figure_text(compare_report_figure(result, mode).median, text));
		shunt_html_cell(file, "n",
				compare_report_spread(compare_report_figure(result, mode), text));
	}
	snprintf(text, sizeof(text), "%.2f", compare_report_ratio(result));
	shunt_html_cell(file, "n", text);
	share = compare_report_share(result);
	shunt_html_cell(file, "n", shunt_share_text(&share, text));
	snprintf(text, sizeof(text), "%.3f, %.3f %s", compare_report_cpu(result, COMPARE_TCP),
		 compare_report_cpu(result, COMPARE_SHUNT),
		 compare_workload_cpu_unit(result->workload));
	shunt_html_cell(file, "n", text);
	fputs("</tr>\n", file);
}

static void put_item(void *file, const char *text)
{
	fputs("<li>", file);
	shunt_html_text(file, text);
	fputs("</li>\n", file);
}

int compare_html(const struct compare_result *results, size_t count, const struct shunt_host *host,
		 const char *path)
{
	static const char *const head[] = { "workload",	       "unit",	 "TCP",	  "rounds",
					    "Shunt",	       "rounds", "ratio", "on link",
					    "CPU: TCP, Shunt", NULL };
	static const char unit[] = "medians, and the range of rounds; each row has its own scale";
	const struct picture redis = { "redis: requests/s", unit, 1 << COMPARE_REDIS };
	const struct picture iperf = { "iperf3: Gbit/s", unit, 1 << COMPARE_IPERF };
	FILE *file = shunt_html_begin(who, path, "Plain TCP and Shunt");

	if (!file)
		return -1;
	put_picture(file, results, count, &redis);
	put_picture(file, results, count, &iperf);
	fputs("<h2>Workloads</h2>\n<div class=\"wide\"><table>\n", file);
	shunt_html_head(file, head);
	for (size_t i = 0; i < count; i++)
		put_row(file, &results[i]);
	fputs("</table></div>\n<p>Medians, and the slowest to the fastest round. CPU is user and system time of client and "
	      "server. On link is the share of the bytes after each connection's first 256 KiB; with * of all bytes.</p>\n<h2>This machine</h2>\n<ul>\n",
	      file);
	shunt_host_lines(host, put_item, file);
	fputs("</ul>\n", file);
	return shunt_html_end(who, path, file);
}

int compare_svg(const struct compare_result *results, size_t count, const char *path)
{
	const struct picture picture = {
		"shunt perf programs: redis in requests/s, iperf3 in Gbit/s",
		"medians, and the range of rounds; each row has its own scale",
		1 << COMPARE_REDIS | 1 << COMPARE_IPERF
	};
	size_t measured = 0;
	FILE *file;

	for (size_t i = 0; i < count; i++)
		measured += is_measured(&results[i]);
	if (!measured) {
		fprintf(stderr, "%s: no picture in %s, because nothing was measured\n", who, path);
		return -1;
	}
	file = shunt_html_open(who, path);
	if (!file)
		return -1;
	put_picture(file, results, count, &picture);
	return shunt_html_close(who, path, file);
}
