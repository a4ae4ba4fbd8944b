/* SPDX-License-Identifier: MIT */
/* One measurement: a server of our own on a free port, a client, and both ends' costs. */
#include "tools/compare/compare.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#define START_SECONDS 15
#define EXTRA_SECONDS 60	/* on top of what the client was asked to take */

static int start_server(const struct compare_workload *w, struct shunt_child_start *start, int *port,
			struct shunt_child *server)
{
	struct compare_command command;
	int rc;

	/* Somebody else may take the port before the server does. */
	for (int attempt = 0; attempt < 3; attempt++) {
		*port = shunt_child_free_port();
		if (*port < 0)
			return *port;
		compare_workload_server(w, *port, &command);
		start->argv = command.argv;
		rc = shunt_child_start(server, start);
		if (!rc)
			rc = shunt_child_wait_listening(server, *port, START_SECONDS);
		if (rc != -ECHILD)
			break;
	}
	return rc;
}

static int run_client(const struct compare_workload *w, struct shunt_child_start *start, int port,
		      uint64_t requests, double seconds, struct shunt_child *client)
{
	struct compare_command command;
	int rc;

	compare_workload_client(w, port, requests, seconds, &command);
	start->argv = command.argv;
	rc = shunt_child_start(client, start);
	if (!rc)
		rc = shunt_child_wait(client, seconds + EXTRA_SECONDS);
	shunt_child_stop(client);
	if (!rc && (!WIFEXITED(client->status) || WEXITSTATUS(client->status)))
		rc = -ECHILD;
	return rc;
}

/* Both processes' CPU time of the exchange itself: not the server's start, nor redis' end. */
static double finish_server(const struct compare_workload *w, struct shunt_child *server,
			    double before)
{
	double cpu;

	if (w->family == COMPARE_IPERF)
		shunt_child_wait(server, 5);
	cpu = shunt_child_cpu(server) - before;
	shunt_child_stop(server);
	return cpu;
}

int compare_measure(const struct compare_bench *bench, const struct compare_workload *w,
		    enum compare_mode mode, uint64_t requests, double seconds,
		    struct compare_run *run, char why[COMPARE_WHY_MAX])
{
	struct shunt_child server = { 0 }, client = { 0 };
	struct shunt_child_start start = { .dir = bench->dir };
	double before, cpu, operations;
	struct shunt_pair_files files;
	int port, rc;

	shunt_scratch_pair(&files, bench->dir);
	start.library = mode == COMPARE_SHUNT ? bench->library : NULL;
	start.stats = files.server_stats;
	start.out = files.server_out;
	start.err = files.server_err;
	rc = start_server(w, &start, &port, &server);
	if (rc) {
		shunt_child_stop(&server);
		return shunt_child_explain("server", rc, &server, files.server_out, files.server_err, why);
	}

	before = shunt_child_cpu(&server);
	start.stats = files.client_stats;
	start.out = files.client_out;
	start.err = files.client_err;
	rc = run_client(w, &start, port, requests, seconds, &client);
	/* A server that crashed is the reason, whatever its client makes of it. */
	if (rc == -ECHILD && !shunt_child_wait(&server, 0.1) && WIFSIGNALED(server.status))
		return shunt_child_explain("server", rc, &server, files.server_out, files.server_err, why);
	cpu = client.cpu + finish_server(w, &server, before);
	/* iperf3 says what went wrong in its JSON, better than its status does. */
	if (rc == -ECHILD && w->family == COMPARE_IPERF && WIFEXITED(client.status))
		rc = 0;
	if (rc)
		return shunt_child_explain("client", rc, &client, files.client_out, files.client_err, why);
	if (compare_workload_result(w, files.client_out, requests, &run->figure, &operations, why))
		return -1;

	run->cpu = cpu / operations * (w->family == COMPARE_REDIS ? 1e6 : 1);
	memset(&run->share, 0, sizeof(run->share));
	if (mode == COMPARE_SHUNT)
		shunt_share_read(files.client_stats, files.server_stats, &run->share);
	return 0;
}
