/* SPDX-License-Identifier: MIT */
/* Workloads: two pairs of well-known programs, the ways to run them, and their output. */
#include "tools/compare/compare.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"
#include "tools/shunt.h"

#define REDIS(NAME, QUICK, CLIENTS, PIPELINE)                                                   \
	{ .name = NAME, .title = "redis, clients " #CLIENTS ", pipeline " #PIPELINE,            \
	  .family = COMPARE_REDIS, .quick = QUICK, .clients = CLIENTS, .pipeline = PIPELINE }
#define IPERF(NAME, QUICK, TITLE, ...)                                                          \
	{ .name = NAME, .title = "iperf3, " TITLE, .family = COMPARE_IPERF, .quick = QUICK,     \
	  .iperf = { __VA_ARGS__ } }

const struct compare_workload compare_workloads[] = {
	REDIS("c1", 1, 1, 1),
	REDIS("c1P16", 0, 1, 16),
	REDIS("c50", 1, 50, 1),
	REDIS("c50P16", 1, 50, 16),
	REDIS("c500", 0, 500, 1),
	REDIS("c500P16", 0, 500, 16),
	IPERF("i4K", 1, "4 KiB blocks", "-l", "4K"),
	IPERF("i128K", 1, "128 KiB blocks", "-l", "128K"),
	IPERF("i1M", 0, "1 MiB blocks", "-l", "1M"),
	IPERF("iP4", 0, "4 streams", "-P", "4"),
	IPERF("iR", 0, "reverse", "-R"),
	IPERF("ibidir", 0, "both ways", "--bidir"),
	IPERF("iN", 0, "TCP_NODELAY", "-N"),
};

const size_t compare_workload_count = sizeof(compare_workloads) / sizeof(compare_workloads[0]);

const char *compare_workload_unit(const struct compare_workload *w)
{
	return w->family == COMPARE_REDIS ? "requests/s" : "Gbit/s";
}

const char *compare_workload_cpu_unit(const struct compare_workload *w)
{
	return w->family == COMPARE_REDIS ? "us/request" : "s/GiB";
}

const char *compare_workload_missing(const struct compare_workload *w)
{
	char path[PATH_MAX];

	if (w->family == COMPARE_IPERF)
		return shunt_program_find("iperf3", path) ?
		       "iperf3 is not installed (package iperf3)" : NULL;
	if (shunt_program_find("redis-server", path))
		return "redis-server is not installed (package redis-server)";
	if (shunt_program_find("redis-benchmark", path))
		return "redis-benchmark is not installed (package redis-tools)";
	return NULL;
}

/* Splits a formatted line at its spaces; "''" is an empty argument. */
static void __attribute__((format(printf, 2, 3)))
command(struct compare_command *c, const char *format, ...)
{
	char *word, *rest = c->text;
	va_list args;
	int n = 0;

	va_start(args, format);
	vsnprintf(c->text, sizeof(c->text), format, args);
	va_end(args);
	while (n < COMPARE_ARGS_MAX - 1 && (word = strsep(&rest, " ")))
		if (*word)
			c->argv[n++] = strcmp(word, "''") ? word : word + 2;
	c->argv[n] = NULL;
}

void compare_workload_server(const struct compare_workload *w, int port, struct compare_command *c)
{
	if (w->family == COMPARE_REDIS)
		command(c, "redis-server --port %d --bind 127.0.0.1 --save '' --appendonly no "
			   "--daemonize no --loglevel warning", port);
	else
		command(c, "iperf3 -s -1 -B 127.0.0.1 -p %d", port);
}

void compare_workload_client(const struct compare_workload *w, int port, uint64_t requests,
			     double seconds, struct compare_command *c)
{
	if (w->family == COMPARE_REDIS)
		command(c, "redis-benchmark -h 127.0.0.1 -p %d -t set,get --csv -c %d -P %d -n %llu",
			port, w->clients, w->pipeline, (unsigned long long)requests);
	else
		command(c, "iperf3 -c 127.0.0.1 -p %d -J -t %d %s %s %s", port,
			seconds < 1 ? 1 : (int)(seconds + 0.5), w->iperf[0] ? w->iperf[0] : "",
			w->iperf[1] ? w->iperf[1] : "", w->iperf[2] ? w->iperf[2] : "");
}

/* "SET","123.45",…: the mean of the rates of SET and GET. */
static int redis_result(const char *path, uint64_t requests, double *figure, double *operations,
			char why[COMPARE_WHY_MAX])
{
	FILE *out = fopen(path, "re");
	char line[1024], last[COMPARE_WHY_MAX - 64] = "no output";	/* escaped */
	double rate, sum = 0;
	int seen = 0;

	while (out && fgets(line, sizeof(line), out)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "\"SET\",\"%lf\"", &rate) == 1 ||
		    sscanf(line, "\"GET\",\"%lf\"", &rate) == 1) {
			sum += rate;
			seen++;
		} else if (*line && *line != '"') {
			shunt_escape(line, last, sizeof(last));
		}
	}
	if (out)
		fclose(out);
	if (seen != 2 || sum <= 0) {
		snprintf(why, COMPARE_WHY_MAX, "redis-benchmark: %s", last);
		return -1;
	}
	*figure = sum / 2;
	*operations = 2 * (double)requests;
	return 0;
}

/* The receiver's side of one direction; 0 if the output has none of that name. */
static int add_received(const json_t *end, const char *name, double *bits, double *bytes)
{
	const json_t *sum = json_object_get(end, name);

	if (!sum)
		return 0;
	*bits += json_number_value(json_object_get(sum, "bits_per_second"));
	*bytes += json_number_value(json_object_get(sum, "bytes"));
	return 1;
}

static int iperf_result(const char *path, double *figure, double *operations,
			char why[COMPARE_WHY_MAX])
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	const json_t *end = json_object_get(root, "end");
	const char *text = json_string_value(json_object_get(root, "error"));
	double bits = 0, bytes = 0;
	char said[COMPARE_WHY_MAX - 16];

	add_received(end, "sum_received", &bits, &bytes);
	add_received(end, "sum_received_bidir_reverse", &bits, &bytes);
	if (text || bytes <= 0)
		snprintf(why, COMPARE_WHY_MAX, "iperf3: %s",
			 shunt_escape(text ? text : root ? "nothing was received" : error.text, said,
				      sizeof(said)));
	json_decref(root);
	if (text || bytes <= 0)
		return -1;
	*figure = bits / 1e9;
	*operations = bytes / (double)(1 << 30);
	return 0;
}

int compare_workload_result(const struct compare_workload *w, const char *path, uint64_t requests,
			    double *figure, double *operations, char why[COMPARE_WHY_MAX])
{
	if (w->family == COMPARE_REDIS)
		return redis_result(path, requests, figure, operations, why);
	return iperf_result(path, figure, operations, why);
}
