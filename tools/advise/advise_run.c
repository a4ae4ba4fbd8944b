/* SPDX-License-Identifier: MIT */
/* One run of the command: a server of our own if one is wanted, the client, its figure, both ends' CPU time and statistics. */
#include "tools/advise/advise.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/shunt.h"

#define START_SECONDS 30
#define STOP_MS 5000
#define OFFER_SECONDS 1.0
#define LOOK_SECONDS 0.01
#define OUTPUT_MAX (16 << 20) /* bytes */

struct files {
	char server_out[SHUNT_FILE_MAX], server_err[SHUNT_FILE_MAX], server_stats[SHUNT_FILE_MAX];
	char client_out[SHUNT_FILE_MAX], client_err[SHUNT_FILE_MAX], client_stats[SHUNT_FILE_MAX];
};

const char *advise_unit(const struct advise_bench *bench)
{
	return bench->metric_count ? bench->metrics->unit : "s";
}

bool advise_is_lower(const struct advise_bench *bench)
{
	return !bench->metric_count || bench->metrics->lower;
}

/* ---- files ---- */

static void name_file(char path[SHUNT_FILE_MAX], const struct advise_bench *bench, const char *name)
{
	snprintf(path, SHUNT_FILE_MAX, "%s/%s", bench->dir, name);
}

static bool is_statistics(const char *name, const char *end)
{
	return !strncmp(name, end, strlen(end)) && strlen(name) > 5 &&
	       !strcmp(name + strlen(name) - 5, ".json");
}

/* Of each process of an end, "client." or "server."; `sum` NULL: they are removed. */
static void read_statistics(const struct advise_bench *bench, const char *end, json_t *sum)
{
	DIR *dir = opendir(bench->dir);
	const struct dirent *entry;
	char path[SHUNT_FILE_MAX + 256];
	json_error_t error;

	while (dir && (entry = readdir(dir))) {
		json_t *root;

		if (!is_statistics(entry->d_name, end))
			continue;
		snprintf(path, sizeof(path), "%s/%s", bench->dir, entry->d_name);
		if (!sum) {
			unlink(path);
			continue;
		}
		root = json_load_file(path, 0, &error);
		advise_signs_add(sum, root, 1);
		json_decref(root);
	}
	if (dir)
		closedir(dir);
}

static void begin_files(const struct advise_bench *bench, struct files *files)
{
	name_file(files->server_out, bench, "server.out");
	name_file(files->server_err, bench, "server.err");
	name_file(files->server_stats, bench, "server.%p.json");
	name_file(files->client_out, bench, "client.out");
	name_file(files->client_err, bench, "client.err");
	name_file(files->client_stats, bench, "client.%p.json");
	read_statistics(bench, "server.", NULL);
	read_statistics(bench, "client.", NULL);
	/* Output of the last server is not this one's. */
	unlink(files->server_out);
	unlink(files->server_err);
}

/* A file's text up to OUTPUT_MAX, to be freed; "" if there is none. */
static char *read_text(const char *path)
{
	FILE *file = fopen(path, "re");
	struct stat st = { 0 };
	size_t length = 0;
	char *text;

	if (file && !fstat(fileno(file), &st) && st.st_size > OUTPUT_MAX)
		st.st_size = OUTPUT_MAX;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		abort();
	if (file) {
		length = fread(text, 1, (size_t)st.st_size, file);
		fclose(file);
	}
	/* A text ends at a 0, but a program may print one. */
	for (size_t i = 0; i < length; i++)
		if (!text[i])
			text[i] = ' ';
	text[length] = '\0';
	return text;
}

static bool says(const char *path, const char *wanted)
{
	char *text = read_text(path);
	bool found = strstr(text, wanted) != NULL;

	free(text);
	return found;
}

/* ---- the server ---- */

/* In *port where it listens; 0: not known. */
static bool is_ready(const struct advise_bench *bench, const struct files *files, int *port)
{
	pid_t pids[ADVISE_SERVERS_MAX];

	*port = bench->server.port;
	if (bench->server.ready)
		return says(files->server_out, bench->server.ready) ||
		       says(files->server_err, bench->server.ready);
	if (bench->server.port)
		return advise_server_listens(bench->server.port);
	*port = advise_server_any_port(pids, advise_tree_list(getpid(), pids, ADVISE_SERVERS_MAX));
	return *port > 0;
}

/* A daemon's first process ends well, and the others are ours by then. */
static bool has_gone(const struct shunt_child *child)
{
	pid_t pid;

	return !child->pid && (!WIFEXITED(child->status) || WEXITSTATUS(child->status) ||
			       !advise_tree_list(getpid(), &pid, 1));
}

/* A while. -EINTR, or 0. */
static int wait_a_while(struct shunt_child *child)
{
	static const struct timespec pause = { .tv_nsec = (long)(LOOK_SECONDS * 1e9) };

	if (!child->pid)
		nanosleep(&pause, NULL);
	return shunt_child_wait(child, LOOK_SECONDS) == -EINTR ? -EINTR : 0;
}

/*
 * A port is open a moment before links are offered for it, and a client that comes in between stays on
 * TCP for refused_ms. A server that never offers any has had its time.
 */
static int wait_offer(struct shunt_child *child, int port)
{
	double end = shunt_seconds() + OFFER_SECONDS;
	int rc = 0;

	while (!rc && !advise_server_offers(port) && shunt_seconds() < end)
		rc = wait_a_while(child);
	return rc;
}

static int wait_ready(const struct advise_bench *bench, const struct files *files, bool shunted,
		      struct shunt_child *child)
{
	double end = shunt_seconds() + START_SECONDS;
	int rc = 0, port;

	while (!rc && !is_ready(bench, files, &port)) {
		if (has_gone(child))
			return -ECHILD;
		if (shunt_seconds() > end)
			return -ETIMEDOUT;
		rc = wait_a_while(child);
	}
	if (!rc && shunted)
		rc = wait_offer(child, port);
	return rc ? rc : has_gone(child) ? -ECHILD : 0;
}

static int start_server(const struct advise_bench *bench, const struct files *files,
			struct shunt_child_start *start, struct shunt_child *child,
			char why[SHUNT_WHY_MAX])
{
	char *argv[] = { "/bin/sh", "-c", (char *)bench->server.command, NULL };
	int rc;

	if (bench->server.port && advise_server_listens(bench->server.port)) {
		snprintf(
			why, SHUNT_WHY_MAX,
			"a process listens at port %d before the server is started: end it, or leave "
			"--server out and start it with `shunt run`",
			bench->server.port);
		return -1;
	}
	start->argv = argv;
	start->stats = files->server_stats;
	start->out = files->server_out;
	start->err = files->server_err;
	rc = shunt_child_start(child, start);
	if (!rc)
		rc = wait_ready(bench, files, start->library != NULL, child);
	return rc ? shunt_child_explain("server", rc, child, files->server_out, files->server_err,
					why) :
		    0;
}

/*
 * The whole group is told: a shell does not pass it on. A database ends in order also where the user has interrupted us,
 * so this waits for the process itself. Daemons are told when their first process has ended.
 */
static void stop_server(struct shunt_child *child)
{
	if (child->pid) {
		struct pollfd end = { .fd = child->pidfd, .events = POLLIN };

		kill(-child->pid, SIGTERM);
		poll(&end, 1, STOP_MS);
	}
	shunt_child_stop(child);
	advise_tree_end(STOP_MS / 1000.0);
}

/* ---- the client ---- */

static double server_cpu(const struct advise_bench *bench)
{
	pid_t pids[ADVISE_SERVERS_MAX];

	if (!bench->server.command)
		return bench->server.count ?
			       advise_tree_cpu(bench->server.pids, bench->server.count) :
			       NAN;
	return advise_tree_cpu(pids, advise_tree_list(getpid(), pids, ADVISE_SERVERS_MAX));
}

/* A child that is waited for while /proc is read is missing once, in itself and in its parent. */
static double settled_cpu(const struct advise_bench *bench)
{
	static const struct timespec pause = { .tv_nsec = 10000000 };
	double first = server_cpu(bench);

	nanosleep(&pause, NULL);
	return fmax(first, server_cpu(bench));
}

/* Looks for the server while the client runs; each look takes twice as long to come. */
static int seek_server(struct advise_bench *bench, struct shunt_child *client)
{
	double pause = 0.005;
	int rc;

	do {
		rc = shunt_child_wait(client, pause);
		pause *= 2;
	} while (rc == -ETIMEDOUT && pause < 2 && !advise_server_of(&bench->server, client->pid));
	return rc == -ETIMEDOUT ? 0 : rc;
}

static int run_client(struct advise_bench *bench, const struct files *files,
		      struct shunt_child_start *start, struct advise_run *run,
		      char why[SHUNT_WHY_MAX])
{
	struct shunt_child client = { 0 };
	double before = server_cpu(bench), begun;
	int rc;

	start->argv = bench->argv;
	start->stats = files->client_stats;
	start->out = files->client_out;
	start->err = files->client_err;
	begun = shunt_seconds();
	rc = shunt_child_start(&client, start);
	if (!rc && bench->seek)
		rc = seek_server(bench, &client);
	if (!rc)
		rc = shunt_child_wait(&client, bench->timeout);
	run->seconds = shunt_seconds() - begun;
	if (client.pid)
		kill(-client.pid, SIGTERM);
	shunt_child_stop(&client);
	run->client_cpu = client.cpu;
	run->server_cpu = settled_cpu(bench) - before;
	if (!rc && (!WIFEXITED(client.status) || WEXITSTATUS(client.status)))
		rc = -ECHILD;
	if (rc == -ETIMEDOUT) {
		snprintf(
			why, SHUNT_WHY_MAX,
			"the command has not ended after %.0f s: let it do less, or give a longer --timeout",
			bench->timeout);
		return -1;
	}
	return rc ? shunt_child_explain("command", rc, &client, files->client_out,
					files->client_err, why) :
		    0;
}

static int read_figure(const struct advise_bench *bench, const struct files *files,
		       struct advise_run *run, char why[SHUNT_WHY_MAX])
{
	char *text;
	int rc;

	run->figure = run->seconds;
	if (!bench->metric_count)
		return 0;
	text = read_text(files->client_out);
	rc = advise_metric_read(bench->metrics, bench->metric_count, text, &run->figure);
	free(text);
	if (rc)
		snprintf(
			why, SHUNT_WHY_MAX,
			"the command's output has no number that matches '%s': --metric gives another "
			"expression, and --metric time takes the time of a run",
			bench->metrics->pattern);
	return rc;
}

int advise_run(struct advise_bench *bench, const struct advise_way *way, struct advise_run *run,
	       json_t *client, json_t *server, char why[SHUNT_WHY_MAX])
{
	struct shunt_child_start start = { .dir = ".", .variables = way->variables };
	struct shunt_child child = { 0 };
	struct files files;
	int rc = 0;

	*run = (struct advise_run) { .server_cpu = NAN };
	begin_files(bench, &files);
	start.library = way->shunted ? bench->library : NULL;
	if (bench->server.command)
		rc = start_server(bench, &files, &start, &child, why);
	if (!rc)
		rc = run_client(bench, &files, &start, run, why);
	/* A server that crashed is the reason, whatever its client makes of it. */
	if (rc == -1 && bench->server.command && !child.pid && has_gone(&child))
		rc = shunt_child_explain("server", -ECHILD, &child, files.server_out,
					 files.server_err, why);
	stop_server(&child);
	if (!rc)
		rc = read_figure(bench, &files, run, why);
	if (rc)
		return rc;
	if (client)
		read_statistics(bench, "client.", client);
	if (server)
		read_statistics(bench, "server.", server);
	return 0;
}
