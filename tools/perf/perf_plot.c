/* SPDX-License-Identifier: MIT */
/* A picture of the medians, drawn by gnuplot. */
#include "tools/perf/perf.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "tools/shunt.h"

#define PLOT_SECONDS 60

static const char *ending(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot : "";
}

int perf_plot_check(const char *path)
{
	char gnuplot[PATH_MAX];

	if (strcasecmp(ending(path), ".png") && strcasecmp(ending(path), ".svg")) {
		fprintf(stderr, "shunt perf: a plot is a .png or a .svg, not '%s'\n", path);
		return -1;
	}
	for (const char *c = path; *c; c++) {
		if (iscntrl((unsigned char)*c)) {
			fprintf(stderr, "shunt perf: the name of the plot has control characters\n");
			return -1;
		}
	}
	if (shunt_program_find("gnuplot", gnuplot)) {
		fprintf(stderr, "shunt perf: no plot without gnuplot, which is not installed (package "
				"gnuplot-nox); nothing was started\n");
		return -1;
	}
	return 0;
}

/* Within single quotes gnuplot knows one special character. */
static void put_quoted(FILE *script, const char *text)
{
	fputc('\'', script);
	for (; *text; text++)
		fprintf(script, *text == '\'' ? "''" : "%c", *text);
	fputc('\'', script);
}

/* A line for each flow of each model, a column for each transport. */
static void put_data(FILE *script, const char *name, const struct perf_result *results, size_t count,
		     enum perf_metric metric)
{
	char label[PERF_NAME_MAX + 32];

	fprintf(script, "$%s << END\n", name);
	for (size_t i = 0; i < count; i++) {
		for (size_t f = 0; f < results[i].model->flow_count && results[i].rounds; f++) {
			fprintf(script, "\"%s\"", perf_label(results[i].model, f, label));
			for (size_t t = 0; t < results[i].transports->count; t++) {
				double value = perf_result_median(&results[i], t, f, metric);

				fprintf(script, isnan(value) || value <= 0 ? " NaN" : " %.15g", value);
			}
			fputc('\n', script);
		}
	}
	fputs("END\n", script);
}

static const struct {
	const char *name, *title;
	enum perf_metric metric;
} panels[] = {
	{ "rates", "operations/s", PERF_RATE },
	{ "medians", "median latency, us", PERF_P50 },
	{ "tails", "99th percentile of latency, us", PERF_P99 },
};

#define PANELS (sizeof(panels) / sizeof(panels[0]))

/* The smallest figure that can be drawn, or 0: streams have no latencies. */
static double smallest(const struct perf_result *results, size_t count, enum perf_metric metric)
{
	double least = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t f = 0; f < results[i].model->flow_count && results[i].rounds; f++) {
			for (size_t t = 0; t < results[i].transports->count; t++) {
				double value = perf_result_median(&results[i], t, f, metric);

				if (value > 0 && (value < least || least <= 0))
					least = value;
			}
		}
	}
	return least;
}

static void put_panel(FILE *script, const char *name, const char *title, double least,
		      const struct perf_transports *transports)
{
	fprintf(script, "set title '%s'\nset yrange [%.6g:*]\nplot", title, least / 2);
	for (size_t t = 0; t < transports->count; t++)
		fprintf(script, "%s $%s using %zu%s title '%s'", t ? "," : "", name, t + 2,
			t ? "" : ":xtic(1)", transports->list[t].name);
	fputc('\n', script);
}

static void put_script(FILE *script, const char *path, const struct perf_result *results, size_t count)
{
	size_t drawn = 0;

	for (size_t i = 0; i < PANELS; i++)
		drawn += smallest(results, count, panels[i].metric) > 0;
	fprintf(script, "set terminal %s size 1200,%zu\nset output ",
		strcasecmp(ending(path), ".svg") ? "pngcairo" : "svg", 400 * drawn);
	put_quoted(script, path);
	fprintf(script, "\nset style data histograms\nset style fill solid 0.8\nset logscale y\n"
		"set grid y\nset key noenhanced outside right\nset xtics noenhanced rotate by -20\n"
		"set bmargin 4\nset multiplot layout %zu,1\n", drawn);
	for (size_t i = 0; i < PANELS; i++) {
		double least = smallest(results, count, panels[i].metric);

		if (least <= 0)
			continue;
		put_data(script, panels[i].name, results, count, panels[i].metric);
		put_panel(script, panels[i].name, panels[i].title, least, results[0].transports);
	}
	fputs("unset multiplot\n", script);
}

static int draw(const struct perf_bench *bench, const char *script, const char *path)
{
	char out[SHUNT_FILE_MAX], err[SHUNT_FILE_MAX], why[SHUNT_WHY_MAX];
	char *argv[] = { "gnuplot", (char *)script, NULL };
	struct shunt_child_start start = { .argv = argv, .out = out, .err = err, .dir = "." };
	struct shunt_child gnuplot;
	int rc;

	snprintf(out, sizeof(out), "%s/gnuplot.out", bench->dir);
	snprintf(err, sizeof(err), "%s/gnuplot.err", bench->dir);
	rc = shunt_child_start(&gnuplot, &start);
	if (!rc)
		rc = shunt_child_wait(&gnuplot, PLOT_SECONDS);
	shunt_child_stop(&gnuplot);
	if (!rc && WIFEXITED(gnuplot.status) && !WEXITSTATUS(gnuplot.status))
		return 0;
	if (shunt_child_explain("drawing", rc ? rc : -ECHILD, &gnuplot, out, err, why) != -EINTR)
		fprintf(stderr, "shunt perf: no plot in %s: %s\n", path, why);
	return -1;
}

int perf_plot(const struct perf_bench *bench, const char *path, const struct perf_result *results,
	      size_t count)
{
	char name[SHUNT_FILE_MAX];
	FILE *script;

	if (smallest(results, count, PERF_RATE) <= 0) {
		fprintf(stderr, "shunt perf: no plot in %s: there is nothing to draw\n", path);
		return -1;
	}
	snprintf(name, sizeof(name), "%s/plot", bench->dir);
	script = fopen(name, "we");
	if (script)
		put_script(script, path, results, count);
	if (!script || fclose(script)) {
		fprintf(stderr, "shunt perf: no plot: cannot write %s: %m\n", name);
		return -1;
	}
	return draw(bench, name, path);
}
