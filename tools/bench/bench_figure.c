/* SPDX-License-Identifier: MIT */
/* Medians of rounds, and figures as people read them. */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct shunt_spread shunt_spread_of(double *values, size_t count)
{
	if (!count)
		return (struct shunt_spread){ 0 };
	qsort(values, count, sizeof(values[0]), compare_doubles);
	return (struct shunt_spread){ values[0], (values[(count - 1) / 2] + values[count / 2]) / 2,
				      values[count - 1] };
}

const char *shunt_figure_text(double figure, char buf[16])
{
	if (figure >= 999500)
		snprintf(buf, 16, "%.2fM", figure / 1e6);
	else if (figure >= 1000)
		snprintf(buf, 16, "%.1fk", figure / 1e3);
	else
		snprintf(buf, 16, "%.1f", figure);
	return buf;
}
