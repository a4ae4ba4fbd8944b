/* SPDX-License-Identifier: MIT */
/* The result of shunt perf programs as a page, and as a picture alone. */
#include "tools/compare/compare.h"

#include "tools/page/chart.h"

static const char who[] = "shunt perf programs";

static int is_measured(const struct compare_result *result)
{
	return result->rounds && !result->skipped && !result->failed;
}

/* Of the families whose bits are set. */
static void put_picture(struct shunt_page *page, const struct compare_result *results, size_t count,
			const char *title, unsigned int families)
{
	struct shunt_chart_bars chart = {
		.title = title,
		.unit = "medians, and the range of rounds; each row has its own scale",
	};

	for (size_t i = 0; i < count; i++)
		if (families >> results[i].workload->family & 1 && is_measured(&results[i]))
			shunt_chart_pair(&chart, results[i].workload->title,
					 compare_report_ratio(&results[i]),
					 compare_report_figure(&results[i], COMPARE_TCP),
					 compare_report_figure(&results[i], COMPARE_SHUNT));
	shunt_chart_bars(page, &chart);
}

static void put_row(struct shunt_page *page, const struct compare_result *result)
{
	struct shunt_share share;
	char text[40];

	shunt_page_row(page);
	shunt_page_cell(page, "%s", result->workload->title);
	if (!is_measured(result)) {
		shunt_page_wide(page, 8, "%s%s",
				result->skipped ? "skipped: " :
				result->failed	? "failed: " :
						  "not measured",
				result->why);
		return;
	}
	shunt_page_cell(page, "%s", compare_workload_unit(result->workload));
	for (int mode = 0; mode < COMPARE_MODES; mode++) {
		struct shunt_spread figure = compare_report_figure(result, mode);

		shunt_page_cell(page, "%s", shunt_figure_text(figure.median, text));
		shunt_page_cell(page, "%s", compare_report_spread(figure, text));
	}
	shunt_page_cell(page, "%.2f", compare_report_ratio(result));
	share = compare_report_share(result);
	shunt_page_cell(page, "%s", shunt_share_text(&share, text));
	shunt_page_cell(page, "%.3f, %.3f %s", compare_report_cpu(result, COMPARE_TCP),
			compare_report_cpu(result, COMPARE_SHUNT),
			compare_workload_cpu_unit(result->workload));
}

int compare_html(const struct compare_result *results, size_t count, const struct shunt_host *host,
		 const char *path)
{
	struct shunt_page page;

	if (shunt_page_start(&page, who, path, "Plain TCP and Shunt"))
		return -1;
	put_picture(&page, results, count, "redis: requests/s", 1 << COMPARE_REDIS);
	put_picture(&page, results, count, "iperf3: Gbit/s", 1 << COMPARE_IPERF);
	shunt_page_table(
		&page, "Workloads", "",
		"workload|unit|#TCP|#rounds|#Shunt|#rounds|#ratio|#on link|#CPU: TCP, Shunt");
	for (size_t i = 0; i < count; i++)
		put_row(&page, &results[i]);
	shunt_page_table_end(&page, NULL);
	shunt_page_paragraph(
		&page, "", "%s",
		"Medians, and the slowest to the fastest round. CPU is user and system time of client and "
		"server. On link is the share of the bytes after each connection's first 256 KiB; with * of all bytes.");
	shunt_page_heading(&page, "This machine");
	shunt_host_lines(host, shunt_page_say, &page);
	return shunt_page_finish(&page);
}

int compare_svg(const struct compare_result *results, size_t count, const char *path)
{
	struct shunt_page page;
	size_t measured = 0;

	for (size_t i = 0; i < count; i++)
		measured += is_measured(&results[i]);
	if (!measured) {
		fprintf(stderr, "%s: no picture in %s, because nothing was measured\n", who, path);
		return -1;
	}
	if (shunt_page_open(&page, who, path))
		return -1;
	put_picture(&page, results, count,
		    "shunt perf programs: redis in requests/s, iperf3 in Gbit/s",
		    1 << COMPARE_REDIS | 1 << COMPARE_IPERF);
	return shunt_page_close(&page);
}
