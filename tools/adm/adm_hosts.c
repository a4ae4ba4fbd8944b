/* SPDX-License-Identifier: MIT */
/*
 * shunt adm on other hosts: each runs the same `shunt adm` over ssh, some at a time, each with a deadline of its own. A host
 * that fails or hangs keeps no other waiting beyond its turn. Answers are shown in the order of the file.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "core/api.h"
#include "tools/adm/adm_who.h"
#include "tools/ask/budget.h"
#include "tools/common/output.h"
#include "tools/common/remote.h"
#include "tools/shunt.h"

#define ABREAST 16 /* hosts that are asked at the same time */
#define ANSWER_MAX (1u << 20) /* bytes of a host's answer */
#define VALUES_MAX (4u << 20) /* bytes of what becomes of its JSON */

enum { EXIT_SOME = 3 };

struct place {
	const struct shunt_host *host;
	struct shunt_remote remote;
	double until;
	bool runs;
	char why[SHUNT_REMOTE_WHY]; /* "": the host has done it */
	json_t *processes; /* with --json */
};

/* ---- the command there ---- */

/* In single quotes a shell takes every byte as it is, but for the quote. */
static void quote(FILE *file, const char *word)
{
	fputs(" '", file);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (const char[]) { *word, '\0' }, file);
	putc('\'', file);
}

/* The same words without --hosts and --timeout. To be freed. */
static char *command_of(int argc, char **argv, int used)
{
	char *command = NULL;
	size_t bytes;
	FILE *file = open_memstream(&command, &bytes);

	if (!file)
		abort();
	fputs("shunt adm", file);
	for (int i = 1; i < argc; i++)
		if (i < used && (!strcmp(argv[i], "--hosts") || !strcmp(argv[i], "--timeout")))
			i++;
		else
			quote(file, argv[i]);
	if (fclose(file))
		abort();
	return command;
}

/* ---- one host ---- */

static void start(struct place *place, const char *command, double patience)
{
	int rc = shunt_remote_start(&place->remote, place->host, command, ANSWER_MAX);

	place->until = shunt_seconds() + patience;
	place->runs = !rc;
	if (rc)
		snprintf(place->why, sizeof(place->why), "ssh cannot be started: %s",
			 strerror(-rc));
}

/* The member "processes" of the answer. NULL: it is no answer of shunt adm. */
static json_t *parse(const struct shunt_heard *out)
{
	json_error_t error;
	json_t *root = shunt_budget_parse(out->text ? out->text : "", out->length, VALUES_MAX,
					  JSON_REJECT_DUPLICATES, &error);
	json_t *processes = json_object_get(root, "processes");

	json_incref(processes);
	json_decref(root);
	if (json_is_array(processes))
		return processes;
	json_decref(processes);
	return NULL;
}

/* Statuses of shunt adm: 1 is a refusal that it has shown. */
static void judge(struct place *place, bool json)
{
	const struct shunt_remote *remote = &place->remote;
	int status = WIFEXITED(remote->status) ? WEXITSTATUS(remote->status) : -1;

	place->runs = false;
	if (remote->out.lost) {
		snprintf(place->why, sizeof(place->why),
			 "its answer is longer than %u bytes; name fewer processes", ANSWER_MAX);
		return;
	}
	if (json && (status == 0 || status == EXIT_FAILED))
		place->processes = parse(&remote->out);
	if (status == 0 && json && !place->processes)
		snprintf(
			place->why, sizeof(place->why),
			"its answer is not that of `shunt adm`; is another version installed there?");
	else if (status == EXIT_FAILED)
		snprintf(
			place->why, sizeof(place->why),
			"a process has refused it or given no answer, or there is none; see what the host says");
	else if (status)
		shunt_remote_explain(remote, place->host, place->why);
}

static void expire(struct place *place, double patience)
{
	snprintf(
		place->why, sizeof(place->why),
		"it has not answered within %g seconds, and may do it yet; --timeout gives it longer",
		patience);
	place->runs = false;
	shunt_remote_stop(&place->remote);
}

/* ---- all of them ---- */

/* ms until the first deadline of those that run. */
static int prepare(struct place **running, size_t count, struct pollfd *fds)
{
	double left = 3600;

	for (size_t i = 0; i < count; i++) {
		shunt_remote_poll(&running[i]->remote, fds + i * SHUNT_REMOTE_FDS);
		if (running[i]->until - shunt_seconds() < left)
			left = running[i]->until - shunt_seconds();
	}
	return left > 0 ? (int)(left * 1000) + 1 : 0;
}

static void serve(struct place *place, const struct pollfd *fds, const struct adm_who *who)
{
	if (shunt_remote_serve(&place->remote, fds) || place->remote.out.lost)
		judge(place, who->json);
	else if (shunt_seconds() >= place->until)
		expire(place, who->patience);
}

static void ask(struct place *places, size_t count, const char *command, const struct adm_who *who)
{
	struct pollfd fds[ABREAST * SHUNT_REMOTE_FDS];
	struct place *running[ABREAST];
	size_t next = 0, abreast = 0, left;

	while (next < count || abreast) {
		for (; next < count && abreast < ABREAST; next++) {
			start(&places[next], command, who->patience);
			if (places[next].runs)
				running[abreast++] = &places[next];
		}
		if (!abreast)
			break;
		if (poll(fds, abreast * SHUNT_REMOTE_FDS, prepare(running, abreast, fds)) < 0 &&
		    errno == EINTR)
			continue;
		left = 0;
		for (size_t i = 0; i < abreast; i++) {
			serve(running[i], fds + i * SHUNT_REMOTE_FDS, who);
			if (running[i]->runs)
				running[left++] = running[i];
		}
		abreast = left;
	}
}

/* ---- what they say ---- */

static void print_lines(FILE *file, const char *host, const struct shunt_heard *heard)
{
	const char *text = heard->text;

	for (size_t left = heard->length; left;) {
		const char *end = memchr(text, '\n', left);
		size_t length = end ? (size_t)(end - text) : left;

		fprintf(file, "%s: ", host);
		/* ssh ends its own lines with CR and LF. */
		shunt_print_escaped(file, text, length - (length && text[length - 1] == '\r'));
		putc('\n', file);
		length += end != NULL;
		text += length;
		left -= length;
	}
}

static void print_json(const struct place *places, size_t count)
{
	json_t *hosts = json_object(), *root;

	for (size_t i = 0; i < count; i++) {
		const struct place *place = &places[i];
		json_t *row = json_pack("{s:b, s:s, s:O*}", "done", !*place->why, "why", place->why,
					"processes", place->processes);

		json_object_set_new(hosts, place->host->text, row);
	}
	root = json_pack("{s:i, s:o}", "schema", SHUNT_JSON_SCHEMA, "hosts", hosts);
	shunt_print_json(stdout, root, JSON_INDENT(2));
	json_decref(root);
}

/* The exit status. */
static int show(const struct place *places, size_t count, bool json)
{
	size_t done = 0;

	if (json)
		print_json(places, count);
	for (size_t i = 0; i < count; i++) {
		const struct place *place = &places[i];

		done += !*place->why;
		if (!json)
			print_lines(stdout, place->host->text, &place->remote.out);
		print_lines(stderr, place->host->text, &place->remote.err);
		if (*place->why)
			fprintf(stderr, "shunt adm: %s: %s\n", place->host->text, place->why);
	}
	if (done < count)
		fprintf(stderr, "shunt adm: %zu of %zu hosts have done it\n", done, count);
	return done == count ? 0 : done ? EXIT_SOME : EXIT_FAILED;
}

int adm_hosts(int argc, char **argv, int used, const struct adm_who *who)
{
	struct shunt_hosts hosts;
	struct place *places;
	char *command;
	int rc;

	if (shunt_hosts_read("shunt adm", who->hosts, &hosts))
		return EXIT_USAGE;
	places = calloc(hosts.count, sizeof(*places));
	if (!places)
		abort();
	for (size_t i = 0; i < hosts.count; i++)
		places[i].host = &hosts.of[i];
	command = command_of(argc, argv, used);
	ask(places, hosts.count, command, who);
	rc = show(places, hosts.count, who->json);
	for (size_t i = 0; i < hosts.count; i++) {
		shunt_remote_stop(&places[i].remote);
		json_decref(places[i].processes);
	}
	free(command);
	free(places);
	free(hosts.of);
	return rc;
}
