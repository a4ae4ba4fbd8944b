/* SPDX-License-Identifier: MIT */
/*
 * Each host of a list to each other. Rows of this host's addresses are measured here, from that address. A row of another
 * host is what `shunt ping --json` says there, which a command such as ssh runs; its words are hostile until checked.
 */
#include "tools/ping/ping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/common/output.h"
#include "tools/common/remote.h"
#include "tools/shunt.h"

#define ABREAST 16 /* other hosts that measure at the same time */
#define WORDS_MAX 32 /* of the command that runs another */
#define ROW_MAX (16u << 20) /* bytes of a row */
#define PATIENCE 60.0 /* seconds of a row beyond the steps of its pings */
#define STEPS 4

struct row {
	struct shunt_child child;
	char out[SHUNT_FILE_MAX], err[SHUNT_FILE_MAX];
};

/* --- the list --- */

/* A user is for ssh alone, and hosts are measured, too. */
static int add(struct ping_mesh *mesh, const char *name)
{
	struct ping_target target;

	if (strchr(name, '@') || ping_target_parse(&target, name)) {
		fprintf(stderr, "shunt ping: %s is no HOST[:PORT]\n", name);
		return -1;
	}
	strcpy(mesh->names[mesh->count++], target.text);
	return 0;
}

static int read_list(struct ping_mesh *mesh, const char *path)
{
	struct shunt_hosts hosts;
	int rc = shunt_hosts_read("shunt ping", path, &hosts);

	if (rc)
		return rc;
	mesh->names = calloc(hosts.count, sizeof(*mesh->names));
	if (!mesh->names)
		abort();
	for (size_t i = 0; i < hosts.count && !rc; i++)
		rc = add(mesh, hosts.of[i].text);
	free(hosts.of);
	if (!rc && mesh->count < 2) {
		fprintf(stderr, "shunt ping: %s: a mesh has two hosts at least\n", path);
		rc = -1;
	}
	return rc;
}

/* --- cells --- */

static struct ping_cell *cell_of(const struct ping_mesh *mesh, size_t row, size_t column)
{
	return &mesh->cells[row * mesh->count + column];
}

static void fail_row(const struct ping_mesh *mesh, size_t row, const char *why)
{
	for (size_t i = 0; i < mesh->count; i++) {
		struct ping_cell *cell = cell_of(mesh, row, i);

		if (!cell->self && !cell->known)
			snprintf(cell->says, sizeof(cell->says), "%s", why);
	}
}

/* The time of bytes through streams where there is one, else of the best that was measured. */
static void fill(struct ping_cell *cell, const json_t *target)
{
	const json_t *link = json_object_get(target, "link"), *tcp = json_object_get(target, "tcp");
	const char *verdict = ping_json_text(target, "verdict");

	for (int i = PING_LINK; i <= PING_UNREACHABLE; i++)
		if (!strcmp(verdict, ping_verdict_words[i])) {
			cell->verdict = (enum ping_verdict)i;
			cell->known = true;
		}
	if (!cell->known)
		return;
	cell->ns = PING_NEVER;
	if (cell->verdict == PING_LINK)
		cell->ns = ping_time(link, "echo_ns") != PING_NEVER ? ping_time(link, "echo_ns") :
								      ping_time(link, "write_ns");
	else if (cell->verdict == PING_TCP)
		cell->ns = ping_time(link, "tcp_echo_ns") != PING_NEVER ?
				   ping_time(link, "tcp_echo_ns") :
				   ping_time(tcp, "rtt_ns");
	shunt_escape(ping_json_text(target, "cause"), cell->cause, sizeof(cell->cause));
	shunt_escape(ping_json_text(target, "says"), cell->says, sizeof(cell->says));
}

/* --- a row of ours --- */

static bool is_ours(const char *name, struct ping_target *target)
{
	ping_target_parse(target, name);
	ping_target_resolve(target);
	return !target->why && ping_address_is_ours(&target->address);
}

static int measure_row(const struct ping_mesh *mesh, size_t row, struct ping_target *self,
		       struct ping_options *options)
{
	char from[PING_ADDRESS_TEXT];
	int rc = 0;

	options->from = ping_address_text(&self->address, from);
	for (size_t i = 0; i < mesh->count && !rc; i++) {
		struct ping_way way = { .verdict = PING_UNREACHABLE };
		json_t *json;

		if (i == row)
			continue;
		ping_target_parse(&way.target, mesh->names[i]);
		rc = ping_way(&way, options);
		json = rc ? NULL : ping_json(&way);
		if (json)
			fill(cell_of(mesh, row, i), json);
		json_decref(json);
		ping_way_free(&way);
	}
	options->from = NULL;
	return rc;
}

/* --- a row of another host --- */

static int start_row(const struct ping_mesh *mesh, size_t row, const char *ssh,
		     const struct ping_options *options, struct row *started)
{
	char *words = strdup(ssh), *save = NULL, count[16], wait[16], interval[16];
	char *argv[WORDS_MAX + SHUNT_HOSTS_MAX + 12];
	struct ping_target target;
	struct shunt_child_start start = {
		.argv = argv, .out = started->out, .err = started->err, .dir = "."
	};
	int argc = 0, rc;

	if (!words)
		abort();
	for (char *word = strtok_r(words, " ", &save); word && argc < WORDS_MAX;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	ping_target_parse(&target, mesh->names[row]);
	snprintf(count, sizeof(count), "%u", options->count);
	snprintf(wait, sizeof(wait), "%.3f", options->wait_ms / 1000.0);
	snprintf(interval, sizeof(interval), "%.3f", options->interval_ms / 1000.0);
	argv[argc++] = target.host;
	argv[argc++] = "shunt";
	argv[argc++] = "ping";
	argv[argc++] = "--json";
	argv[argc++] = "-c";
	argv[argc++] = count;
	argv[argc++] = "-W";
	argv[argc++] = wait;
	argv[argc++] = "-i";
	argv[argc++] = interval;
	for (size_t i = 0; i < mesh->count; i++)
		if (i != row)
			argv[argc++] = mesh->names[i];
	argv[argc] = NULL;
	rc = shunt_child_start(&started->child, &start);
	free(words);
	return rc;
}

static json_t *read_row(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = malloc(ROW_MAX);
	size_t length = file && text ? fread(text, 1, ROW_MAX, file) : 0;
	json_t *root = length && length < ROW_MAX ?
			       json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) :
			       NULL;

	if (file)
		fclose(file);
	free(text);
	return root;
}

/* The answers are in the order of the questions. */
static void take_row(const struct ping_mesh *mesh, size_t row, const struct row *started)
{
	json_t *root = read_row(started->out);
	const json_t *targets = json_object_get(root, "targets");
	char why[SHUNT_WHY_MAX], shown[SHUNT_WHY_MAX];
	size_t column = 0;

	for (size_t i = 0; i < json_array_size(targets) && column < mesh->count; i++, column++) {
		column += column == row;
		if (column < mesh->count)
			fill(cell_of(mesh, row, column), json_array_get(targets, i));
	}
	if (!json_is_array(targets))
		shunt_child_explain("command there", -ECHILD, &started->child, started->out,
				    started->err, why);
	else
		strcpy(why, "the command there has not answered for it");
	fail_row(mesh, row, shunt_escape(why, shown, sizeof(shown)));
	json_decref(root);
}

static int await_rows(const struct ping_mesh *mesh, const size_t *rows, struct row *started,
		      size_t count, const struct ping_options *options)
{
	double each = options->wait_ms / 1000.0 * STEPS +
		      options->count * options->interval_ms / 1000.0;
	double until = shunt_seconds() + PATIENCE + each * (double)mesh->count;
	int rc = 0;

	for (size_t i = 0; i < count; i++) {
		double left = until - shunt_seconds();

		if (!started[i].child.pid)
			continue;
		if (rc != -EINTR)
			rc = shunt_child_wait(&started[i].child, left > 0 ? left : 0);
		shunt_child_stop(&started[i].child);
		take_row(mesh, rows[i], &started[i]);
	}
	return rc == -EINTR ? rc : 0;
}

/* Some rows of other hosts, at the same time. */
static int ask_rows(const struct ping_mesh *mesh, const size_t *rows, size_t count, const char *ssh,
		    const struct ping_options *options)
{
	struct row *started = calloc(count, sizeof(*started));
	int rc;

	if (!started)
		abort();
	for (size_t i = 0; i < count; i++) {
		snprintf(started[i].out, sizeof(started[i].out), "%s/row-%zu.out", options->scratch,
			 rows[i]);
		snprintf(started[i].err, sizeof(started[i].err), "%s/row-%zu.err", options->scratch,
			 rows[i]);
		rc = start_row(mesh, rows[i], ssh, options, &started[i]);
		if (rc)
			fail_row(mesh, rows[i], strerror(-rc));
	}
	rc = await_rows(mesh, rows, started, count, options);
	free(started);
	return rc;
}

/* --- all --- */

static int measure(const struct ping_mesh *mesh, const char *ssh, struct ping_options *options)
{
	size_t others[SHUNT_HOSTS_MAX], count = 0;
	int rc = 0;

	for (size_t i = 0; i < mesh->count && !rc; i++) {
		struct ping_target target;

		if (is_ours(mesh->names[i], &target))
			rc = measure_row(mesh, i, &target, options);
		else
			others[count++] = i;
	}
	for (size_t i = 0; i < count && !rc; i += ABREAST)
		rc = ask_rows(mesh, others + i, count - i < ABREAST ? count - i : ABREAST, ssh,
			      options);
	return rc;
}

static bool is_whole(const struct ping_mesh *mesh)
{
	bool whole = true;

	for (size_t i = 0; i < mesh->count * mesh->count; i++)
		whole &= mesh->cells[i].self ||
			 (mesh->cells[i].known && mesh->cells[i].verdict == PING_LINK);
	return whole;
}

static int report(const struct ping_mesh *mesh, const struct ping_matrix_options *matrix)
{
	const char *plain = getenv("NO_COLOR");
	json_t *root;
	int rc = 0;

	if (matrix->json) {
		root = ping_mesh_json(mesh);
		rc = shunt_print_json(stdout, root, JSON_INDENT(2));
		json_decref(root);
	} else {
		ping_table(mesh, isatty(STDOUT_FILENO) && !(plain && *plain));
	}
	if (matrix->html && ping_page(mesh, matrix->html))
		rc = -1;
	return rc || !is_whole(mesh) ? EXIT_FAILED : 0;
}

int ping_matrix(const struct ping_matrix_options *matrix, struct ping_options *options)
{
	struct ping_mesh mesh = { 0 };
	int rc = EXIT_USAGE;

	if (!read_list(&mesh, matrix->file)) {
		mesh.cells = calloc(mesh.count * mesh.count, sizeof(*mesh.cells));
		if (!mesh.cells)
			abort();
		for (size_t i = 0; i < mesh.count; i++)
			cell_of(&mesh, i, i)->self = true;
		rc = measure(&mesh, matrix->ssh, options) ? EXIT_FAILED : report(&mesh, matrix);
	}
	free(mesh.names);
	free(mesh.cells);
	return rc;
}
