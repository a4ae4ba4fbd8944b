/* SPDX-License-Identifier: MIT */
/*
 * Connections as `ss -tn` lists them, with one column more: the track. A row may be about a process that lies, so its
 * texts are escaped and cut.
 */
#include "tools/stat/stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"

enum { STATE, RECV_Q, SEND_Q, LOCAL, PEER, PROCESS, TRACK, COLUMNS };

#define CELL 112

struct row {
	char cell[COLUMNS][CELL];
};

struct table {
	struct row *rows;
	size_t count;
};

static struct row *add_row(struct table *table)
{
	struct row *more = realloc(table->rows, (table->count + 1) * sizeof(*more));

	if (!more)
		abort();
	table->rows = more;
	memset(&more[table->count], 0, sizeof(*more));
	return &more[table->count++];
}

static void put_text(char cell[CELL], const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	shunt_escape(text && *text ? text : "-", cell, CELL);
}

static void put_number(char cell[CELL], const json_t *object, const char *key)
{
	const json_t *number = json_object_get(object, key);

	if (json_is_integer(number))
		snprintf(cell, CELL, "%lld", (long long)json_integer_value(number));
	else
		strcpy(cell, "-");
}

/* A socket of AF_INET6 that speaks IPv4 has addresses of ::ffff:0:0/96. */
static void put_address(char cell[CELL], const json_t *stream, const char *key)
{
	const char *family = json_string_value(json_object_get(stream, "family"));
	char text[CELL - 16], *port;

	put_text(cell, stream, key);
	if (!family || strcmp(family, "inet6") || cell[0] == '[' || strlen(cell) >= sizeof(text))
		return;
	strcpy(text, cell);
	port = strrchr(text, ':');
	if (!port)
		return;
	*port++ = '\0';
	snprintf(cell, CELL, "[::ffff:%s]:%s", text, port);
}

static void put_process(char cell[CELL], const json_t *process, const json_t *stream)
{
	char program[48];
	const char *name = json_string_value(json_object_get(process, "program"));

	snprintf(cell, CELL, "users:((\"%s\",pid=%lld,fd=%lld))",
		 shunt_escape(name ? name : "", program, sizeof(program)),
		 (long long)json_integer_value(json_object_get(process, "pid")),
		 (long long)json_integer_value(json_object_get(stream, "fd")));
}

static const char *track_of(const json_t *stream, const char *direction)
{
	const char *track = json_string_value(
		json_object_get(json_object_get(stream, direction), "track"));

	return track && !strcmp(track, "link") ? "link" : "tcp";
}

/* One word where both directions are on one track. */
static void put_track(char cell[CELL], const json_t *stream)
{
	const char *tx = track_of(stream, "tx"), *rx = track_of(stream, "rx");

	snprintf(cell, CELL, strcmp(tx, rx) ? "tx:%s,rx:%s" : "%s", tx, rx);
}

static void add_process(struct table *table, const json_t *process)
{
	const json_t *stream;
	size_t i;

	json_array_foreach(json_object_get(process, "streams"), i, stream) {
		struct row *row = add_row(table);

		put_text(row->cell[STATE], stream, "tcp_state");
		put_number(row->cell[RECV_Q], stream, "recvq");
		put_number(row->cell[SEND_Q], stream, "sendq");
		put_address(row->cell[LOCAL], stream, "local");
		put_address(row->cell[PEER], stream, "peer");
		put_process(row->cell[PROCESS], process, stream);
		put_track(row->cell[TRACK], stream);
	}
}

static void print(const struct table *table)
{
	int widths[COLUMNS] = { 0 };

	for (size_t i = 0; i < table->count; i++)
		for (int c = 0; c < COLUMNS; c++) {
			int width = (int)strlen(table->rows[i].cell[c]);

			if (width > widths[c])
				widths[c] = width;
		}
	for (size_t i = 0; i < table->count; i++) {
		for (int c = 0; c < COLUMNS - 1; c++)
			printf("%-*s ", widths[c], table->rows[i].cell[c]);
		puts(table->rows[i].cell[TRACK]);
	}
}

void shunt_stat_show_tcp(const struct shunt_look *look)
{
	static const char *const titles[COLUMNS] = {
		"State",   "Recv-Q", "Send-Q", "Local Address:Port", "Peer Address:Port",
		"Process", "Track",
	};
	struct table table = { 0 };
	struct row *head = add_row(&table);

	for (int c = 0; c < COLUMNS; c++)
		strcpy(head->cell[c], titles[c]);
	for (size_t i = 0; i < look->count; i++)
		if (look->processes[i].process)
			add_process(&table, look->processes[i].process);
	print(&table);
	free(table.rows);
}
