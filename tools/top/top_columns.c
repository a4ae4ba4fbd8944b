/* SPDX-License-Identifier: MIT */
/* The columns of shunt top: one row of the table for each. Text from a process is escaped here. */
#include "tools/top/top.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/output.h"

enum kind { WORD, NUMBER, BYTES, SHARE };

#define NOT -1 /* a view that has not the column */

static const struct column {
	const char *name, *title;
	int width;
	enum kind kind;
	int rank[2]; /* by view; of columns with a rank, the smallest outlive others */
} columns[SHUNT_TOP_COLUMNS] = {
	[SHUNT_TOP_PID] = { "pid", "PID", 7, NUMBER, { 1, 2 } },
	[SHUNT_TOP_PROGRAM] = { "program", "PROGRAM", 12, WORD, { 2, 8 } },
	[SHUNT_TOP_FD] = { "fd", "FD", 5, NUMBER, { NOT, 9 } },
	[SHUNT_TOP_LOCAL] = { "local", "LOCAL", 21, WORD, { NOT, 10 } },
	[SHUNT_TOP_PEER] = { "peer", "PEER", 21, WORD, { NOT, 1 } },
	[SHUNT_TOP_TX] = { "tx", "TX/s", 6, BYTES, { 0, 0 } },
	[SHUNT_TOP_RX] = { "rx", "RX/s", 6, BYTES, { 0, 0 } },
	[SHUNT_TOP_SHARE] = { "link", "LINK", 5, SHARE, { 3, 4 } },
	[SHUNT_TOP_CONNECTIONS] = { "streams", "STREAMS", 7, NUMBER, { 4, NOT } },
	[SHUNT_TOP_STALLS] = { "stalls", "STALL/s", 7, NUMBER, { 5, NOT } },
	[SHUNT_TOP_BOUND] = { "bound", "BOUND BY", 10, WORD, { 6, NOT } },
	[SHUNT_TOP_SENDQ] = { "sendq", "SEND-Q", 6, BYTES, { 7, 5 } },
	[SHUNT_TOP_RECVQ] = { "recvq", "RECV-Q", 6, BYTES, { 8, 6 } },
	[SHUNT_TOP_TRACK] = { "track", "TRACK", 8, WORD, { NOT, 3 } },
	[SHUNT_TOP_WHY] = { "why", "WHY", 16, WORD, { 9, 7 } },
};

const char *shunt_top_title(enum shunt_top_column column)
{
	return columns[column].title;
}

const char *shunt_top_name(enum shunt_top_column column)
{
	return columns[column].name;
}

int shunt_top_width(enum shunt_top_column column)
{
	return columns[column].width;
}

int shunt_top_rank(enum shunt_top_view view, enum shunt_top_column column)
{
	return columns[column].rank[view];
}

bool shunt_top_numeric(enum shunt_top_column column)
{
	return columns[column].kind != WORD;
}

enum shunt_top_column shunt_top_find(enum shunt_top_view view, const char *name)
{
	enum shunt_top_column column = 0;

	while (column < SHUNT_TOP_COLUMNS &&
	       (columns[column].rank[view] == NOT || strcmp(columns[column].name, name) != 0))
		column++;
	return column;
}

/* ---- numbers ---- */

const char *shunt_top_human(double n, char buf[16])
{
	static const char units[] = "KMGTPE";
	int unit = -1;

	for (; n >= 1024 && unit < 5; unit++)
		n /= 1024;
	if (unit < 0)
		snprintf(buf, 16, "%.0f", n);
	else
		snprintf(buf, 16, "%.*f%c", n < 999 ? 1 : 0, n, units[unit]);
	return buf;
}

/* Cut, so that it says 100 only where that is so. */
static void put_share(double share, char *buf, size_t room)
{
	double percent = (double)(long)(share * 1000) / 10;

	snprintf(buf, room, percent < 100 ? "%.1f%%" : "%.0f%%", percent);
}

static void put_number(double number, enum kind kind, char *buf, size_t room)
{
	char text[16];

	if (number < 0)
		snprintf(buf, room, "-");
	else if (kind == SHARE)
		put_share(number, buf, room);
	else if (kind == BYTES || number > 9999999)
		snprintf(buf, room, "%s", shunt_top_human(number, text));
	else
		snprintf(buf, room, "%.0f", number);
}

/* ---- words ---- */

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* A process of a PID namespace that is not visible from here has no number. */
static const char *put_pid(const struct shunt_top_row *row, char *buf, size_t room)
{
	if (row->stat->door.pid)
		snprintf(buf, room, "%d", (int)row->stat->door.pid);
	else
		shunt_escape(row->stat->door.identity, buf, room);
	return buf;
}

/* "link", "tcp", or both tracks, that of sends first. */
static const char *put_track(const json_t *stream, char *buf, size_t room)
{
	const char *tx = text_of(json_object_get(stream, "tx"), "track"),
		   *rx = text_of(json_object_get(stream, "rx"), "track");
	char text[64];

	snprintf(text, sizeof(text), strcmp(tx, rx) != 0 ? "%.20s/%.20s" : "%.20s", tx, rx);
	return shunt_escape(text, buf, room);
}

/* The event that a stream waits for, or why it is on TCP; why a process has no device, or no statistics. */
static const char *put_why(const struct shunt_top_row *row, char *buf, size_t room)
{
	static const struct {
		const char *key, *before;
	} whys[] = {
		{ "waits_for", "waits for " },
		{ "reason", "" },
		{ "held", "on TCP because of: " },
		{ "left", "left the link: " },
	};
	char text[SHUNT_TOP_LINE];

	if (!row->stream)
		return shunt_escape(row->stat->process ? text_of(row->stat->process, "reason") :
							 row->stat->why,
				    buf, room);
	for (size_t i = 0; i < sizeof(whys) / sizeof(whys[0]); i++) {
		const char *why = text_of(row->stream, whys[i].key);
		char said[SHUNT_TOP_LINE];

		if (!strcmp(whys[i].key, "reason"))
			why = shunt_reason_said(row->stream, said, sizeof(said));
		if (!*why)
			continue;
		snprintf(text, sizeof(text), "%s%.400s", whys[i].before, why);
		return shunt_escape(text, buf, room);
	}
	return shunt_escape("", buf, room);
}

const char *shunt_top_text(const struct shunt_top_row *row, enum shunt_top_column column, char *buf,
			   size_t room)
{
	switch (column) {
	case SHUNT_TOP_PID:
		return put_pid(row, buf, room);
	case SHUNT_TOP_PROGRAM:
		return shunt_escape(text_of(row->stat->process, "program"), buf, room);
	case SHUNT_TOP_LOCAL:
		return shunt_escape(text_of(row->stream, "local"), buf, room);
	case SHUNT_TOP_PEER:
		return shunt_escape(text_of(row->stream, "peer"), buf, room);
	case SHUNT_TOP_BOUND:
		return shunt_escape(row->bound, buf, room);
	case SHUNT_TOP_TRACK:
		return put_track(row->stream, buf, room);
	case SHUNT_TOP_WHY:
		return put_why(row, buf, room);
	default:
		put_number(row->number[column], columns[column].kind, buf, room);
		return buf;
	}
}
