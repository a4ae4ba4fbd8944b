/* SPDX-License-Identifier: MIT */
/* The options of shunt perf for work on the bytes, by name and on their way to the ends. */
#include "tools/perf/end/perf_work.h"

#include <string.h>

#define VALUES_MAX 4

const char perf_work_help[] =
	"  --touch tx|dummy|none the sender writes to each cache line (64 bytes) of the buffer that it is\n"
	"                        about to send, or of another of that size, or to none [none]\n"
	"  --touch-op write|read or reads it [write]\n"
	"  --scan check|read|write|none\n"
	"                        the reader compares every byte, or reads or writes one byte of each\n"
	"                        line, or does nothing [check]\n"
	"  --access seq|stride|random\n"
	"                        order of the lines: one after the other; every 16th, then the ones\n"
	"                        after these; a fixed permutation, made before the measurement [seq]\n"
	"  --side server|client|both\n"
	"                        the end that touches and scans [both]\n"
	"  --buffers table|reused|fresh\n"
	"                        what is sent: parts of a table that is never written; one buffer of each\n"
	"                        connection, as is what is received into; a set of buffers in turns that\n"
	"                        is twice as large as the last-level cache [table; reused with --touch]\n";

static const struct {
	const char *option;
	size_t offset;
	const char *names[VALUES_MAX];
	const char *help;
} rows[PERF_WORK_FIELDS] = {
	{ "touch",
	  offsetof(struct perf_work, touch),
	  { "none", "tx", "dummy" },
	  "tx, dummy or none" },
	{ "touch-op", offsetof(struct perf_work, touch_op), { "write", "read" }, "write or read" },
	{ "scan",
	  offsetof(struct perf_work, scan),
	  { "check", "read", "write", "none" },
	  "read, write, none or check" },
	{ "access",
	  offsetof(struct perf_work, access),
	  { "seq", "stride", "random" },
	  "seq, stride or random" },
	{ "side",
	  offsetof(struct perf_work, side),
	  { "both", "server", "client" },
	  "server, client or both" },
	{ "buffers",
	  offsetof(struct perf_work, buffers),
	  { "table", "reused", "fresh" },
	  "table, reused or fresh" },
};

static uint8_t value_of(const struct perf_work *work, size_t field)
{
	return ((const uint8_t *)work)[rows[field].offset];
}

const char *perf_work_field(size_t field)
{
	return field < PERF_WORK_FIELDS ? rows[field].option : NULL;
}

const char *perf_work_name(const struct perf_work *work, size_t field)
{
	return rows[field].names[value_of(work, field)];
}

const char *perf_work_names(size_t field)
{
	return rows[field].help;
}

int perf_work_set(struct perf_work *work, size_t field, const char *name)
{
	for (uint8_t i = 0; i < VALUES_MAX && rows[field].names[i]; i++) {
		if (strcmp(rows[field].names[i], name))
			continue;
		((uint8_t *)work)[rows[field].offset] = i;
		return 0;
	}
	return -1;
}

/* The table is never written, and it has no copy that could be a dummy. */
void perf_work_settle(struct perf_work *work)
{
	if (work->touch != PERF_TOUCH_NONE && work->buffers == PERF_BUFFERS_TABLE)
		work->buffers = PERF_BUFFERS_REUSED;
}

bool perf_work_valid(const struct perf_work *work)
{
	struct perf_work settled = *work;

	for (size_t i = 0; i < PERF_WORK_FIELDS; i++)
		if (value_of(work, i) >= VALUES_MAX || !perf_work_name(work, i))
			return false;
	perf_work_settle(&settled);
	return settled.buffers == work->buffers;
}

void perf_work_text(const struct perf_work *work, char text[PERF_WORK_TEXT_MAX])
{
	for (size_t i = 0; i < PERF_WORK_FIELDS; i++)
		text[i] = (char)('0' + value_of(work, i));
	text[PERF_WORK_FIELDS] = '\0';
}

int perf_work_parse(struct perf_work *work, const char *text)
{
	*work = (struct perf_work) { 0 };
	if (strlen(text) != PERF_WORK_FIELDS)
		return -1;
	for (size_t i = 0; i < PERF_WORK_FIELDS; i++)
		((uint8_t *)work)[rows[i].offset] = (uint8_t)(text[i] - '0');
	return perf_work_valid(work) ? 0 : -1;
}
