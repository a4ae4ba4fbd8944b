/* SPDX-License-Identifier: MIT */
/* The results as CSV, one line a round and one for the medians, and as JSON. */
#include "tools/perf/perf.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/api.h"
#include "tools/common/output.h"

static int finish(FILE *file, const char *path, int wrong)
{
	wrong |= ferror(file);
	wrong |= fclose(file) != 0;
	if (wrong)
		fprintf(stderr, "shunt perf: cannot write all of %s: %s\n", path,
			errno ? strerror(errno) : "out of memory");
	return wrong ? -1 : 0;
}

/* ---- CSV ---- */

/* Text that would need quotes is left out. */
static void put_text(FILE *file, const char *text)
{
	fputc(',', file);
	for (; *text; text++)
		if (*text >= ' ' && *text <= '~' && *text != '"')
			fputc(*text == ',' ? ';' : *text, file);
}

static const char machine_columns[] =
	",rate,arrivals,server,rounds_ended,pinned,cpu_model,cpus,caches,kernel,congestion_control,memory_bytes";

static void put_machine(FILE *file, const struct perf_result *result)
{
	const struct shunt_host *machine = &result->setup->machine;
	const struct perf_open *open = &result->model->open;
	char caches[SHUNT_CACHES_TEXT_MAX];

	if (open->rate)
		fprintf(file, ",%u,%s", open->rate, perf_arrivals_name(open->arrivals));
	else
		fputs(",,", file);
	put_text(file, result->setup->remote);
	put_text(file, perf_ended_text(result->ended));
	put_text(file, result->setup->pin.text);
	put_text(file, machine->cpu);
	fprintf(file, ",%d", machine->cpus);
	put_text(file, shunt_host_caches(machine, caches));
	put_text(file, machine->kernel);
	put_text(file, machine->congestion);
	fprintf(file, ",%llu", (unsigned long long)machine->memory);
}

/* No name can hold a comma or a quote. */
static void put_line(FILE *file, const struct perf_result *result, size_t transport, size_t flow,
		     int round)
{
	fprintf(file, "%s,%s,%s,", result->model->name, result->model->flow_names[flow],
		result->transports->list[transport].name);
	if (round < result->rounds)
		fprintf(file, "%d", round + 1);
	else
		fputs("median", file);
	for (int m = 0; m < PERF_METRIC_COUNT; m++) {
		double value = round < result->rounds ?
			       perf_result_run(result, round, transport)->metrics[flow][m] :
			       perf_result_median(result, transport, flow, (enum perf_metric)m);

		if (isnan(value))
			fputc(',', file);
		else
			fprintf(file, ",%.15g", value);
	}
	for (size_t i = 0; perf_work_field(i); i++)
		fprintf(file, ",%s", perf_work_name(&result->setup->work, i));
	put_machine(file, result);
	fputc('\n', file);
}

int perf_csv(FILE *file, const char *path, const struct perf_result *results, size_t count)
{
	fputs("model,flow,transport,round", file);
	for (int m = 0; m < PERF_METRIC_COUNT; m++)
		fprintf(file, ",%s", perf_metric_rows[m].key);
	for (size_t i = 0; perf_work_field(i); i++)
		fprintf(file, ",%s", perf_work_field(i));
	fprintf(file, "%s\n", machine_columns);
	for (size_t i = 0; i < count; i++)
		for (size_t f = 0; f < results[i].model->flow_count && results[i].rounds; f++)
			for (size_t t = 0; t < results[i].transports->count; t++)
				for (int round = 0; round <= results[i].rounds; round++)
					put_line(file, &results[i], t, f, round);
	return finish(file, path, 0);
}

/* ---- JSON ---- */

/* The shared ones of a run, or the others of a flow. */
static json_t *metrics_json(const struct perf_result *result, size_t transport, size_t flow, int round,
			    bool shared)
{
	json_t *object = json_object();

	for (int m = 0; m < PERF_METRIC_COUNT; m++) {
		double value = round < result->rounds ?
			       perf_result_run(result, round, transport)->metrics[flow][m] :
			       perf_result_median(result, transport, flow, (enum perf_metric)m);

		if (perf_metric_rows[m].shared == shared && !isnan(value))
			json_object_set_new(object, perf_metric_rows[m].key, json_real(value));
	}
	return object;
}

static json_t *round_json(const struct perf_result *result, size_t transport, int round)
{
	json_t *flows = json_array(), *object = metrics_json(result, transport, 0, round, true);

	for (size_t f = 0; f < result->model->flow_count; f++) {
		json_t *flow = metrics_json(result, transport, f, round, false);

		json_object_set_new(flow, "flow", json_string(result->model->flow_names[f]));
		json_array_append_new(flows, flow);
	}
	json_object_set_new(object, "flows", flows);
	return object;
}

static json_t *link_json(const struct perf_result *result, size_t transport)
{
	struct shunt_share share = perf_result_share(result, transport);

	if (!share.known)
		return json_pack("{s:n, s:s}", "share", "reason", share.why);
	return json_pack("{s:f, s:s, s:b}", "share", share.share, "of",
			 share.late ? "bytes after the first 256 KiB" : "all bytes", "agree",
			 share.agree);
}

static json_t *transport_json(const struct perf_result *result, size_t index)
{
	const struct perf_transport *transport = &result->transports->list[index];
	json_t *rounds = json_array(), *variables = json_array(), *object;

	for (char *const *variable = transport->variables; *variable; variable++)
		json_array_append_new(variables, json_string(*variable));
	for (int round = 0; round < result->rounds; round++)
		json_array_append_new(rounds, round_json(result, index, round));
	object = json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", transport->name, "shunted",
			   transport->shunt, "variables", variables, "median",
			   round_json(result, index, result->rounds), "rounds", rounds);
	if (transport->shunt)
		json_object_set_new(object, "link", link_json(result, index));
	return object;
}

static json_t *flow_json(const struct perf_model *model, size_t f)
{
	const struct perf_flow *flow = &model->flows[f];

	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "flow", model->flow_names[f],
			 "request_bytes", (json_int_t)flow->sizes.request, "reply_bytes",
			 (json_int_t)flow->sizes.reply, "cluster", (json_int_t)flow->burst, "depth",
			 (json_int_t)flow->depth, "interval_us", (json_int_t)flow->interval_us,
			 "connections", (json_int_t)flow->conns);
}

static json_t *result_json(const struct perf_result *result)
{
	json_t *transports = json_array(), *flows = json_array(), *object;

	for (size_t f = 0; f < result->model->flow_count; f++)
		json_array_append_new(flows, flow_json(result->model, f));
	for (size_t t = 0; t < result->transports->count && result->rounds; t++)
		json_array_append_new(transports, transport_json(result, t));
	object = json_pack("{s:s, s:o, s:i, s:s, s:o}", "name", result->model->name, "flows", flows,
			   "rounds", result->rounds, "rounds_ended", perf_ended_text(result->ended),
			   "transports", transports);
	if (result->model->open.rate)
		json_object_set_new(object, "open_loop",
				    json_pack("{s:I, s:s}", "rate",
					      (json_int_t)result->model->open.rate, "arrivals",
					      perf_arrivals_name(result->model->open.arrivals)));
	if (result->failed)
		json_object_set_new(object, "failed", json_string(result->why));
	return object;
}

static json_t *work_json(const struct perf_work *work)
{
	json_t *object = json_object();

	for (size_t i = 0; perf_work_field(i); i++)
		json_object_set_new(object, perf_work_field(i),
				    json_string(perf_work_name(work, i)));
	return object;
}

/* There is a result at least. */
int perf_json(FILE *file, const char *path, const struct perf_result *results, size_t count)
{
	const struct perf_setup *setup = results[0].setup;
	json_t *models = json_array(), *root;
	int wrong;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(models, result_json(&results[i]));
	root = json_pack("{s:i, s:s, s:i, s:f, s:i, s:i, s:s, s:o, s:o, s:o}", "schema",
			 SHUNT_JSON_SCHEMA, "version", PACKAGE_VERSION, "processors",
			 setup->machine.cpus, "seconds", setup->measured_ms / 1e3, "threads",
			 (int)setup->threads, "rounds", setup->rounds, "pinned", setup->pin.text,
			 "machine", shunt_host_json(&setup->machine), "work",
			 work_json(&setup->work), "models", models);
	if (root && setup->remote[0])
		json_object_set_new(root, "server",
				    json_pack("{s:s, s:s*}", "address", setup->remote, "machine",
					      setup->remote_machine));
	if (root && setup->spread > 0) {
		json_object_set_new(root, "spread_wanted", json_real(setup->spread));
		json_object_set_new(root, "max_rounds", json_integer(setup->max_rounds));
	}
	errno = 0;
	wrong = !root || shunt_print_json(file, root, JSON_INDENT(2));
	json_decref(root);
	return finish(file, path, wrong);
}
