/* SPDX-License-Identifier: MIT */
#include "tools/page/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 800
#define NAMES 230 /* room for the names of rows */
#define NAME_MAX_CHARS 34
#define FIGURES 120 /* room behind bars */
#define BAR 16
#define GAP 14
#define TOP 64
#define DIM "fill=\"#59636e\""
#define SMALL "font-size=\"12\""

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
	shunt_page_text(file, text);
	fputs("</text>\n", file);
}

/* White behind it: a picture may be shown on a dark page. */
static void begin(FILE *file, int height, const char *title)
{
	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
		"font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#1f2328\">\n<title>",
		WIDTH, height, WIDTH, height);
	shunt_page_text(file, title);
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
	put_text(file, WIDTH - 16, 48, "end", DIM, unit);
}

/* Digits that a figure has: small ones have some behind the point. */
static const char *figure_text(double value, char buf[16])
{
	static const char prefixes[] = " kMG";
	int prefix = 0;

	for (; value >= 999.5 && prefix < 3; prefix++)
		value /= 1000;
	snprintf(buf, 16, "%.3g%.*s", value, prefix > 0, prefixes + prefix);
	return buf;
}

/* 0: no value is known, or above 0. */
static double largest(const struct shunt_spread *values, size_t count)
{
	double most = 0;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i].median))
			most = fmax(most, values[i].max);
	return most;
}

/* ---- bars ---- */

static void put_bar(FILE *file, const struct shunt_spread *value, size_t series, double y,
		    double scale)
{
	double middle = y + BAR / 2.0;
	char text[16];

	if (isnan(value->median))
		return;
	fprintf(file,
		"<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n",
		NAMES, y, fmax(value->median * scale, 1), BAR - 2, color_of(series));
	if (value->max > value->min)
		fprintf(file,
			"<path d=\"M%.1f %.1fH%.1fM%.1f %.1fv6M%.1f %.1fv6\" stroke=\"#1f2328\" stroke-width=\"1.2\" fill=\"none\"/>\n",
			NAMES + value->min * scale, middle - 1, NAMES + value->max * scale,
			NAMES + value->min * scale, middle - 4, NAMES + value->max * scale,
			middle - 4);
	put_text(file, NAMES + fmax(value->max, value->median) * scale + 6, y + 11, "start", SMALL,
		 figure_text(value->median, text));
}

static double row_height(const struct shunt_chart_bars *chart)
{
	return BAR * (double)chart->series_count + GAP;
}

void shunt_chart_row(struct shunt_chart_bars *chart, const char *name, const char *note,
		     const struct shunt_spread *values)
{
	double y = TOP + row_height(chart) * (double)chart->row_count++;
	double middle = y + row_height(chart) / 2 - 3, most = largest(values, chart->series_count);
	char text[NAME_MAX_CHARS + 1];

	if (!chart->file)
		chart->file = open_memstream(&chart->text, &chart->bytes);
	if (!chart->file)
		abort();
	snprintf(text, sizeof(text), strlen(name) < sizeof(text) ? "%s" : "%.31s...", name);
	put_text(chart->file, NAMES - 10, middle, "end", "", text);
	for (size_t i = 0; i < chart->series_count; i++)
		put_bar(chart->file, &values[i], i, y + BAR * (double)i,
			most > 0 ? (WIDTH - NAMES - FIGURES) / most : 0);
	if (*note)
		put_text(chart->file, WIDTH - 16, middle, "end", "font-weight=\"600\"", note);
}

void shunt_chart_pair(struct shunt_chart_bars *chart, const char *name, double ratio,
		      struct shunt_spread tcp, struct shunt_spread shunt)
{
	static const char *const series[] = { "plain TCP", "Shunt" };
	struct shunt_spread values[] = { tcp, shunt };
	char note[24];

	snprintf(note, sizeof(note), isfinite(ratio) ? "x %.2f" : "", ratio);
	chart->series = series;
	chart->series_count = 2;
	shunt_chart_row(chart, name, note, values);
}

void shunt_chart_bars(struct shunt_page *page, struct shunt_chart_bars *chart)
{
	FILE *file = shunt_page_next(page);

	if (!chart->file)
		return;
	if (fclose(chart->file))
		abort();
	begin(file, (int)(TOP + row_height(chart) * (double)chart->row_count + 6), chart->title);
	put_legend(file, chart->series, chart->series_count, chart->unit);
	fprintf(file, "%s</svg>\n", chart->text);
	free(chart->text);
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

static struct scale scale_of(const struct shunt_spread *values, size_t count)
{
	double most = largest(values, count), least = most;

	for (size_t i = 0; i < count; i++)
		if (!isnan(values[i].median) && values[i].min > 0 && values[i].min < least)
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
		put_text(file, LEFT - 8, height + 4, "end", SMALL " " DIM,
			 figure_text(value, text));
	}
}

/* "64", "4K", "1M": sizes have powers of two. */
static const char *size_text(double value, char buf[16])
{
	static const char prefixes[] = " KM";
	int prefix = 0;

	for (; value >= 1024 && fmod(value, 1024) == 0 && prefix < 2; prefix++)
		value /= 1024;
	snprintf(buf, 16, "%.0f%.*s", value, prefix > 0, prefixes + prefix);
	return buf;
}

static void put_series(FILE *file, const struct shunt_chart_lines *chart, size_t series,
		       const struct scale *x, const struct scale *y)
{
	const struct shunt_spread *values = chart->values + series * chart->x_count;
	const char *color = color_of(series);
	double last_at = NAN, last_height = NAN;

	for (size_t i = 0; i < chart->x_count; i++) {
		double at = place(x, chart->x[i], LEFT, RIGHT), height;

		if (!(values[i].median > 0))
			continue;
		height = place(y, values[i].median, LOWER, UPPER);
		if (!isnan(last_at))
			fprintf(file,
				"<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" stroke-width=\"2\"/>\n",
				last_at, last_height, at, height, color);
		if (values[i].max > values[i].min && values[i].min > 0)
			fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"%s\"/>\n", at,
				place(y, values[i].min, LOWER, UPPER),
				place(y, values[i].max, LOWER, UPPER), color);
		fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", at,
			height, color);
		last_at = at;
		last_height = height;
	}
}

void shunt_chart_lines(struct shunt_page *page, const struct shunt_chart_lines *chart)
{
	FILE *file = shunt_page_next(page);
	size_t count = chart->series_count * chart->x_count;
	struct scale y = scale_of(chart->values, count);
	struct scale x = { log10(chart->x[0]), log10(chart->x[chart->x_count - 1]), 1 };
	char text[16];

	if (!(largest(chart->values, count) > 0))
		return;
	begin(file, HEIGHT, chart->title);
	put_legend(file, chart->series, chart->series_count, chart->y_title);
	put_grid(file, &y);
	for (size_t i = 0; i < chart->x_count; i++)
		put_text(file, place(&x, chart->x[i], LEFT, RIGHT), LOWER + 18, "middle",
			 SMALL " " DIM, size_text(chart->x[i], text));
	put_text(file, (LEFT + RIGHT) / 2, HEIGHT - 12, "middle", DIM, chart->x_title);
	for (size_t i = 0; i < chart->series_count; i++)
		put_series(file, chart, i, &x, &y);
	fputs("</svg>\n", file);
}
