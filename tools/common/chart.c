/* SPDX-License-Identifier: MIT */
#include "tools/common/chart.h"

#include <math.h>
#include <string.h>

#include "tools/bench/bench.h"
#include "tools/common/html.h"

#define WIDTH 800
#define NAMES 230 /* room for the names of rows */
#define NAME_MAX_CHARS 34
#define FIGURES 120 /* room behind bars */
#define BAR 16
#define GAP 14
#define TOP 64

static const char *const colors[] = { "#7a8699", "#1f6feb", "#2da44e", "#bf5af2",
				      "#d9822b", "#cf222e", "#0d9488", "#6e5494" };

static const char *color_of(size_t series)
{
	return colors[series % (sizeof(colors) / sizeof(colors[0]))];
}

static void put_text(FILE *file, double x, double y, const char *anchor, const char *style,
		     const char *text)
{
	fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" %s>", x, y, anchor, style);
	shunt_html_text(file, text);
	fputs("</text>\n", file);
}

/* White behind it: a picture may be shown on a dark page. */
static void begin(FILE *file, int height, const char *title)
{
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
		"font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#1f2328\">\n<title>",
		WIDTH, height, WIDTH, height);
	shunt_html_text(file, title);
	fprintf(file, "</title>\n<rect width=\"%d\" height=\"%d\" rx=\"6\" fill=\"#ffffff\"/>\n",
		WIDTH, height);
	put_text(file, 16, 24, "start", "font-size=\"15\" font-weight=\"600\"", title);
}

static void put_legend(FILE *file, const char *const *series, size_t count, const char *unit)
{
	double x = 16;

	for (size_t i = 0; i < count; i++) {
		fprintf(file,
			"<rect x=\"%.1f\" y=\"37\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n",
			x, color_of(i));
		put_text(file, x + 17, 48, "start", "", series[i]);
		x += 36 + 7.2 * (double)strlen(series[i]);
	}
	if (unit && *unit)
		put_text(file, WIDTH - 16, 48, "end", "fill=\"#59636e\"", unit);
}

/* Digits that a figure has: small ones have some behind the point. */
static const char *figure_text(double value, char buf[16])
{
	if (value >= 999.5e6)
		snprintf(buf, 16, "%.3gG", value / 1e9);
	else if (value >= 999.5e3)
		snprintf(buf, 16, "%.3gM", value / 1e6);
	else if (value >= 999.5)
		snprintf(buf, 16, "%.3gk", value / 1e3);
	else
		snprintf(buf, 16, "%.3g", value);
	return buf;
}

static double largest(const struct shunt_chart_value *values, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i].middle) && values[i].max > most)
			most = values[i].max;
	return most > 0 ? most : 1;
}

/* ---- bars ---- */

static void put_bar(FILE *file, const struct shunt_chart_value *value, size_t series, double y,
		    double scale)
{
	double middle = y + BAR / 2.0;
	char text[16];

	if (isnan(value->middle))
		return;
	fprintf(file,
		"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n",
		NAMES, y, fmax(value->middle * scale, 1), BAR - 2, color_of(series));
	if (value->max > value->min)
		fprintf(file,
			"<path d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6\" stroke=\"#1f2328\" stroke-width=\"1.2\" fill=\"none\"/>\n",
			NAMES + value->min * scale, middle - 1, NAMES + value->max * scale,
			NAMES + value->min * scale, middle - 4, NAMES + value->max * scale,
			middle - 4);
	put_text(file, NAMES + fmax(value->max, value->middle) * scale + 6, y + 11, "start",
		 "font-size=\"12\"", figure_text(value->middle, text));
}

void shunt_chart_bars(FILE *file, const struct shunt_chart_bars *chart)
{
	size_t per = chart->series_count, count = chart->row_count * per;
	double row_height = BAR * (double)per + GAP, room = WIDTH - NAMES - FIGURES;

	begin(file, (int)(TOP + row_height * (double)chart->row_count + 6), chart->title);
	put_legend(file, chart->series, per, chart->unit);
	for (size_t row = 0; row < chart->row_count; row++) {
		const struct shunt_chart_value *values = chart->values + row * per;
		double y = TOP + row_height * (double)row;
		char name[NAME_MAX_CHARS + 1];
		double scale = room /
			       (chart->each ? largest(values, per) : largest(chart->values, count));

		snprintf(name, sizeof(name),
			 strlen(chart->rows[row]) < sizeof(name) ? "%s" : "%.31s...",
			 chart->rows[row]);
		put_text(file, NAMES - 10, y + row_height / 2 - 3, "end", "", name);
		for (size_t i = 0; i < per; i++)
			put_bar(file, &values[i], i, y + BAR * (double)i, scale);
		if (chart->notes && chart->notes[row])
			put_text(file, WIDTH - 16, y + row_height / 2 - 3, "end",
				 "font-weight=\"600\"", chart->notes[row]);
	}
	fputs("</svg>\n", file);
}

/* ---- lines ---- */

#define LEFT 70.0
#define RIGHT (WIDTH - 24.0)
#define UPPER 70.0
#define LOWER 330.0
#define HEIGHT 380

struct scale {
	double low, high; /* logarithms where it is one */
	int log;
};

static double place(const struct scale *scale, double value, double from, double to)
{
	double at = scale->log ? log10(value) : value;

	return scale->high > scale->low ?
		       from + (at - scale->low) / (scale->high - scale->low) * (to - from) :
		       (from + to) / 2;
}

static struct scale scale_of(const struct shunt_chart_value *values, size_t count)
{
	double most = largest(values, count), least = most;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i].middle) && values[i].min > 0 && values[i].min < least)
			least = values[i].min;
	if (most / least < 20)
		return (struct scale) { 0, most * 1.05, 0 };
	return (struct scale) { floor(log10(least)), ceil(log10(most)), 1 };
}

static void put_grid(FILE *file, const struct scale *y)
{
	double step = y->log ? 1 : pow(10, floor(log10(y->high)));
	char text[16];

	if (!y->log && y->high / step < 3)
		step /= y->high / step < 1.5 ? 5 : 2;
	for (double at = y->low; at <= y->high + step / 1000; at += step) {
		double value = y->log ? pow(10, at) : at, height = place(y, value, LOWER, UPPER);

		fprintf(file, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#d1d9e0\"/>\n", LEFT, height,
			RIGHT);
		put_text(file, LEFT - 8, height + 4, "end", "font-size=\"12\" fill=\"#59636e\"",
			 figure_text(value, text));
	}
}

/* "64", "4K", "1M": sizes have powers of two. */
static const char *size_text(double value, char buf[16])
{
	if (value >= 1 << 20 && fmod(value, 1 << 20) == 0)
		snprintf(buf, 16, "%.0fM", value / (1 << 20));
	else if (value >= 1024 && fmod(value, 1024) == 0)
		snprintf(buf, 16, "%.0fK", value / 1024);
	else
		snprintf(buf, 16, "%.0f", value);
	return buf;
}

static void put_series(FILE *file, const struct shunt_chart_lines *chart, size_t series,
		       const struct scale *x, const struct scale *y)
{
	const struct shunt_chart_value *values = chart->values + series * chart->x_count;
	const char *color = color_of(series);
	int begun = 0;

	fputs("<path d=\"", file);
	for (size_t i = 0; i < chart->x_count; i++) {
		if (isnan(values[i].middle) || values[i].middle <= 0)
			continue;
		fprintf(file, "%c%.1f %.1f", begun ? 'L' : 'M', place(x, chart->x[i], LEFT, RIGHT),
			place(y, values[i].middle, LOWER, UPPER));
		begun = 1;
	}
	fprintf(file, "\" stroke=\"%s\" stroke-width=\"2\" fill=\"none\"/>\n", color);
	for (size_t i = 0; i < chart->x_count; i++) {
		double at = place(x, chart->x[i], LEFT, RIGHT);

		if (isnan(values[i].middle) || values[i].middle <= 0)
			continue;
		if (values[i].max > values[i].min && values[i].min > 0)
			fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", at,
				place(y, values[i].min, LOWER, UPPER),
				place(y, values[i].max, LOWER, UPPER), color);
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", at,
			place(y, values[i].middle, LOWER, UPPER), color);
	}
}

void shunt_chart_lines(FILE *file, const struct shunt_chart_lines *chart)
{
	struct scale y = scale_of(chart->values, chart->series_count * chart->x_count);
	struct scale x = { log10(chart->x[0]), log10(chart->x[chart->x_count - 1]), 1 };
	char text[16];

	begin(file, HEIGHT, chart->title);
	put_legend(file, chart->series, chart->series_count, chart->y_title);
	put_grid(file, &y);
	for (size_t i = 0; i < chart->x_count; i++)
		put_text(file, place(&x, chart->x[i], LEFT, RIGHT), LOWER + 18, "middle",
			 "font-size=\"12\" fill=\"#59636e\"", size_text(chart->x[i], text));
	put_text(file, (LEFT + RIGHT) / 2, HEIGHT - 12, "middle", "fill=\"#59636e\"",
		 chart->x_title);
	for (size_t i = 0; i < chart->series_count; i++)
		put_series(file, chart, i, &x, &y);
	fputs("</svg>\n", file);
}
