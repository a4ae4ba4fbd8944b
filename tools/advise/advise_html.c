/* SPDX-License-Identifier: MIT */
/* The result of shunt advise as a page, and its picture. */
#include "tools/advise/advise.h"

#include <math.h>
#include <string.h>

#include "tools/page/chart.h"

static const char who[] = "shunt advise";

static struct shunt_spread spread_of(const struct advise_result *result, int way,
				     enum advise_column column)
{
	return advise_pairs_spread(result->bench, &result->pairs, way, column);
}

/* Shunt's part of TCP's figure. The judged figure has the median of the pairs, as in the verdict. */
static double part_of(const struct advise_result *result, enum advise_column column)
{
	double ratio = advise_pairs_ratio(&result->pairs).median;

	if (column == (result->bench->metric_count ? ADVISE_FIGURE : ADVISE_SECONDS))
		return advise_is_lower(result->bench) ? 1 / ratio : ratio;
	return spread_of(result, 1, column).median / spread_of(result, 0, column).median;
}

/* Rows of the picture: the figure or the time, and CPU time. */
static void put_picture(struct shunt_page *page, const struct advise_result *result)
{
	char title[128];
	struct shunt_chart_bars chart = { .title = title,
					  .unit = "medians, and the range of runs" };

	snprintf(title, sizeof(title), "%.100s%s", result->command,
		 strlen(result->command) > 100 ? "..." : "");
	for (int column = 0; column < ADVISE_COLUMNS; column++) {
		const char *name = advise_column_name(result->bench, column);
		struct shunt_spread tcp = spread_of(result, 0, column);

		if (name && !(column == ADVISE_SECONDS && result->bench->metric_count) &&
		    !isnan(tcp.median))
			shunt_chart_pair(&chart, name, part_of(result, column), tcp,
					 spread_of(result, 1, column));
	}
	shunt_chart_bars(page, &chart);
}

static void put_number(struct shunt_page *page, double number)
{
	char text[16];

	shunt_page_cell(page, "%s", advise_number_text(number, text));
}

static void put_columns(struct shunt_page *page, const struct advise_result *result)
{
	char share[24];

	shunt_page_table(page, "Runs", "", "|#TCP|#lowest|#highest|#Shunt|#lowest|#highest");
	for (int column = 0; column < ADVISE_COLUMNS; column++) {
		const char *name = advise_column_name(result->bench, column);

		if (!name)
			continue;
		shunt_page_row(page);
		shunt_page_cell(page, "%s", name);
		for (int way = 0; way < 2; way++) {
			struct shunt_spread value = spread_of(result, way, column);

			put_number(page, value.median);
			put_number(page, value.min);
			put_number(page, value.max);
		}
	}
	shunt_page_row(page);
	shunt_page_cell(page, "share on the link");
	shunt_page_cell(page, "0%%");
	shunt_page_wide(page, 2, "%s", "");
	shunt_page_cell(page, "%s", shunt_share_text(&result->share, share));
	shunt_page_wide(page, 2, "%s",
			!result->share.known ? result->share.why :
			result->share.late   ? "after 256 KiB each" :
					       "of all bytes");
	shunt_page_table_end(page, NULL);
}

static void put_tries(struct shunt_page *page, const struct advise_result *result)
{
	char text[96];

	if (!result->try_count)
		return;
	shunt_page_table(page, "Settings", "",
			 "@settings tried, against the shunted default|because|verdict|ratio");
	for (size_t i = 0; i < result->try_count; i++) {
		const struct advise_try *try = &result->tries[i];

		shunt_page_row(page);
		shunt_page_cell(page, "%s", try->cause.settings);
		shunt_page_cell(page, "%s", try->cause.text);
		shunt_page_cell(page, "%s",
				try->failed ? "failed" : advise_verdict_words[try->pairs.verdict]);
		shunt_page_cell(page, "%s",
				try->failed ? try->why : advise_ratio_text(&try->pairs, text));
	}
	shunt_page_table_end(page, NULL);
}

static void put_pairs(struct shunt_page *page, const struct advise_result *result)
{
	shunt_page_table(page, "Pairs", "", "pair|#TCP|#Shunt|#ratio");
	for (int i = 0; i < result->pairs.count; i++) {
		shunt_page_row(page);
		shunt_page_cell(page, "%d", i + 1);
		put_number(page, result->pairs.runs[0][i].figure);
		put_number(page, result->pairs.runs[1][i].figure);
		shunt_page_cell(page, "%.3f", result->pairs.ratios[i]);
	}
	shunt_page_table_end(page, NULL);
}

int advise_html(const struct advise_result *result, const char *path)
{
	enum advise_verdict verdict = result->pairs.verdict;
	struct shunt_page page;
	char text[256];

	if (shunt_page_start(&page, who, path, "Does Shunt pay?"))
		return -1;
	shunt_page_paragraph(&page, "a", "%s", result->command);
	shunt_page_paragraph(&page, "", "%s", advise_server_text(&result->bench->server, text));
	shunt_page_paragraph(&page,
			     verdict == ADVISE_FASTER ? "verdict faster" :
			     verdict == ADVISE_SLOWER ? "verdict slower" :
							"verdict",
			     "%s", advise_verdict_text(result, text));
	advise_words(result, shunt_page_say, &page);
	put_picture(&page, result);
	put_columns(&page, result);
	put_tries(&page, result);
	put_pairs(&page, result);
	return shunt_page_finish(&page);
}

int advise_svg(const struct advise_result *result, const char *path)
{
	struct shunt_page page;

	if (shunt_page_open(&page, who, path))
		return -1;
	put_picture(&page, result);
	return shunt_page_close(&page);
}
