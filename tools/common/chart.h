/* SPDX-License-Identifier: MIT */
/* Pictures as SVG, each complete in itself: within a page, or a file of its own. */
#ifndef SHUNT_TOOLS_CHART_H
#define SHUNT_TOOLS_CHART_H

#include <stddef.h>
#include <stdio.h>

#define SHUNT_CHART_SERIES_MAX 16

/* A figure with its spread. NAN as the middle: none. */
struct shunt_chart_value {
	double min, middle, max;
};

/* Bars: for each row one of each series, with the spread and the figure. */
struct shunt_chart_bars {
	const char *title, *unit;
	const char *const *series; /* names */
	size_t series_count;
	const char *const *rows; /* names */
	const char *const *notes; /* behind the row's last bar; NULL, or NULL for a row: none */
	size_t row_count;
	const struct shunt_chart_value *values; /* of each row those of its series */
	int each; /* each row has a scale of its own, for rows of different units */
};

void shunt_chart_bars(FILE *file, const struct shunt_chart_bars *chart);

/* Lines through points, by a logarithmic x axis; the y axis is so, too, where values are far apart. */
struct shunt_chart_lines {
	const char *title, *x_title, *y_title;
	const char *const *series;
	size_t series_count;
	const double *x; /* ascending, above 0 */
	size_t x_count;
	const struct shunt_chart_value *values; /* of each series those of its x */
};

void shunt_chart_lines(FILE *file, const struct shunt_chart_lines *chart);

#endif
