/* SPDX-License-Identifier: MIT */
/* shunt perf: models of traffic between two plain socket programs, over several transports in turns. */
#include "tools/perf/perf_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/page/page.h"
#include "tools/perf/qos/perf_qos.h"
#include "tools/perf/end/perf_remote.h"
#include "tools/shunt.h"


/* ---- rounds ---- */

static void show_progress(const struct perf_options *options, const struct perf_result *result,
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

static int run_round(const struct perf_bench *bench, const struct perf_options *options,
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

/* The size of a large cluster found for an earlier model with the same requests, or 0. */
static uint32_t known_large(const struct perf_options *options, const struct perf_model *model)
{
	for (const struct perf_model *other = options->models; other < model; other++)
		if (other->large &&
		    other->flows[0].sizes.request == model->flows[0].sizes.request &&
		    other->flows[0].interval_us == model->flows[0].interval_us)
			return other->large;
	return 0;
}

/* Medium lies in the middle between one request and large. */
static int find_cluster(const struct perf_bench *bench, struct perf_options *options,
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
static int run_model(const struct perf_bench *bench, struct perf_options *options,
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
static int open_files(struct perf_options *options)
{
	if (options->plot_path && perf_plot_check(options->plot_path))
		return -1;
	if (shunt_page_check("shunt perf", options->html_path))
		return -1;
	return open_file(options->csv_path, &options->csv) ||
	       open_file(options->json_path, &options->json) ? -1 : 0;
}

static int write_files(const struct perf_bench *bench, struct perf_options *options,
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

static int run_all(struct perf_options *options, struct perf_result *results)
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
	else
		shunt_host_measure(&options->setup.machine);
	perf_table(results, options->model_count);
	fflush(stdout);
	if (write_files(&bench, options, results, options->model_count))
		failed = 1;
	shunt_scratch_remove(bench.dir);
	return rc ? 130 : failed ? EXIT_FAILED : 0;
}

static int run_with_results(struct perf_options *options)
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
	struct perf_options *options;
	int rc;

	if (argc > 1 && !strcmp(argv[1], "programs"))
		return shunt_compare(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "qos"))
		return perf_qos(argc - 1, argv + 1);
	options = calloc(1, sizeof(*options));
	if (!options)
		abort();
	rc = perf_options_parse(options, argc, argv);
	if (!rc && options->serve) {
		rc = shunt_variables_check("shunt perf") ?
			     EXIT_USAGE :
			     perf_serve(options->to, &options->setup.pin);
		free(options);
		return rc;
	}
	if (!rc && (shunt_variables_check("shunt perf") || open_files(options)))
		rc = EXIT_USAGE;
	shunt_host_read(&options->setup.machine, "");
	if (!rc && options->to && perf_remote_ask(&options->setup, options->to))
		rc = EXIT_FAILED;
	if (!rc)
		rc = run_with_results(options);
	if (options->csv)
		fclose(options->csv);
	if (options->json)
		fclose(options->json);
	free(options);
	return rc;
}
