/* SPDX-License-Identifier: MIT */
/* One run of `shunt perf qos`: a server, its clients, their common beginning, and the user's commands. */
#include "tools/perf/qos/perf_qos.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/shunt.h"

#define START_SECONDS 15
#define EXTRA_SECONDS 30 /* for what is outstanding when the last period ends */
#define LEAD_NS 50000000ull /* from the word to the clients to their first period */

struct member { /* a process of the run */
	struct shunt_child child;
	int line; /* to the client, or from the server: what it says */
	char out[SHUNT_FILE_MAX], err[SHUNT_FILE_MAX], stats[SHUNT_FILE_MAX];
	char class[32]; /* "SHUNT_QOS_CLASS=…" */
	char name[16];
};

struct run {
	const struct perf_qos_plan *plan;
	char dir[PATH_MAX], program[PATH_MAX], library[PATH_MAX];
	char port[16];
	uint64_t start; /* ns */
	uint32_t started; /* clients */
	struct member server, clients[PERF_QOS_CLIENTS_MAX];
};

/* ---- processes ---- */

static void name_member(struct run *run, struct member *member, const char *name)
{
	snprintf(member->name, sizeof(member->name), "%s", name);
	snprintf(member->out, sizeof(member->out), "%s/%.15s.out", run->dir, name);
	snprintf(member->err, sizeof(member->err), "%s/%.15s.err", run->dir, name);
	snprintf(member->stats, sizeof(member->stats), "%s/%.15s.stats", run->dir, name);
	member->line = -1;
}

/* A stream socket is the child's descriptor 3; the parent keeps the other end. */
static int start_member(struct run *run, struct member *member, char *const *argv,
			char *const *variables)
{
	struct shunt_child_start start = { .argv = argv,
					   .stats = member->stats,
					   .out = member->out,
					   .err = member->err,
					   .dir = run->dir };
	int ends[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	start.inherit = ends[1];
	if (!run->plan->plain) {
		start.library = run->library;
		start.variables = variables;
	}
	rc = shunt_child_start(&member->child, &start);
	close(ends[1]);
	member->line = ends[0];
	return rc;
}

/* -1 and why, or -EINTR. */
static int explain(struct member *member, int rc, char why[SHUNT_WHY_MAX])
{
	return shunt_child_explain(member->name, rc, &member->child, member->out, member->err, why);
}

/* The variables of the user, and one more. */
static void join_variables(char *const *user, char *more,
			   char *variables[PERF_QOS_VARIABLES_MAX + 2])
{
	size_t count = 0;

	for (; user[count]; count++)
		variables[count] = user[count];
	if (more)
		variables[count++] = more;
	variables[count] = NULL;
}

static int start_server(struct run *run, char why[SHUNT_WHY_MAX])
{
	char conns[16], *argv[] = { run->program, "perf-end", "server", conns, NULL };
	char *variables[PERF_QOS_VARIABLES_MAX + 2], *rules = NULL;
	int rc;

	if (run->plan->rules && asprintf(&rules, "SHUNT_QOS=%s", run->plan->rules) < 0)
		abort();
	join_variables(run->plan->server_variables, rules, variables);
	snprintf(conns, sizeof(conns), "%u", run->plan->clients);
	name_member(run, &run->server, "server");
	rc = start_member(run, &run->server, argv, variables);
	if (!rc)
		rc = shunt_child_wait_line(&run->server.child, run->server.line, START_SECONDS,
					   run->port, sizeof(run->port));
	free(rules);
	return rc ? explain(&run->server, rc, why) : 0;
}

static int start_client(struct run *run, uint32_t index)
{
	struct member *member = &run->clients[index];
	char text[PERF_QOS_CLIENT_ARGUMENTS][24];
	char *argv[3 + PERF_QOS_CLIENT_ARGUMENTS + 1] = { run->program, "perf-end", "qos" };
	char *variables[PERF_QOS_VARIABLES_MAX + 2], name[16];

	perf_qos_client_arguments(run->plan, run->port, index, text);
	for (size_t i = 0; i < PERF_QOS_CLIENT_ARGUMENTS; i++)
		argv[3 + i] = text[i];
	snprintf(name, sizeof(name), "c%u", index + 1);
	name_member(run, member, name);
	snprintf(member->class, sizeof(member->class), "SHUNT_QOS_CLASS=%s", name);
	join_variables(run->plan->client_variables, member->class, variables);
	return start_member(run, member, argv, variables);
}

static int hear(struct member *member, double seconds, const char *expected,
		char why[SHUNT_WHY_MAX])
{
	char line[16];
	int rc = shunt_child_wait_line(&member->child, member->line, seconds, line, sizeof(line));

	if (!rc && strcmp(line, expected))
		rc = -EPROTO;
	return rc ? explain(member, rc, why) : 0;
}

static int start_clients(struct run *run, char why[SHUNT_WHY_MAX])
{
	int rc = 0;

	for (uint32_t i = 0; i < run->plan->clients && !rc; i++) {
		rc = start_client(run, i);
		run->started++;
		if (rc)
			rc = explain(&run->clients[i], rc, why);
	}
	for (uint32_t i = 0; i < run->plan->clients && !rc; i++)
		rc = hear(&run->clients[i], START_SECONDS, "ready", why);
	return rc;
}

/* A client that has gone is found by waiting for it. */
static void tell_all(struct run *run, const char *line)
{
	for (uint32_t i = 0; i < run->plan->clients; i++)
		(void)!send(run->clients[i].line, line, strlen(line), MSG_NOSIGNAL);
}

/* ---- periods ---- */

static uint64_t period_begins(const struct run *run, uint32_t period)
{
	uint64_t before = run->plan->warm + period - 1;

	return run->start + before * run->plan->period_ms * 1000000;
}

static double seconds_until(uint64_t moment)
{
	uint64_t now = perf_now();

	return moment > now ? (double)(moment - now) / 1e9 : 0;
}

/* The server lives on, so waiting for it is waiting for the time. */
static int wait_until(struct run *run, uint64_t moment, char why[SHUNT_WHY_MAX])
{
	int rc = shunt_child_wait(&run->server.child, seconds_until(moment));

	if (rc == -ETIMEDOUT)
		return 0;
	return explain(&run->server, rc ? rc : -ECHILD, why);
}

static int run_command(struct run *run, const char *command, char why[SHUNT_WHY_MAX])
{
	struct member member = { .line = -1 };
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	struct shunt_child_start start = {
		.argv = argv, .out = member.out, .err = member.err, .dir = "."
	};
	char pid[16];
	int rc;

	name_member(run, &member, "command");
	snprintf(pid, sizeof(pid), "%d", (int)run->server.child.pid);
	setenv("SERVER_PID", pid, 1);
	rc = shunt_child_start(&member.child, &start);
	if (rc) {
		snprintf(why, SHUNT_WHY_MAX, "the command could not be started: %s", strerror(-rc));
		return -1;
	}
	rc = shunt_child_wait(&member.child, EXTRA_SECONDS);
	shunt_child_stop(&member.child);
	if (!rc && (!WIFEXITED(member.child.status) || WEXITSTATUS(member.child.status)))
		rc = -ECHILD;
	return rc ? explain(&member, rc, why) : 0;
}

static int run_events(struct run *run, uint32_t period, char why[SHUNT_WHY_MAX])
{
	int rc = 0;

	for (size_t i = 0; i < run->plan->event_count && !rc; i++)
		if (run->plan->events[i].period == period)
			rc = run_command(run, run->plan->events[i].command, why);
	return rc;
}

static int run_periods(struct run *run, char why[SHUNT_WHY_MAX])
{
	const struct perf_qos_plan *plan = run->plan;
	char line[24];
	int rc = 0;

	run->start = perf_now() + LEAD_NS;
	snprintf(line, sizeof(line), "%llu\n", (unsigned long long)run->start);
	tell_all(run, line);
	for (uint32_t period = 1; period <= plan->periods && !rc; period++) {
		rc = wait_until(run, period_begins(run, period), why);
		if (!rc)
			rc = run_events(run, period, why);
	}
	for (uint32_t i = 0; i < plan->clients && !rc; i++)
		rc = hear(&run->clients[i], EXTRA_SECONDS + plan->period_ms / 1e3, "done", why);
	if (!rc)
		rc = run_events(run, plan->periods + 1, why);
	tell_all(run, "end\n");
	return rc;
}

/* ---- results ---- */

static double number_of(const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	return json_is_number(number) ? json_number_value(number) : NAN;
}

static void read_client(const struct run *run, const struct member *member,
			struct perf_qos_client *client)
{
	static const char *const names[] = { "wr", "wr_bytes" };
	json_t *root = json_load_file(member->out, 0, NULL);
	const json_t *completed = json_object_get(root, "completed");
	const json_t *latency = json_object_get(root, "latency_us");
	double sums[2] = { 0 };

	for (uint32_t i = 0; i < run->plan->periods; i++) {
		client->completed[i] = (uint64_t)json_integer_value(json_array_get(completed, i));
		client->total += client->completed[i];
	}
	client->all = (uint64_t)number_of(root, "all");
	client->cpu = number_of(root, "cpu");
	client->mean = number_of(latency, "mean");
	client->p50 = number_of(latency, "p50");
	client->p99 = number_of(latency, "p99");
	client->p999 = number_of(latency, "p99.9");
	client->max = number_of(latency, "max");
	client->wr = client->wr_bytes = NAN;
	if (!run->plan->plain && !shunt_counters_add(member->stats, names, sums, 2)) {
		client->wr = sums[0];
		client->wr_bytes = sums[1];
	}
	json_decref(root);
}

static int read_results(const struct run *run, struct perf_qos_result *result,
			char why[SHUNT_WHY_MAX])
{
	json_t *server = json_load_file(run->server.out, 0, NULL);
	double served = number_of(server, "operations"), cpu = number_of(server, "cpu"), all = 0;

	json_decref(server);
	result->server_cpu = result->cpus = cpu;
	for (uint32_t i = 0; i < run->plan->clients; i++) {
		read_client(run, &run->clients[i], &result->clients[i]);
		all += (double)result->clients[i].all;
		result->cpus += result->clients[i].cpu;
	}
	result->cpus /= (run->plan->warm + run->plan->periods) * run->plan->period_ms / 1e3;
	if (all == served)
		return 0;
	snprintf(why, SHUNT_WHY_MAX, "the clients made %.0f requests and the server had %.0f", all,
		 served);
	return -1;
}

/* ---- all of it ---- */

static int wait_end(struct member *member, char why[SHUNT_WHY_MAX])
{
	int rc = shunt_child_wait(&member->child, EXTRA_SECONDS);

	if (!rc && (!WIFEXITED(member->child.status) || WEXITSTATUS(member->child.status)))
		rc = -ECHILD;
	return rc ? explain(member, rc, why) : 0;
}

static void stop(struct run *run)
{
	for (uint32_t i = 0; i < run->started; i++) {
		shunt_child_stop(&run->clients[i].child);
		close(run->clients[i].line);
	}
	shunt_child_stop(&run->server.child);
	close(run->server.line);
}

static int run_all(struct run *run, struct perf_qos_result *result, char why[SHUNT_WHY_MAX])
{
	int rc = start_server(run, why);

	if (!rc)
		rc = start_clients(run, why);
	if (!rc)
		rc = run_periods(run, why);
	for (uint32_t i = 0; i < run->plan->clients && !rc; i++)
		rc = wait_end(&run->clients[i], why);
	if (!rc)
		rc = wait_end(&run->server, why);
	stop(run);
	return rc ? rc : read_results(run, result, why);
}

int perf_qos_run(const struct perf_qos_plan *plan, struct perf_qos_result *result,
		 char why[SHUNT_WHY_MAX])
{
	struct run *run = calloc(1, sizeof(*run));
	ssize_t length;
	int rc = -1;

	if (!run)
		abort();
	run->plan = plan;
	run->server.line = -1;
	length = readlink("/proc/self/exe", run->program, sizeof(run->program) - 1);
	if (length <= 0 || shunt_child_init())
		snprintf(why, SHUNT_WHY_MAX, "%s", strerror(errno));
	else if (shunt_library_find(run->library) || shunt_scratch_make("perf", run->dir))
		snprintf(why, SHUNT_WHY_MAX, "nothing was started");
	else
		rc = run_all(run, result, why);
	if (*run->dir)
		shunt_scratch_remove(run->dir);
	free(run);
	return rc;
}
