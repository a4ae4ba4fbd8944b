/* SPDX-License-Identifier: MIT */
/* shunt perf: models of traffic between two plain socket programs, over several transports in turns. */
#include "tools/perf.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/html.h"
#include "tools/perf_qos.h"
#include "tools/shunt.h"

#define WARM_MS 100
#define WORK 1000 /* options of perf_work_field(), in its order */

static const char help[] =
	"Usage: shunt perf [OPTIONS] MODEL...\n"
	"       shunt perf qos [OPTIONS]    (clients with classes: shunt perf qos --help)\n\n"
	"Measures models of traffic between two plain socket programs of its own, over plain TCP and\n"
	"shunted in turns, on the loopback interface, and shows rates, percentiles of latency and costs.\n"
	"Every byte is checked, unless --scan says otherwise. BYTES may have the suffix K or M.\n\n"
	"Models:\n"
	"%s\n"
	"Options:\n"
	"  --transports LIST     tcp, shunt, or both [tcp,shunt]\n"
	"  --variant NAME=SHUNT_A=VALUE,SHUNT_B=VALUE...\n"
	"                        also shunted with these variables; may be given several times\n"
	"  --rounds N            measurements of each model and transport, 1 to 99 [5]\n"
	"  --spread PERCENT      more rounds until the relative standard deviation of OPS/S from round to\n"
	"                        round is below it for every transport; at least 2 rounds\n"
	"  --max-rounds N        limit of these rounds, 2 to 99 [30]\n"
	"  --cpu SERVER[,CLIENT] the CPUs of the two ends, numbers or ranges as in 0,2-3\n"
	"  --seconds S           length of a measurement, 0.01 to 600 [1]; each is preceded by 0.1 s\n"
	"                        that does not count\n"
	"  --threads N           threads of the client, 1 to 64 [1]\n"
	"  --depth N             requests outstanding on each connection, 1 to 4096 [1; a cluster's size]\n"
	"%s"
	"  --csv FILE            all rounds as comma-separated values\n"
	"  --json FILE           all rounds as JSON\n"
	"  --html FILE           a page with tables and pictures\n"
	"  --plot FILE           a picture of the medians, .png or .svg; needs gnuplot\n\n"
	"Exit status: 0, or 1 if a model failed or a file could not be written.\n";

struct options {
	struct perf_transports transports;
	struct perf_setup setup;
	uint32_t depth;
	const char *csv_path, *json_path, *plot_path, *html_path;
	FILE *csv, *json;
	struct perf_model models[PERF_MODELS_MAX];
	size_t model_count;
};

static int usage_error(const char *what, const char *text)
{
	fprintf(stderr, "shunt perf: %s '%s'; `shunt perf --help` says how\n", what, text);
	return EXIT_USAGE;
}

static int parse_seconds(const char *text, unsigned int *ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.01 && seconds <= PERF_SECONDS_MAX))
		return usage_error("not a number of seconds from 0.01 to 600:", text);
	*ms = (unsigned int)(seconds * 1000 + 0.5);
	return 0;
}

static int parse_spread(const char *text, double *percent)
{
	char *end;

	*percent = strtod(text, &end);
	if (end != text && (!*end || !strcmp(end, "%")) && *percent >= 0.1 && *percent <= 100)
		return 0;
	return usage_error("not a spread from 0.1 to 100 percent:", text);
}

static int parse_cpus(const char *text, struct perf_pin *pin)
{
	char why[SHUNT_WHY_MAX];

	if (!perf_pin_parse(pin, text, why))
		return 0;
	fprintf(stderr, "shunt perf: --cpu %s: %s\n", text, why);
	return EXIT_USAGE;
}

static int parse_work(struct options *options, size_t field, const char *name)
{
	char what[64];

	if (!perf_work_set(&options->setup.work, field, name))
		return 0;
	snprintf(what, sizeof(what), "--%s is %s, not", perf_work_field(field),
		 perf_work_names(field));
	return usage_error(what, name);
}

/* A list of transports starts anew, so variants are added when all options are known. */
struct variants {
	const char *list[PERF_TRANSPORTS_MAX];
	size_t count;
};

static int parse_option(struct options *options, struct variants *variants, int option)
{
	uint64_t n;

	switch (option) {
	case 't':
		return perf_transports_parse(&options->transports, optarg) ? EXIT_USAGE : 0;
	case 'v':
		if (variants->count == PERF_TRANSPORTS_MAX)
			return usage_error("more than 16 variants:", optarg);
		variants->list[variants->count++] = optarg;
		return 0;
	case 'r':
		if (perf_number(optarg, 1, PERF_ROUNDS_MAX, &n))
			return usage_error("not a number of rounds from 1 to 99:", optarg);
		options->setup.rounds = (int)n;
		return 0;
	case 's':
		return parse_seconds(optarg, &options->setup.measured_ms);
	case 'n':
		if (perf_number(optarg, 1, PERF_THREADS_MAX, &n))
			return usage_error("not a number of threads from 1 to 64:", optarg);
		options->setup.threads = (unsigned int)n;
		return 0;
	case 'd':
		if (perf_number(optarg, 1, PERF_DEPTH_MAX, &n))
			return usage_error("not a depth from 1 to 4096:", optarg);
		options->depth = (uint32_t)n;
		return 0;
	case 'R':
		if (perf_number(optarg, 2, PERF_ROUNDS_MAX, &n))
			return usage_error("not a limit of rounds from 2 to 99:", optarg);
		options->setup.max_rounds = (int)n;
		return 0;
	case 'S':
		return parse_spread(optarg, &options->setup.spread);
	case 'C':
		return parse_cpus(optarg, &options->setup.pin);
	case 'c':
		options->csv_path = optarg;
		return 0;
	case 'j':
		options->json_path = optarg;
		return 0;
	case 'p':
		options->plot_path = optarg;
		return 0;
	case 'H':
		options->html_path = optarg;
		return 0;
	case 'h':
		printf(help, perf_model_help, perf_work_help);
		exit(0);
	default:
		return option >= WORK ? parse_work(options, (size_t)(option - WORK), optarg) :
					EXIT_USAGE;
	}
}

static int parse_models(struct options *options, char **names)
{
	char why[SHUNT_WHY_MAX];

	if (!*names)
		return usage_error("no model, such as", "pingpong");
	for (; *names; names++) {
		if (options->model_count == PERF_MODELS_MAX)
			return usage_error("more than 32 models:", *names);
		if (perf_model_parse(&options->models[options->model_count], *names, options->depth,
				     why)) {
			fprintf(stderr, "shunt perf: %s: %s; `shunt perf --help` says how\n", *names, why);
			return EXIT_USAGE;
		}
		options->model_count++;
	}
	return 0;
}

static int parse(struct options *options, int argc, char **argv)
{
	static const struct option names[] = {
		{ "transports", required_argument, NULL, 't' },
		{ "variant", required_argument, NULL, 'v' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 's' },
		{ "threads", required_argument, NULL, 'n' },
		{ "depth", required_argument, NULL, 'd' },
		{ "cpu", required_argument, NULL, 'C' },
		{ "spread", required_argument, NULL, 'S' },
		{ "max-rounds", required_argument, NULL, 'R' },
		{ "csv", required_argument, NULL, 'c' },
		{ "json", required_argument, NULL, 'j' },
		{ "plot", required_argument, NULL, 'p' },
		{ "html", required_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' },
		{ "touch", required_argument, NULL, WORK },
		{ "touch-op", required_argument, NULL, WORK + 1 },
		{ "scan", required_argument, NULL, WORK + 2 },
		{ "access", required_argument, NULL, WORK + 3 },
		{ "side", required_argument, NULL, WORK + 4 },
		{ "buffers", required_argument, NULL, WORK + 5 },
		{ 0 },
	};
	struct variants variants = { .count = 0 };
	int c, rc = 0;

	options->setup = (struct perf_setup) {
		.warm_ms = WARM_MS, .measured_ms = 1000, .threads = 1, .rounds = 5, .max_rounds = 30
	};
	perf_transports_parse(&options->transports, "tcp,shunt");
	while (!rc && (c = getopt_long(argc, argv, "", names, NULL)) != -1)
		rc = parse_option(options, &variants, c);
	for (size_t i = 0; i < variants.count && !rc; i++)
		if (perf_transports_variant(&options->transports, variants.list[i]))
			rc = EXIT_USAGE;
	perf_work_settle(&options->setup.work);
	if (!rc && options->setup.spread > 0) {
		if (options->setup.rounds < 2)
			options->setup.rounds = 2;
		if (options->setup.rounds > options->setup.max_rounds)
			rc = usage_error("more rounds than --max-rounds allows:", "--rounds");
	}
	return rc ? rc : parse_models(options, argv + optind);
}

/* ---- rounds ---- */

static void show_progress(const struct options *options, const struct perf_result *result,
			  const char *what)
{
	char label[PERF_NAME_MAX + 32];

	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K[%td/%zu] %s, round %d of %d, %s",
			result->model - options->models + 1, options->model_count,
			perf_label(result->model, 0, label), result->rounds + 1,
			options->setup.spread > 0 ? options->setup.max_rounds :
						    options->setup.rounds,
			what);
}

static void end_progress(void)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

static int run_round(const struct perf_bench *bench, const struct options *options,
		     struct perf_result *result)
{
	int rc = 0;

	for (size_t t = 0; t < options->transports.count && !rc; t++) {
		const struct perf_transport *transport = &options->transports.list[t];
		char why[SHUNT_WHY_MAX];

		show_progress(options, result, transport->name);
		rc = perf_measure(bench, result->model, transport, &options->setup,
				  perf_result_run(result, result->rounds, t), why);
		if (rc == -1)
			snprintf(result->why, sizeof(result->why), "%s: %.400s", transport->name, why);
	}
	if (rc)
		return rc;
	perf_result_compare(result, result->rounds);
	result->rounds++;
	return 0;
}

/* What was found for an earlier model with the same requests, or 0. */
static uint32_t known_large(const struct options *options, const struct perf_model *model)
{
	for (const struct perf_model *other = options->models; other < model; other++)
		if (other->large &&
		    other->flows[0].sizes.request == model->flows[0].sizes.request &&
		    other->flows[0].interval_us == model->flows[0].interval_us)
			return other->large;
	return 0;
}

/* Medium lies in the middle between one request and large. */
static int find_cluster(const struct perf_bench *bench, struct options *options,
			struct perf_model *model, struct perf_result *result)
{
	const struct perf_transport *base = &options->transports.list[options->transports.base];
	int rc = 0;

	if (model->cluster == PERF_CLUSTER_GIVEN)
		return 0;
	show_progress(options, result, "looking for the size of clusters");
	model->large = known_large(options, model);
	if (!model->large)
		rc = perf_cluster_find(bench, model, base, &options->setup, result->why);
	if (!rc)
		perf_model_set_cluster(model, model->cluster == PERF_CLUSTER_LARGE ?
					      model->large : (1 + model->large) / 2);
	return rc;
}

/* 0, or -EINTR: the only thing that ends all of it. */
static int run_model(const struct perf_bench *bench, struct options *options,
		     struct perf_model *model, struct perf_result *result)
{
	int rc = find_cluster(bench, options, model, result);

	while (!rc && perf_result_more(result))
		rc = run_round(bench, options, result);
	end_progress();
	result->failed = rc && rc != -EINTR;
	if (result->failed)
		fprintf(stderr, "shunt perf: %s failed: %s\n", model->name, result->why);
	return rc == -EINTR ? rc : 0;
}

/* ---- files ---- */

static int open_file(const char *path, FILE **file)
{
	if (!path)
		return 0;
	*file = fopen(path, "we");
	if (*file)
		return 0;
	fprintf(stderr, "shunt perf: cannot write %s: %m; nothing was started\n", path);
	return -1;
}

/* Before anything is measured. */
static int open_files(struct options *options)
{
	if (options->plot_path && perf_plot_check(options->plot_path))
		return -1;
	if (shunt_html_check("shunt perf", options->html_path))
		return -1;
	return open_file(options->csv_path, &options->csv) ||
	       open_file(options->json_path, &options->json) ? -1 : 0;
}

static int write_files(const struct perf_bench *bench, struct options *options,
		       const struct perf_result *results, size_t count)
{
	int rc = 0;

	if (options->csv)
		rc |= perf_csv(options->csv, options->csv_path, results, count);
	if (options->json)
		rc |= perf_json(options->json, options->json_path, results, count);
	if (options->plot_path)
		rc |= perf_plot(bench, options->plot_path, results, count);
	if (options->html_path)
		rc |= perf_html(options->html_path, results, count);
	options->csv = options->json = NULL;
	return rc;
}

/* ---- all of it ---- */

static int open_bench(struct perf_bench *bench)
{
	ssize_t length = readlink("/proc/self/exe", bench->program, sizeof(bench->program) - 1);
	int rc = shunt_child_init();

	if (length <= 0 || rc) {
		fprintf(stderr, "shunt perf: cannot start: %s\n", strerror(rc ? -rc : errno));
		return -1;
	}
	bench->program[length] = '\0';
	if (shunt_library_find(bench->library))
		return -1;
	return shunt_scratch_make("perf", bench->dir);
}

static int run_all(struct options *options, struct perf_result *results)
{
	struct perf_bench bench = { 0 };
	int rc = 0, failed = 0;

	if (open_bench(&bench))
		return EXIT_FAILED;
	for (size_t i = 0; i < options->model_count && !rc; i++) {
		rc = run_model(&bench, options, &options->models[i], &results[i]);
		failed |= results[i].failed;
	}
	if (rc)
		fprintf(stderr, "\nshunt perf: interrupted; what is complete follows\n");
	perf_table(results, options->model_count);
	fflush(stdout);
	if (write_files(&bench, options, results, options->model_count))
		failed = 1;
	shunt_scratch_remove(bench.dir);
	return rc ? 130 : failed ? EXIT_FAILED : 0;
}

static int run_with_results(struct options *options)
{
	struct perf_result *results = calloc(options->model_count, sizeof(*results));
	int rc;

	if (!results)
		abort();
	for (size_t i = 0; i < options->model_count; i++)
		if (perf_result_init(&results[i], &options->setup, &options->models[i],
				     &options->transports))
			abort();
	rc = run_all(options, results);
	for (size_t i = 0; i < options->model_count; i++)
		perf_result_free(&results[i]);
	free(results);
	return rc;
}

int shunt_perf(int argc, char **argv)
{
	struct options *options;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "qos"))
		return perf_qos(argc - 1, argv + 1);
	options = calloc(1, sizeof(*options));
	if (!options)
		abort();
	rc = parse(options, argc, argv);
	if (!rc && (shunt_variables_check("shunt perf") || open_files(options)))
		rc = EXIT_USAGE;
	perf_machine_read(&options->setup.machine, "");
	if (!rc)
		rc = run_with_results(options);
	if (options->csv)
		fclose(options->csv);
	if (options->json)
		fclose(options->json);
	free(options);
	return rc;
}
