/* SPDX-License-Identifier: MIT */
/* The result of shunt advise as a page, and its picture. */
#include "tools/advise/advise.h"

#include <math.h>
#include <string.h>

#include "tools/common/chart.h"
#include "tools/common/html.h"

static const char who[] = "shunt advise";

static struct shunt_chart_value value_of(const struct advise_result *result, int way,
					 enum advise_column column)
{
	struct shunt_spread spread = advise_pairs_spread(result->bench, &result->pairs, way,
							 column);

	return (struct shunt_chart_value) { spread.min, spread.median, spread.max };
}

/* Shunt's part of TCP's figure. The judged figure has the median of the pairs, as in the verdict. */
static double part_of(const struct advise_result *result, enum advise_column column)
{
	double ratio = advise_pairs_ratio(&result->pairs).median;

	if (column == (result->bench->metric_count ? ADVISE_FIGURE : ADVISE_SECONDS))
		return advise_is_lower(result->bench) ? 1 / ratio : ratio;
	return value_of(result, 1, column).middle / value_of(result, 0, column).middle;
}

/* Rows of the picture: the figure or the time, and CPU time; each has a scale of its own. */
static void put_picture(FILE *file, const struct advise_result *result)
{
	static const char *const series[] = { "plain TCP", "Shunt" };
	struct shunt_chart_value values[2 * ADVISE_COLUMNS];
	const char *rows[ADVISE_COLUMNS], *notes[ADVISE_COLUMNS];
	char title[128], ratios[ADVISE_COLUMNS][24];
	size_t count = 0;

	for (int column = 0; column < ADVISE_COLUMNS; column++) {
		const char *name = advise_column_name(result->bench, column);

		if (!name || (column == ADVISE_SECONDS && result->bench->metric_count))
			continue;
		for (int way = 0; way < 2; way++)
			values[2 * count + (size_t)way] = value_of(result, way, column);
		if (isnan(values[2 * count].middle))
			continue;
		snprintf(ratios[count], sizeof(ratios[count]), "x %.2f", part_of(result, column));
		notes[count] = isfinite(part_of(result, column)) ? ratios[count] : NULL;
		rows[count++] = name;
	}
	snprintf(title, sizeof(title), "%.100s%s", result->command,
		 strlen(result->command) > 100 ? "..." : "");
	shunt_chart_bars(file,
			 &(struct shunt_chart_bars) { .title = title,
						      .unit = "medians, and the range of runs",
						      .series = series,
						      .series_count = 2,
						      .rows = rows,
						      .notes = notes,
						      .row_count = count,
						      .values = values,
						      .each = 1 });
}

static void put_number(FILE *file, double number)
{
	char text[16];

	shunt_html_cell(file, "n", advise_number_text(number, text));
}

static void put_columns(FILE *file, const struct advise_result *result)
{
	static const char *const head[] = { "",	     "TCP",    "lowest",  "highest",
					    "Shunt", "lowest", "highest", NULL };
	char share[24];

	fputs("<h2>Runs</h2>\n<div class=\"wide\"><table>\n", file);
	shunt_html_head(file, head);
	for (int column = 0; column < ADVISE_COLUMNS; column++) {
		const char *name = advise_column_name(result->bench, column);

		if (!name)
			continue;
		fputs("<tr>", file);
		shunt_html_cell(file, "", name);
		for (int way = 0; way < 2; way++) {
			struct shunt_chart_value value = value_of(result, way, column);

			put_number(file, value.middle);
			put_number(file, value.min);
			put_number(file, value.max);
		}
		fputs("</tr>\n", file);
	}
	fputs("<tr><td>share on the link</td><td class=\"n\">0%</td><td></td><td></td>", file);
	shunt_html_cell(file, "n", shunt_share_text(&result->share, share));
	fputs("<td colspan=\"2\">", file);
	shunt_html_text(file, !result->share.known ? result->share.why :
			      result->share.late   ? "after 256 KiB each" :
						     "of all bytes");
	fputs("</td></tr>\n</table></div>\n", file);
}

static void put_tries(FILE *file, const struct advise_result *result)
{
	static const char *const head[] = { "settings tried, against the shunted default",
					    "because", "verdict", "ratio", NULL };
	char text[96];

	if (!result->try_count)
		return;
	fputs("<h2>Settings</h2>\n<div class=\"wide\"><table>\n", file);
	shunt_html_head(file, head);
	for (size_t i = 0; i < result->try_count; i++) {
		const struct advise_try *try = &result->tries[i];

		fputs("<tr><td><code>", file);
		shunt_html_text(file, try->cause.settings);
		fputs("</code></td>", file);
		shunt_html_cell(file, "", try->cause.text);
		shunt_html_cell(file, "",
				try->failed ? "failed" : advise_verdict_words[try->pairs.verdict]);
		shunt_html_cell(file, "",
				try->failed ? try->why : advise_ratio_text(&try->pairs, text));
		fputs("</tr>\n", file);
	}
	fputs("</table></div>\n", file);
}

static void put_pairs(FILE *file, const struct advise_result *result)
{
	static const char *const head[] = { "pair", "TCP", "Shunt", "ratio", NULL };
	char text[16];

	fputs("<h2>Pairs</h2>\n<div class=\"wide\"><table>\n", file);
	shunt_html_head(file, head);
	for (int i = 0; i < result->pairs.count; i++) {
		fprintf(file, "<tr><td>%d</td>", i + 1);
		put_number(file, result->pairs.runs[0][i].figure);
		put_number(file, result->pairs.runs[1][i].figure);
		snprintf(text, sizeof(text), "%.3f", result->pairs.ratios[i]);
		shunt_html_cell(file, "n", text);
		fputs("</tr>\n", file);
	}
	fputs("</table></div>\n", file);
}

static void put_item(void *file, const char *text)
{
	fputs("<li>", file);
	shunt_html_text(file, text);
	fputs("</li>\n", file);
}

int advise_html(const struct advise_result *result, const char *path)
{
	FILE *file = shunt_html_begin(who, path, "Does Shunt pay?");
	const char *class = result->pairs.verdict == ADVISE_FASTER ? " faster" :
			    result->pairs.verdict == ADVISE_SLOWER ? " slower" :
								     "";
	char text[256];

	if (!file)
		return -1;
	fputs("<p><code>", file);
	shunt_html_text(file, result->command);
	fputs("</code><br/>", file);
	shunt_html_text(file, advise_server_text(&result->bench->server, text));
	fprintf(file, "</p>\n<p class=\"verdict%s\">", class);
	shunt_html_text(file, advise_verdict_text(result, text));
	fputs("</p>\n<ul>\n", file);
	advise_words(result, put_item, file);
	fputs("</ul>\n", file);
	put_picture(file, result);
	put_columns(file, result);
	put_tries(file, result);
	put_pairs(file, result);
	return shunt_html_end(who, path, file);
}

int advise_svg(const struct advise_result *result, const char *path)
{
	FILE *file = shunt_html_open(who, path);

	if (!file)
		return -1;
	put_picture(file, result);
	return shunt_html_close(who, path, file);
}
