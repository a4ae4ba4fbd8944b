/* SPDX-License-Identifier: MIT */
/* All processes of a host in one line: how many connections are on a link, how many bytes it has carried, and why others are on TCP. */
#include "tools/stat/stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"

#define REASON 96	/* bytes of one, which may be a lie: it is escaped and cut */
#define REASONS 3	/* of the most connections */
#define KINDS 64	/* that are told apart */

struct reason {
	char text[REASON];
	size_t count;
};

struct sum {
	size_t processes, connections, linked;
	double link, all;	/* bytes, of both directions */
	struct reason reasons[KINDS];
	size_t count, others;
};

static void count_reason(struct sum *sum, const json_t *stream)
{
	const char *text = json_string_value(json_object_get(stream, "reason"));
	const char *waits = json_string_value(json_object_get(stream, "waits_for"));
	char shown[REASON];
	size_t i = 0;

	text = text && *text ? text : waits && *waits ? "it is new" : "no reason is told";
	shunt_escape(text, shown, sizeof(shown));
	while (i < sum->count && strcmp(sum->reasons[i].text, shown))
		i++;
	if (i == KINDS) {
		sum->others++;
		return;
	}
	if (i == sum->count) {
		strcpy(sum->reasons[i].text, shown);
		sum->count++;
	}
	sum->reasons[i].count++;
}

static bool is_on_link(const json_t *stream, const char *direction)
{
	const char *track = json_string_value(
		json_object_get(json_object_get(stream, direction), "track"));

	return track && !strcmp(track, "link");
}

static void count_stream(struct sum *sum, const json_t *stream)
{
	const char *state = json_string_value(json_object_get(stream, "state"));

	sum->connections++;
	if (state && !strcmp(state, "linked") &&
	    (is_on_link(stream, "tx") || is_on_link(stream, "rx")))
		sum->linked++;
	else
		count_reason(sum, stream);
}

static void count_bytes(struct sum *sum, const json_t *totals, const char *direction)
{
	const json_t *bytes = json_object_get(totals, direction);
	double link = (double)json_integer_value(json_object_get(bytes, "link"));

	sum->link += link;
	sum->all += link + (double)json_integer_value(json_object_get(bytes, "tcp"));
}

static void count_process(struct sum *sum, const json_t *process)
{
	const json_t *totals = json_object_get(process, "totals"), *stream;
	size_t i;

	sum->processes++;
	json_array_foreach(json_object_get(process, "streams"), i, stream)
		count_stream(sum, stream);
	count_bytes(sum, totals, "tx");
	count_bytes(sum, totals, "rx");
}

static int by_count(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	return x->count == y->count ? strcmp(x->text, y->text) : x->count < y->count ? 1 : -1;
}

static void show_reasons(struct sum *sum)
{
	size_t others = sum->others;

	qsort(sum->reasons, sum->count, sizeof(*sum->reasons), by_count);
	for (size_t i = 0; i < sum->count; i++) {
		if (i < REASONS)
			printf("%s%s: %zu", i ? ", " : " (", sum->reasons[i].text,
			       sum->reasons[i].count);
		else
			others += sum->reasons[i].count;
	}
	if (others)
		printf(", others: %zu", others);
	putchar(')');
}

void shunt_stat_show_brief(const struct shunt_look *look)
{
	struct sum sum = { 0 };

	for (size_t i = 0; i < look->count; i++)
		if (look->processes[i].process)
			count_process(&sum, look->processes[i].process);
	printf("%zu process%s, %zu of %zu connections on a link", sum.processes,
	       sum.processes == 1 ? "" : "es", sum.linked, sum.connections);
	if (sum.all > 0)
		printf(", %.1f %% of all bytes so far", 100 * sum.link / sum.all);
	if (sum.count) {
		printf("; %zu on TCP", sum.connections - sum.linked);
		show_reasons(&sum);
	}
	putchar('\n');
}
