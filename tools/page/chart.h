/* SPDX-License-Identifier: MIT */
/* Pictures as SVG, each complete in itself: within a page, or a file of its own. */
#ifndef SHUNT_TOOLS_CHART_H
#define SHUNT_TOOLS_CHART_H

#include "tools/bench/bench.h"
#include "tools/page/page.h"

/* Bars: each row has one of each series, with the spread and the figure, and a scale of its own. The rest is 0 at first. */
struct shunt_chart_bars {
	const char *title, *unit;
	const char *const *series; /* names */
	size_t series_count;
	/* Rows so far, as text. */
	FILE *file;
	char *text;
	size_t bytes, row_count;
};

/* `values`: of each series; NAN as the median: none. `note` stands behind the bars; "": none. */
void shunt_chart_row(struct shunt_chart_bars *chart, const char *name, const char *note,
		     const struct shunt_spread *values);
/* A row of plain TCP and Shunt, which are the series then. */
void shunt_chart_pair(struct shunt_chart_bars *chart, const char *name, double ratio,
		      struct shunt_spread tcp, struct shunt_spread shunt);
/* Puts the picture into the page, if it has a row, and frees it. */
void shunt_chart_bars(struct shunt_page *page, struct shunt_chart_bars *chart);

/* Lines through points, by a logarithmic x axis; the y axis is so, too, where values are far apart. */
struct shunt_chart_lines {
	const char *title, *x_title, *y_title;
	const char *const *series;
	size_t series_count;
	const double *x; /* ascending, above 0 */
	size_t x_count;
	const struct shunt_spread *values; /* of each series those of its x */
};

/* If a value is above 0. */
void shunt_chart_lines(struct shunt_page *page, const struct shunt_chart_lines *chart);

#endif
