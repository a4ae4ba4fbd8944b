/* One measurement: a server of our own on a free port, a client, and both ends' costs. */
#include "tools/compare.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS 15
#define EXTRA_SECONDS 60	/* on top of what the client was asked to take */

struct paths {
	char server_out[PATH_MAX + 16], server_err[PATH_MAX + 16], server_stats[PATH_MAX + 16];
	char client_out[PATH_MAX + 16], client_err[PATH_MAX + 16], client_stats[PATH_MAX + 16];
};

static void make_path(char path[PATH_MAX + 16], const char *dir, const char *name)
{
	snprintf(path, PATH_MAX + 16, "%s/%s", dir, name);
	unlink(path);
}

static void make_paths(struct paths *paths, const char *dir)
{
	make_path(paths->server_out, dir, "server.out");
	make_path(paths->server_err, dir, "server.err");
	make_path(paths->server_stats, dir, "server.json");
	make_path(paths->client_out, dir, "client.out");
	make_path(paths->client_err, dir, "client.err");
	make_path(paths->client_stats, dir, "client.json");
}

static void last_line(const char *path, char line[160])
{
	char buf[160];
	FILE *file = fopen(path, "re");

	while (file && fgets(buf, sizeof(buf), file)) {
		buf[strcspn(buf, "\n")] = '\0';
		if (*buf)
			memcpy(line, buf, sizeof(buf));
	}
	if (file)
		fclose(file);
}

/* "the server ended early with status 1: <the last it said>" */
static int explain(const char *who, int rc, const struct compare_child *child, const char *out,
		   const char *err, char why[COMPARE_WHY_MAX])
{
	char said[160] = "it said nothing";

	if (rc == -EINTR)
		return rc;
	last_line(out, said);
	last_line(err, said);
	if (rc == -ETIMEDOUT)
		snprintf(why, COMPARE_WHY_MAX, "the %s did not get anywhere in time: %s", who, said);
	else if (WIFSIGNALED(child->status))
		snprintf(why, COMPARE_WHY_MAX, "the %s was killed by signal %d (%s): %s", who,
			 WTERMSIG(child->status), strsignal(WTERMSIG(child->status)), said);
	else
		snprintf(why, COMPARE_WHY_MAX, "the %s ended with status %d: %s", who,
			 WEXITSTATUS(child->status), said);
	return -1;
}

static int start_server(const struct compare_workload *w, struct compare_start *start, int *port,
			struct compare_child *server)
{
	struct compare_command command;
	int rc;

	/* Somebody else may take the port before the server does. */
	for (int attempt = 0; attempt < 3; attempt++) {
		*port = compare_child_free_port();
		if (*port < 0)
			return *port;
		compare_workload_server(w, *port, &command);
		start->argv = command.argv;
		rc = compare_child_start(server, start);
		if (!rc)
			rc = compare_child_wait_listening(server, *port, START_SECONDS);
		if (rc != -ECHILD)
			break;
	}
	return rc;
}

static int run_client(const struct compare_workload *w, struct compare_start *start, int port,
		      uint64_t requests, double seconds, struct compare_child *client)
{
	struct compare_command command;
	int rc;

	compare_workload_client(w, port, requests, seconds, &command);
	start->argv = command.argv;
	rc = compare_child_start(client, start);
	if (!rc)
		rc = compare_child_wait(client, seconds + EXTRA_SECONDS);
	compare_child_stop(client);
	if (!rc && (!WIFEXITED(client->status) || WEXITSTATUS(client->status)))
		rc = -ECHILD;
	return rc;
}

/* Both processes' CPU time of the exchange itself: not the server's start, nor redis' end. */
static double finish_server(const struct compare_workload *w, struct compare_child *server,
			    double before)
{
	double cpu;

	if (w->family == COMPARE_IPERF)
		compare_child_wait(server, 5);
	cpu = compare_child_cpu(server) - before;
	compare_child_stop(server);
	return cpu;
}

int compare_measure(const struct compare_bench *bench, const struct compare_workload *w,
		    enum compare_mode mode, uint64_t requests, double seconds,
		    struct compare_run *run, char why[COMPARE_WHY_MAX])
{
	struct compare_child server = { 0 }, client = { 0 };
	struct compare_start start = { .dir = bench->dir };
	double before, cpu, operations;
	struct paths paths;
	int port, rc;

	make_paths(&paths, bench->dir);
	start.library = mode == COMPARE_SHUNT ? bench->library : NULL;
	start.stats = paths.server_stats;
	start.out = paths.server_out;
	start.err = paths.server_err;
	rc = start_server(w, &start, &port, &server);
	if (rc) {
		compare_child_stop(&server);
		return explain("server", rc, &server, paths.server_out, paths.server_err, why);
	}

	before = compare_child_cpu(&server);
	start.stats = paths.client_stats;
	start.out = paths.client_out;
	start.err = paths.client_err;
	rc = run_client(w, &start, port, requests, seconds, &client);
	/* A server that crashed is the reason, whatever its client makes of it. */
	if (rc == -ECHILD && !compare_child_wait(&server, 0.1) && WIFSIGNALED(server.status))
		return explain("server", rc, &server, paths.server_out, paths.server_err, why);
	cpu = client.cpu + finish_server(w, &server, before);
	/* iperf3 says what went wrong in its JSON, better than its status does. */
	if (rc == -ECHILD && w->family == COMPARE_IPERF && WIFEXITED(client.status))
		rc = 0;
	if (rc)
		return explain("client", rc, &client, paths.client_out, paths.client_err, why);
	if (compare_workload_result(w, paths.client_out, requests, &run->figure, &operations, why))
		return -1;

	run->cpu = cpu / operations * (w->family == COMPARE_REDIS ? 1e6 : 1);
	memset(&run->share, 0, sizeof(run->share));
	if (mode == COMPARE_SHUNT)
		compare_share_read(paths.client_stats, paths.server_stats, &run->share);
	return 0;
}
