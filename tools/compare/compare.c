/* SPDX-License-Identifier: MIT */
/* shunt perf programs: the same programs over plain TCP and shunted, in turns, so that both see the same machine. */
#include "tools/compare/compare.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/page/page.h"
#include "tools/shunt.h"

static const char help[] =
	"Usage: shunt perf programs [--quick] [--rounds N] [--seconds N] [--only NAME,...] [--json]\n"
	"                     [--html FILE] [--svg FILE]\n"
	"       shunt perf programs --list\n\n"
	"Runs redis-benchmark against redis-server and iperf3 against iperf3, over plain TCP and\n"
	"shunted in turns, on a loopback port, and shows how they compare. Workloads of a program\n"
	"that is missing are skipped.\n\n"
	"  --quick       a few workloads, 3 rounds; about a minute\n"
	"  --rounds N    measurements of each workload and kind, 1 to 99 [5]\n"
	"  --seconds N   length of a measurement, 1 to 600 [redis about 1, iperf3 2]\n"
	"  --only NAMES  these workloads, separated by commas\n"
	"  --list        the names of the workloads\n"
	"  --json        the result as JSON\n"
	"  --html FILE   the result as a page with pictures\n"
	"  --svg FILE    one picture of all workloads\n\n"
	"Exit status: 0, or 1 if a workload failed.\n";

struct options {
	int quick, rounds, json;
	double seconds;		/* 0: the family's own */
	char *only;
	const char *html, *svg;
};

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt perf programs: %s '%s'; `shunt perf programs --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int list(void)
{
	for (size_t i = 0; i < compare_workload_count; i++)
		printf("%-8s %c %s\n", compare_workloads[i].name,
		       compare_workloads[i].quick ? 'q' : ' ', compare_workloads[i].title);
	return 0;
}

static int parse_number(const char *text, int max, int *number)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end || end == text || n < 1 || n > max)
		return -1;
	*number = (int)n;
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "quick", no_argument, NULL, 'q' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "only", required_argument, NULL, 'o' },
		{ "list", no_argument, NULL, 'l' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "html", required_argument, NULL, 'H' },
		{ "svg", required_argument, NULL, 'V' },
		{ 0 },
	};
	int c, n = 0;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == 'q') {
			options->quick = 1;
		} else if (c == 'r') {
			if (parse_number(optarg, COMPARE_ROUNDS_MAX, &options->rounds))
				return usage_error("not a number of rounds from 1 to 99:", optarg);
		} else if (c == 's') {
			if (parse_number(optarg, 600, &n))
				return usage_error("not a number of seconds from 1 to 600:", optarg);
			options->seconds = n;
		} else if (c == 'o') {
			options->only = optarg;
		} else if (c == 'j') {
			options->json = 1;
		} else if (c == 'H') {
			options->html = optarg;
		} else if (c == 'V') {
			options->svg = optarg;
		} else if (c == 'l') {
			exit(list());
		} else if (c == 'h') {
			fputs(help, stdout);
			exit(0);
		} else {
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return usage_error("an argument that is no option:", argv[optind]);
	if (!options->rounds)
		options->rounds = options->quick ? 3 : 5;
	return 0;
}

static const struct compare_workload *find_workload(const char *name)
{
	for (size_t i = 0; i < compare_workload_count; i++)
		if (!strcmp(compare_workloads[i].name, name))
			return &compare_workloads[i];
	return NULL;
}

/* The workloads asked for, in results[]; 0 after saying what is wrong. */
static size_t choose(const struct options *options, struct compare_result *results)
{
	size_t count = 0;
	char *name, *names = options->only;

	while (names && (name = strsep(&names, ","))) {
		const struct compare_workload *w = find_workload(name);

		if (!w) {
			usage_error("no workload (see --list)", name);
			return 0;
		}
		if (count < compare_workload_count)
			results[count++].workload = w;
	}
	for (size_t i = 0; !options->only && i < compare_workload_count; i++)
		if (!options->quick || compare_workloads[i].quick)
			results[count++].workload = &compare_workloads[i];
	return count;
}

static double seconds_of(const struct options *options, const struct compare_workload *w)
{
	if (options->seconds > 0)
		return options->seconds;
	return w->family == COMPARE_REDIS ? 1 : 2;
}

/* So many that SET and GET together take about that long, going by the last figure. */
static uint64_t requests_for(double rate, double seconds)
{
	double n = rate * seconds / 2;

	return n < 10000 ? 10000 : (uint64_t)n;
}

/* A short first run tells how many requests to ask redis for; it is not counted. */
static int warm_up(const struct compare_bench *bench, struct compare_result *result,
		   double rate[COMPARE_MODES])
{
	const struct compare_workload *w = result->workload;
	struct compare_run run;
	int rc;

	for (int mode = 0; mode < COMPARE_MODES && w->family == COMPARE_REDIS; mode++) {
		rc = compare_measure(bench, w, mode, 20000 * (uint64_t)w->pipeline, 1, &run,
				     result->why);
		if (rc)
			return rc;
		rate[mode] = run.figure;
	}
	return 0;
}

static int run_rounds(const struct compare_bench *bench, const struct options *options,
		      struct compare_result *result, size_t index, size_t count)
{
	double rate[COMPARE_MODES] = { 0 }, seconds = seconds_of(options, result->workload);
	int rc;

	compare_report_progress(result, index, count, options->rounds);
	rc = warm_up(bench, result, rate);
	while (!rc && result->rounds < options->rounds) {
		compare_report_progress(result, index, count, options->rounds);
		for (int mode = 0; mode < COMPARE_MODES && !rc; mode++) {
			struct compare_run *run = &result->runs[mode][result->rounds];

			rc = compare_measure(bench, result->workload, mode,
					     requests_for(rate[mode], seconds), seconds, run,
					     result->why);
			rate[mode] = run->figure;
		}
		if (!rc)
			result->rounds++;
	}
	return rc;
}

/* 0, or -EINTR: the only thing that ends all of it. */
static int run_workload(const struct compare_bench *bench, const struct options *options,
			struct compare_result *result, size_t index, size_t count)
{
	const char *missing = compare_workload_missing(result->workload);
	int rc = 0;

	if (missing) {
		result->skipped = 1;
		snprintf(result->why, sizeof(result->why), "%s", missing);
	} else {
		rc = run_rounds(bench, options, result, index, count);
		result->failed = rc && rc != -EINTR;
	}
	if (rc != -EINTR)
		compare_report_progress_end(result);
	return rc == -EINTR ? rc : 0;
}

static int open_bench(struct compare_bench *bench)
{
	int rc = shunt_child_init();

	if (rc) {
		fprintf(stderr, "shunt perf programs: signals: %s\n", strerror(-rc));
		return -1;
	}
	if (shunt_library_find(bench->library))
		return -1;
	return shunt_scratch_make("compare", bench->dir);
}

static int run_all(const struct options *options, struct compare_result *results, size_t count)
{
	struct compare_bench bench;
	struct shunt_host host;
	int rc = 0, failed = 0;

	if (shunt_page_check("shunt perf programs", options->html) ||
	    shunt_page_check("shunt perf programs", options->svg) || open_bench(&bench))
		return EXIT_FAILED;
	for (size_t i = 0; i < count && !rc; i++) {
		rc = run_workload(&bench, options, &results[i], i, count);
		failed |= results[i].failed;
	}
	shunt_scratch_remove(bench.dir);
	shunt_host_read(&host, "");
	if (rc)
		fprintf(stderr, "\nshunt perf programs: interrupted; what is complete follows\n");
	else
		shunt_host_measure(&host);
	if (options->json)
		compare_report_json(results, count, options->rounds, &host);
	else
		compare_report_table(results, count, &host);
	if (options->html && compare_html(results, count, &host, options->html))
		failed = 1;
	if (options->svg && compare_svg(results, count, options->svg))
		failed = 1;
	return rc ? 130 : failed ? EXIT_FAILED : 0;
}

int shunt_compare(int argc, char **argv)
{
	struct options options = { 0 };
	struct compare_result *results;
	size_t count;
	int rc = parse(&options, argc, argv);

	if (rc)
		return rc;
	if (shunt_variables_check("shunt perf programs"))
		return EXIT_USAGE;
	results = calloc(compare_workload_count, sizeof(*results));
	if (!results)
		abort();
	count = choose(&options, results);
	rc = count ? run_all(&options, results, count) : EXIT_USAGE;
	free(results);
	return rc;
}
