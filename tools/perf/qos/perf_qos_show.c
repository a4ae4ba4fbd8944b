/* SPDX-License-Identifier: MIT */
/* Results of `shunt perf qos`: a table for people, and JSON. */
#include "tools/perf/qos/perf_qos.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/api.h"
#include "tools/common/output.h"

#define COLUMNS_MAX 11 /* clients that have a column of their own */

static const char *const pattern_names[] = { "burst", "constant" };

static void put_latency(double us)
{
	char text[16];

	printf(" %9s", isnan(us) ? "-" : shunt_figure_text(us, text));
}

static void show_clients(const struct perf_qos_plan *plan, const struct perf_qos_result *result)
{
	printf("%-8s %9s %9s %9s %9s %9s %9s %9s\n", "client", "demand", "mean", "least", "mean us",
	       "p50 us", "p99 us", "p99.9 us");
	for (uint32_t i = 0; i < plan->clients; i++) {
		const struct perf_qos_client *client = &result->clients[i];
		uint64_t least = client->completed[0];

		for (uint32_t p = 1; p < plan->periods; p++)
			if (client->completed[p] < least)
				least = client->completed[p];
		printf("c%-7u %9u %9.1f %9llu", i + 1, plan->demands[i],
		       (double)client->total / plan->periods, (unsigned long long)least);
		put_latency(client->mean);
		put_latency(client->p50);
		put_latency(client->p99);
		put_latency(client->p999);
		putchar('\n');
	}
}

static uint64_t sum_of_period(const struct perf_qos_plan *plan,
			      const struct perf_qos_result *result, uint32_t period)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < plan->clients; i++)
		sum += result->clients[i].completed[period];
	return sum;
}

static void show_periods(const struct perf_qos_plan *plan, const struct perf_qos_result *result)
{
	uint32_t columns = plan->clients <= COLUMNS_MAX ? plan->clients : 0;
	char name[16];

	printf("\n%-8s %9s", "period", "sum");
	for (uint32_t i = 0; i < columns; i++) {
		snprintf(name, sizeof(name), "c%u", i + 1);
		printf(" %6s", name);
	}
	putchar('\n');
	for (uint32_t p = 0; p < plan->periods; p++) {
		printf("%-8u %9llu", p + 1, (unsigned long long)sum_of_period(plan, result, p));
		for (uint32_t i = 0; i < columns; i++)
			printf(" %6llu", (unsigned long long)result->clients[i].completed[p]);
		putchar('\n');
	}
}

void perf_qos_table(const struct perf_qos_plan *plan, const struct perf_qos_result *result)
{
	double total = 0;

	printf("%s: completed requests of %u bytes, answers of %u, periods of %g s\n\n",
	       pattern_names[plan->pattern], plan->request, plan->reply, plan->period_ms / 1e3);
	show_clients(plan, result);
	show_periods(plan, result);
	for (uint32_t i = 0; i < plan->clients; i++)
		total += (double)result->clients[i].total;
	printf("\nmean of a period: %.1f; processors in use: %.2f\n", total / plan->periods,
	       result->cpus);
}

/* ---- JSON ---- */

static void put_number(json_t *object, const char *key, double number)
{
	if (!isnan(number))
		json_object_set_new(object, key, json_real(number));
}

static json_t *client_json(const struct perf_qos_plan *plan, const struct perf_qos_client *client,
			   uint32_t index)
{
	json_t *completed = json_array(), *latency = json_object(), *object;
	char name[16];

	snprintf(name, sizeof(name), "c%u", index + 1);
	for (uint32_t p = 0; p < plan->periods; p++)
		json_array_append_new(completed, json_integer((json_int_t)client->completed[p]));
	put_number(latency, "mean", client->mean);
	put_number(latency, "p50", client->p50);
	put_number(latency, "p99", client->p99);
	put_number(latency, "p99.9", client->p999);
	put_number(latency, "max", client->max);
	object = json_pack("{s:s, s:I, s:o, s:I, s:o, s:f}", "class", name, "demand",
			   (json_int_t)plan->demands[index], "completed", completed, "total",
			   (json_int_t)client->total, "latency_us", latency, "cpu_seconds",
			   client->cpu);
	put_number(object, "wr", client->wr);
	put_number(object, "wr_bytes", client->wr_bytes);
	return object;
}

static int finish(FILE *file, const char *path, int wrong)
{
	wrong |= ferror(file);
	wrong |= fclose(file) != 0;
	if (wrong)
		fprintf(stderr, "shunt perf qos: cannot write all of %s: %s\n", path,
			errno ? strerror(errno) : "out of memory");
	return wrong ? -1 : 0;
}

int perf_qos_json(FILE *file, const char *path, const struct perf_qos_plan *plan,
		  const struct perf_qos_result *result)
{
	json_t *clients = json_array(), *sums = json_array(), *root;
	int wrong;

	for (uint32_t i = 0; i < plan->clients; i++)
		json_array_append_new(clients, client_json(plan, &result->clients[i], i));
	for (uint32_t p = 0; p < plan->periods; p++)
		json_array_append_new(sums,
				      json_integer((json_int_t)sum_of_period(plan, result, p)));
	root = json_pack(
		"{s:i, s:s, s:i, s:s, s:b, s:I, s:I, s:I, s:f, s:o, s:o, s:f, s:f}", "schema",
		SHUNT_JSON_SCHEMA, "version", PACKAGE_VERSION, "processors",
		(int)sysconf(_SC_NPROCESSORS_ONLN), "pattern", pattern_names[plan->pattern],
		"shunted", !plan->plain, "depth", (json_int_t)plan->depth, "request_bytes",
		(json_int_t)plan->request, "reply_bytes", (json_int_t)plan->reply, "period_seconds",
		plan->period_ms / 1e3, "clients", clients, "completed", sums, "server_cpu_seconds",
		result->server_cpu, "processors_in_use", result->cpus);
	errno = 0;
	wrong = !root || shunt_print_json(file, root, JSON_INDENT(2));
	json_decref(root);
	return finish(file, path, wrong);
}
