/* SPDX-License-Identifier: MIT */
/*
 * The mesh of hosts, from a file that `shunt ping --matrix HOSTS --json` has written. Each cell is
 * one way, with the round trip of 64 bytes. The monitor sends nothing itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/monitor/monitor.h"
#include "tools/shunt.h"

#define FILE_MAX (4U << 20)
#define HOSTS 64

/* NULL: `why` says why not. */
static json_t *load(int fd, struct stat *file, const char **why)
{
	json_t *root;

	*why = "it is no file, or too long";
	if (fstat(fd, file) || !S_ISREG(file->st_mode) || file->st_size > (off_t)FILE_MAX)
		return NULL;
	root = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
	*why = "it is no answer of shunt ping --matrix --json";
	if (json_is_array(json_object_get(root, "hosts")) &&
	    json_is_array(json_object_get(root, "ways")))
		return root;
	json_decref(root);
	return NULL;
}

static json_t *read_mesh(const char *path, struct stat *file, const char **why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	json_t *root;

	*why = strerror(errno);
	if (fd < 0)
		return NULL;
	root = load(fd, file, why);
	close(fd);
	return root;
}

/* ---- cells ---- */

static size_t number_of(const json_t *hosts, const json_t *name)
{
	for (size_t i = 0; i < json_array_size(hosts) && i < HOSTS; i++)
		if (json_equal(json_array_get(hosts, i), name))
			return i;
	return HOSTS;
}

static void place(const json_t *root, const json_t *cells[HOSTS][HOSTS])
{
	const json_t *hosts = json_object_get(root, "hosts"), *way;
	size_t i;

	json_array_foreach(json_object_get(root, "ways"), i, way)
	{
		size_t from = number_of(hosts, json_object_get(way, "from"));
		size_t to = number_of(hosts, json_object_get(way, "to"));

		if (from < HOSTS && to < HOSTS)
			cells[from][to] = way;
	}
}

static void put_cell(FILE *file, const json_t *way)
{
	static const char *const words[] = { "link", "tcp", "unreachable" };
	const char *verdict = json_string_value(json_object_get(way, "verdict"));
	const json_t *ns = json_object_get(way, "ns");
	size_t i = 0;

	while (i < 3 && (!verdict || strcmp(verdict, words[i])))
		i++;
	fprintf(file, "<td class=%s title=\"", i < 3 ? words[i] : "unknown");
	monitor_html_member(file, way, "says");
	fputs("\">", file);
	if (json_is_integer(ns) && json_integer_value(ns) >= 0)
		fprintf(file, "%s %.1f µs", i ? "TCP" : "link",
			(double)json_integer_value(ns) / 1000);
	else
		fputs(!way ? "" : i < 3 ? words[i] : "?", file);
}

static void put_table(FILE *file, const json_t *hosts, const json_t *cells[HOSTS][HOSTS])
{
	size_t count = json_array_size(hosts) < HOSTS ? json_array_size(hosts) : HOSTS;

	fputs("<div class=wide><table class=mesh><tr><th>From", file);
	for (size_t i = 0; i < count; i++) {
		fputs("<th>", file);
		monitor_html(file, json_string_value(json_array_get(hosts, i)));
	}
	for (size_t i = 0; i < count; i++) {
		fputs("\n<tr><th>", file);
		monitor_html(file, json_string_value(json_array_get(hosts, i)));
		for (size_t j = 0; j < count; j++)
			put_cell(file, cells[i][j]);
	}
	fputs("</table></div>\n", file);
}

/* Ways that are not on a link. */
static void put_causes(FILE *file, const json_t *ways)
{
	const json_t *way;
	size_t i;

	fputs("<ul>", file);
	json_array_foreach(ways, i, way)
	{
		const char *says = json_string_value(json_object_get(way, "says"));
		const char *verdict = json_string_value(json_object_get(way, "verdict"));

		if (i >= (size_t)HOSTS * HOSTS || !says || !*says || !verdict ||
		    !strcmp(verdict, "link"))
			continue;
		fputs("<li>", file);
		monitor_html_member(file, way, "from");
		fputs(" → ", file);
		monitor_html_member(file, way, "to");
		fputs(": ", file);
		monitor_html(file, says);
	}
	fputs("</ul>\n", file);
}

void monitor_matrix(FILE *file, const char *path)
{
	const json_t *(*cells)[HOSTS] = calloc(HOSTS, sizeof(*cells));
	struct stat from = { 0 };
	const char *why;
	json_t *root = read_mesh(path, &from, &why);

	if (!cells)
		abort();
	fputs("<h2>Between hosts</h2>\n", file);
	if (root) {
		char clock[32] = "";
		struct tm tm;

		if (localtime_r(&from.st_mtime, &tm))
			strftime(clock, sizeof(clock), "%F %T", &tm);
		fprintf(file, "<p class=none>shunt ping, %s; 64 bytes there and back</p>\n", clock);
		place(root, cells);
		put_table(file, json_object_get(root, "hosts"), cells);
		put_causes(file, json_object_get(root, "ways"));
	} else {
		fputs("<p class=bad>", file);
		monitor_html(file, path);
		fprintf(file, ": %s</p>\n", why);
	}
	json_decref(root);
	free(cells);
}
