/* SPDX-License-Identifier: MIT */
/*
 * Other hosts on the page. Each runs `shunt stat --json --watch` over ssh for as long as the monitor lives, so that a look
 * takes the last answer and waits for nobody. A line is one answer: an array of processes. A host that is silent, ends or
 * sends something else has no processes, and is tried again later. Its words are hostile until they are checked: a line
 * and its values have bounds, which all hosts share, and lines that come too fast wait in the pipe.
 */
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ask/budget.h"
#include "tools/common/output.h"
#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

#define PATIENCE 15.0 /* seconds without an answer, beyond the interval */
#define AGAIN 5.0 /* seconds until a host is tried again */
#define LINES (64u << 20) /* bytes of all hosts' lines */
#define VALUES (512u << 20) /* bytes of what becomes of them */
#define LINE_MOST (4u << 20) /* of one host */
#define VALUES_MOST (32u << 20)
#define PROCESSES_MOST 1000

struct answer {
	json_t *processes; /* NULL: none */
	double at; /* shunt_seconds() */
};

struct monitor_host {
	const struct shunt_host *host;
	struct shunt_remote remote;
	bool runs;
	struct answer now, before;
	double heard; /* its last answer, or its start; shunt_seconds() */
	double again; /* when it is started again, if it does not run */
	double quiet; /* nothing of it is read until then */
	time_t since; /* it is up, or is not */
	char why[SHUNT_LOOK_HOST_WHY]; /* it is not up */
};

static size_t share(const struct monitor *monitor, size_t all, size_t most)
{
	size_t its = all / monitor->options.others.count;

	return its < most ? its : most;
}

/* ---- answers ---- */

static void forget(struct answer *answer)
{
	json_decref(answer->processes);
	*answer = (struct answer) { 0 };
}

static void fail(struct monitor_host *host, const char *why)
{
	if (host->now.processes)
		host->since = time(NULL);
	snprintf(host->why, sizeof(host->why), "%s", why);
	forget(&host->now);
	forget(&host->before);
	shunt_remote_stop(&host->remote);
	host->runs = false;
	host->again = shunt_seconds() + AGAIN;
}

/* Its number and its identity; a host may lie about all else only within its own rows. */
static bool know(const json_t *process, struct shunt_door *door)
{
	const char *identity = json_string_value(json_object_get(process, "identity"));
	json_int_t pid = json_integer_value(json_object_get(process, "pid"));

	if (!identity || !shunt_door_parse(identity, door) || !door->identity[0] || pid < 0 ||
	    pid > INT32_MAX)
		return false;
	door->pid = (pid_t)pid;
	return true;
}

static bool is_answer(const json_t *processes)
{
	struct shunt_door door;
	const json_t *process;
	size_t i;

	if (!json_is_array(processes) || json_array_size(processes) > PROCESSES_MOST)
		return false;
	json_array_foreach(processes, i, process)
		if (!know(process, &door))
			return false;
	return true;
}

static void take(const struct monitor *monitor, struct monitor_host *host, const char *line,
		 size_t bytes)
{
	json_error_t error;
	json_t *processes = shunt_budget_parse(line, bytes, share(monitor, VALUES, VALUES_MOST),
					       JSON_REJECT_DUPLICATES, &error);

	if (!is_answer(processes)) {
		json_decref(processes);
		fail(host, "its answer is not that of `shunt stat`, or has too many streams");
		return;
	}
	if (!host->now.processes)
		host->since = time(NULL);
	forget(&host->before);
	host->before = host->now;
	host->heard = shunt_seconds();
	host->quiet = host->heard + monitor->options.interval / 2;
	host->now = (struct answer) { processes, host->heard };
	host->why[0] = '\0';
}

/* The last whole line is the newest answer; older ones are passed over. */
static void hear(const struct monitor *monitor, struct monitor_host *host)
{
	struct shunt_heard *out = &host->remote.out;
	const char *end = out->length ? memrchr(out->text, '\n', out->length) : NULL, *start;
	size_t used;

	if (out->lost)
		fail(host, "its answer is too long for this monitor; its streams are too many");
	if (!end || out->lost)
		return;
	start = end > out->text ? memrchr(out->text, '\n', (size_t)(end - out->text)) : NULL;
	start = start ? start + 1 : out->text;
	used = (size_t)(end - out->text) + 1;
	take(monitor, host, start, (size_t)(end - start));
	if (!host->runs)
		return;
	memmove(out->text, out->text + used, out->length - used);
	out->length -= used;
}

/* ---- hosts ---- */

static void start(const struct monitor *monitor, struct monitor_host *host)
{
	char command[64], why[SHUNT_REMOTE_WHY];
	int rc;

	snprintf(command, sizeof(command), "shunt stat --json --watch %.2f",
		 monitor->options.interval);
	rc = shunt_remote_start(&host->remote, host->host, command,
				share(monitor, LINES, LINE_MOST));
	host->heard = shunt_seconds();
	host->quiet = 0;
	host->runs = true;
	if (!rc)
		return;
	snprintf(why, sizeof(why), "ssh cannot be started: %s", strerror(-rc));
	fail(host, why);
}

static void serve(const struct monitor *monitor, struct monitor_host *host,
		  const struct pollfd *fds)
{
	double patience = PATIENCE + monitor->options.interval;
	char why[SHUNT_REMOTE_WHY];
	bool ended = shunt_remote_serve(&host->remote, fds);

	hear(monitor, host);
	if (!host->runs)
		return;
	if (ended)
		fail(host, shunt_remote_explain(&host->remote, host->host, why));
	else if (shunt_seconds() - host->heard > patience)
		fail(host, "it has said nothing for too long");
}

void monitor_hosts_serve(struct monitor *monitor, const struct pollfd *fds)
{
	for (size_t i = 0; i < monitor->options.others.count; i++)
		if (monitor->hosts[i].runs)
			serve(monitor, &monitor->hosts[i], fds + i * SHUNT_REMOTE_FDS);
}

/* Seconds until it wants something although it says nothing. */
static double rest(const struct monitor *monitor, const struct monitor_host *host, double now)
{
	if (!host->runs)
		return host->again - now;
	if (host->quiet > now)
		return host->quiet - now;
	return host->heard + PATIENCE + monitor->options.interval - now;
}

int monitor_hosts_prepare(struct monitor *monitor, struct pollfd *fds)
{
	double now = shunt_seconds(), least = 3600;

	for (size_t i = 0; i < monitor->options.others.count; i++) {
		struct monitor_host *host = &monitor->hosts[i];
		struct pollfd *its = fds + i * SHUNT_REMOTE_FDS;
		double left;

		if (!host->runs && now >= host->again)
			start(monitor, host);
		shunt_remote_poll(&host->remote, its);
		if (host->quiet > now)
			its[0].fd = -1;
		left = rest(monitor, host, now);
		least = left < least ? left : least;
	}
	if (!monitor->options.others.count)
		return -1;
	return least > 0 ? (int)(least * 1000) + 1 : 0;
}

void monitor_hosts_open(struct monitor *monitor)
{
	const struct shunt_hosts *hosts = &monitor->options.others;

	monitor->hosts = calloc(hosts->count + 1, sizeof(*monitor->hosts));
	if (!monitor->hosts)
		abort();
	for (size_t i = 0; i < hosts->count; i++)
		monitor->hosts[i] = (struct monitor_host) { .host = &hosts->of[i],
							    .since = time(NULL),
							    .why = "it has not answered yet" };
}

void monitor_hosts_close(struct monitor *monitor)
{
	for (size_t i = 0; i < monitor->options.others.count; i++)
		if (monitor->hosts[i].runs)
			fail(&monitor->hosts[i], "");
	free(monitor->hosts);
	free(monitor->options.others.of);
}

/* ---- looks ---- */

static void add(struct shunt_look *look, const struct monitor_host *host,
		const struct answer *answer)
{
	size_t count = json_array_size(answer->processes);

	if (!count)
		return;
	look->processes =
		reallocarray(look->processes, look->count + count, sizeof(*look->processes));
	if (!look->processes)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct shunt_stat stat = { .host = host->host->text,
					   .process = json_array_get(answer->processes, i),
					   .at = answer->at };

		if (!know(stat.process, &stat.door))
			continue;
		json_incref(stat.process);
		look->processes[look->count++] = stat;
	}
}

void monitor_hosts_add(const struct monitor *monitor, struct shunt_look *look,
		       struct shunt_look *before)
{
	look->host_count = monitor->options.others.count;
	look->hosts = calloc(look->host_count + 1, sizeof(*look->hosts));
	if (!look->hosts)
		abort();
	for (size_t i = 0; i < look->host_count; i++) {
		const struct monitor_host *host = &monitor->hosts[i];
		struct shunt_look_host *shown = &look->hosts[i];

		*shown = (struct shunt_look_host) { .name = host->host->text,
						    .up = host->now.processes != NULL,
						    .since = host->since };
		memcpy(shown->why, host->why, sizeof(shown->why));
		add(look, host, &host->now);
		add(before, host, &host->before);
	}
}
