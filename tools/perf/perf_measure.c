/* SPDX-License-Identifier: MIT */
/* One measurement: a server and a client of our own, and what they and their engines say of it. */
#include "tools/perf/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS 15
#define EXTRA_SECONDS 30	/* on top of what the client was asked to take */

#define ARGUMENTS (10 + PERF_FLOWS_MAX)

struct pair {
	struct shunt_child server, client;
	struct shunt_pair_files files;
};

static void make_start(struct shunt_child_start *start, const struct perf_bench *bench,
		       const struct perf_transport *transport)
{
	memset(start, 0, sizeof(*start));
	start->dir = bench->dir;
	if (!transport->shunt)
		return;
	start->library = bench->library;
	start->variables = transport->variables;
}

/* The server, once it has said on which port it listens. */
static int start_server(struct pair *pair, struct shunt_child_start start, const char *program,
			const struct perf_model *model, const struct perf_setup *setup,
			char port[16])
{
	char conns[16];
	char *argv[] = { (char *)program, "perf-end", "server", conns, NULL };
	int ends[2], rc;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	snprintf(conns, sizeof(conns), "%u", perf_model_conns(model));
	start.argv = argv;
	start.inherit = ends[1];
	start.cpus = setup->pin.given ? &setup->pin.server : NULL;
	start.stats = pair->files.server_stats;
	start.out = pair->files.server_out;
	start.err = pair->files.server_err;
	rc = shunt_child_start(&pair->server, &start);
	close(ends[1]);
	if (!rc)
		rc = shunt_child_wait_line(&pair->server, ends[0], START_SECONDS, port, 16);
	close(ends[0]);
	return rc;
}

static int start_client(struct pair *pair, struct shunt_child_start start, const char *program,
			const struct perf_model *model, const struct perf_setup *setup,
			const char *port)
{
	const char *address = setup->remote[0] ? setup->remote : "127.0.0.1";
	char warm[16], measured[16], threads[16], work[PERF_WORK_TEXT_MAX],
		open[PERF_OPEN_TEXT_MAX];
	char flows[PERF_FLOWS_MAX][PERF_FLOW_TEXT_MAX];
	char *argv[ARGUMENTS + 1] = { (char *)program,
				      "perf-end",
				      "client",
				      (char *)address,
				      (char *)port,
				      warm,
				      measured,
				      threads,
				      work,
				      open };

	snprintf(warm, sizeof(warm), "%u", setup->warm_ms);
	snprintf(measured, sizeof(measured), "%u", setup->measured_ms);
	snprintf(threads, sizeof(threads), "%u", setup->threads);
	perf_work_text(&setup->work, work);
	perf_open_text(&model->open, open);
	for (size_t f = 0; f < model->flow_count; f++) {
		perf_flow_text(&model->flows[f], flows[f]);
		argv[10 + f] = flows[f];
	}
	start.argv = argv;
	start.cpus = setup->pin.given ? &setup->pin.client : NULL;
	start.stats = pair->files.client_stats;
	start.out = pair->files.client_out;
	start.err = pair->files.client_err;
	return shunt_child_start(&pair->client, &start);
}

static bool failed(const struct shunt_child *child)
{
	return !WIFEXITED(child->status) || WEXITSTATUS(child->status);
}

/* Of two failures, the one that only tells of the other is not the reason. */
static bool only_tells_of_other(const struct shunt_child *child)
{
	return WIFEXITED(child->status) && WEXITSTATUS(child->status) == PERF_END_PEER;
}

/* Neither end is left when this returns. */
static int finish(struct pair *pair, double seconds, char why[SHUNT_WHY_MAX])
{
	const struct shunt_pair_files *files = &pair->files;
	int client_rc = shunt_child_wait(&pair->client, seconds), server_rc = client_rc;

	/* A client that failed takes the server with it, but hardly at once. */
	if (!client_rc)
		server_rc = shunt_child_wait(&pair->server, 5);
	shunt_child_stop(&pair->client);
	shunt_child_stop(&pair->server);
	if (client_rc == -EINTR || server_rc == -EINTR)
		return -EINTR;
	if (!client_rc && failed(&pair->client) &&
	    (server_rc || !failed(&pair->server) || !only_tells_of_other(&pair->client)))
		return shunt_child_explain("client", -ECHILD, &pair->client, files->client_out,
					   files->client_err, why);
	if (client_rc)
		return shunt_child_explain("client", client_rc, &pair->client, files->client_out,
					   files->client_err, why);
	if (server_rc || failed(&pair->server))
		return shunt_child_explain("server", server_rc ? server_rc : -ECHILD, &pair->server,
					   files->server_out, files->server_err, why);
	return 0;
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	return json_is_number(number) ? json_number_value(number) : NAN;
}

static void read_flow(const json_t *flow, double seconds, double metrics[PERF_METRIC_COUNT])
{
	metrics[PERF_OPERATIONS] = number_of(flow, "operations");
	metrics[PERF_BYTES] = number_of(flow, "bytes");
	metrics[PERF_RATE] = metrics[PERF_OPERATIONS] / seconds;
	metrics[PERF_MBYTES] = metrics[PERF_BYTES] / seconds / 1e6;
	metrics[PERF_LATENCIES] = number_of(flow, "latencies");
	metrics[PERF_KEPT] = number_of(flow, "kept");
	metrics[PERF_P50] = number_of(flow, "p50");
	metrics[PERF_P90] = number_of(flow, "p90");
	metrics[PERF_P99] = number_of(flow, "p99");
	metrics[PERF_P999] = number_of(flow, "p999");
	metrics[PERF_MAX] = number_of(flow, "max");
}

/* The first flow holds what the flows share until share_out(). */
static int read_results(const struct pair *pair, const struct perf_model *model, bool remote,
			struct perf_run *run, char why[SHUNT_WHY_MAX])
{
	json_error_t error;
	json_t *client = json_load_file(pair->files.client_out, 0, &error);
	json_t *server = remote ? json_incref(json_object_get(client, "served")) :
				  json_load_file(pair->files.server_out, 0, &error);
	const json_t *flows = json_object_get(client, "flows");
	const json_t *lines = json_object_get(client, "lines");
	double sent = 0, served = number_of(server, "operations");
	double *shared = run->metrics[0];

	for (size_t f = 0; f < model->flow_count; f++) {
		const json_t *flow = json_array_get(flows, f);

		read_flow(flow, number_of(client, "seconds"), run->metrics[f]);
		sent += number_of(flow, "total");
	}
	run->metrics[0][PERF_LATE] = number_of(client, "late");
	run->metrics[0][PERF_UNSENT] = number_of(client, "unsent");
	shared[PERF_RUN_OPERATIONS] = served;
	shared[PERF_CPU] = number_of(client, "cpu") + number_of(server, "cpu");
	shared[PERF_SWITCHES] = number_of(client, "switches") + number_of(server, "switches");
	shared[PERF_TOUCHED] = number_of(lines, "touched");
	shared[PERF_DUMMIES] = number_of(lines, "dummies");
	shared[PERF_SCANNED] = number_of(lines, "scanned");
	shared[PERF_CHECKED] = number_of(lines, "checked");
	json_decref(client);
	json_decref(server);
	if (sent == served)
		return 0;
	snprintf(why, SHUNT_WHY_MAX, "the client made %.0f requests and the server had %.0f", sent,
		 served);
	return -1;
}

static void read_engines(const struct pair *pair, bool remote, struct perf_run *run)
{
	static const char *const names[] = { "wr", "doorbells", "wr_bytes", "completions", "events" };
	double sums[5] = { 0 }, *shared = run->metrics[0];

	shunt_share_read(pair->files.client_stats, remote ? NULL : pair->files.server_stats,
			 &run->share);
	if (!run->share.known || shunt_counters_add(pair->files.client_stats, names, sums, 5) ||
	    (!remote && shunt_counters_add(pair->files.server_stats, names, sums, 5)))
		return;
	shared[PERF_SHARE] = run->share.share;
	shared[PERF_WR] = sums[0];
	shared[PERF_DOORBELLS] = sums[1];
	shared[PERF_WR_BYTES] = sums[2];
	shared[PERF_PER_WR] = sums[0] > 0 ? sums[2] / sums[0] : NAN;
	shared[PERF_COMPLETIONS] = sums[3];
	shared[PERF_EVENTS] = sums[4];
}

static void share_out(struct perf_run *run)
{
	for (size_t f = 1; f < PERF_FLOWS_MAX; f++)
		for (int m = 0; m < PERF_METRIC_COUNT; m++)
			if (perf_metric_rows[m].shared)
				run->metrics[f][m] = run->metrics[0][m];
}

/* The server of another host runs already. */
static int run_client(struct pair *pair, const struct perf_bench *bench,
		      const struct perf_model *model, const struct perf_transport *transport,
		      const struct perf_setup *setup, char why[SHUNT_WHY_MAX])
{
	const struct shunt_pair_files *files = &pair->files;
	struct shunt_child_start start;
	char port[16];
	int rc;

	make_start(&start, bench, transport);
	snprintf(port, sizeof(port), "%d",
		 transport->shunt ? setup->shunt_port : setup->plain_port);
	rc = start_client(pair, start, bench->program, model, setup, port);
	if (rc) {
		snprintf(why, SHUNT_WHY_MAX, "the client could not be started: %s", strerror(-rc));
		return -1;
	}
	rc = shunt_child_wait(&pair->client,
			      (setup->warm_ms + setup->measured_ms) / 1e3 + EXTRA_SECONDS);
	shunt_child_stop(&pair->client);
	if (!rc && !failed(&pair->client))
		return 0;
	return shunt_child_explain("client", rc ? rc : -ECHILD, &pair->client, files->client_out,
				   files->client_err, why);
}

static int run_pair(struct pair *pair, const struct perf_bench *bench,
		    const struct perf_model *model, const struct perf_transport *transport,
		    const struct perf_setup *setup, char why[SHUNT_WHY_MAX])
{
	const struct shunt_pair_files *files = &pair->files;
	struct shunt_child_start start;
	char port[16];
	int rc;

	make_start(&start, bench, transport);
	rc = start_server(pair, start, bench->program, model, setup, port);
	if (!rc)
		rc = start_client(pair, start, bench->program, model, setup, port);
	if (!rc)
		return finish(pair, (setup->warm_ms + setup->measured_ms) / 1e3 + EXTRA_SECONDS,
			      why);
	shunt_child_stop(&pair->server);
	if (rc == -EINTR || rc == -ETIMEDOUT || rc == -ECHILD)
		return shunt_child_explain("server", rc, &pair->server, files->server_out,
					   files->server_err, why);
	snprintf(why, SHUNT_WHY_MAX, "the two ends could not be started: %s", strerror(-rc));
	return -1;
}

int perf_measure(const struct perf_bench *bench, const struct perf_model *model,
		 const struct perf_transport *transport, const struct perf_setup *setup,
		 struct perf_run *run, char why[SHUNT_WHY_MAX])
{
	struct pair *pair = calloc(1, sizeof(*pair));
	int rc;

	if (!pair)
		abort();
	memset(run, 0, sizeof(*run));
	for (size_t f = 0; f < PERF_FLOWS_MAX; f++)
		for (int m = 0; m < PERF_METRIC_COUNT; m++)
			run->metrics[f][m] = NAN;
	shunt_scratch_pair(&pair->files, bench->dir);
	rc = (setup->remote[0] ? run_client : run_pair)(pair, bench, model, transport, setup, why);
	if (!rc)
		rc = read_results(pair, model, setup->remote[0], run, why);
	if (!rc && transport->shunt)
		read_engines(pair, setup->remote[0], run);
	share_out(run);
	free(pair);
	return rc;
}
