/* SPDX-License-Identifier: MIT */
/*
 * The tables of the page. They may be of processes that lie: what is missing or mistyped shows as nothing, and no
 * process has more rows than a few.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/monitor/monitor.h"
#include "tools/common/output.h"

#define PROCESSES 200 /* rows */
#define STREAMS 25
#define REASONS 40

/* A process now, and a while ago. */
struct view {
	const struct shunt_stat *stat;
	const json_t *now, *before; /* before: NULL where there are no rates */
	double seconds;
};

static struct view view_of(const struct monitor_look *look, size_t i)
{
	const struct shunt_stat *stat = &look->look.processes[i],
				*then = shunt_look_find(&look->before, stat);

	return (struct view) { stat, stat->process, then ? then->process : NULL,
			       then ? stat->at - then->at : 0 };
}

static json_int_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? value : 0;
}

static void put_name(FILE *file, const struct view *view)
{
	char name[SHUNT_DOOR_TEXT];

	fputs("<td>", file);
	monitor_html_member(file, view->now, "program");
	fprintf(file, "</td><td class=n>%s</td>", shunt_door_text(&view->stat->door, name));
}

/* ---- bytes of one direction ---- */

static void put_rate(FILE *file, const struct view *view, const json_t *before, const json_t *now)
{
	fputs("<td class=n>", file);
	if (view->before)
		monitor_html_amount(file,
				    shunt_rate(before, now, "tcp", view->seconds) +
					    shunt_rate(before, now, "link", view->seconds),
				    "B/s");
	else
		monitor_html_amount(file, (double)number(now, "tcp") + (double)number(now, "link"),
				    "B");
	fputs("</td>", file);
}

/* Of the bytes since the last look, or of all where there were none. */
static void put_share(FILE *file, const struct view *view, const json_t *before, const json_t *now)
{
	static const char *const ways[] = { "tx", "rx" };
	double link = 0, all = 0, link_rate = 0, all_rate = 0;

	for (int i = 0; i < 2; i++) {
		const json_t *way = json_object_get(now, ways[i]),
			     *then = json_object_get(before, ways[i]);

		link += (double)number(way, "link");
		all += (double)number(way, "link") + (double)number(way, "tcp");
		link_rate += shunt_rate(then, way, "link", view->seconds);
		all_rate += shunt_rate(then, way, "link", view->seconds) +
			    shunt_rate(then, way, "tcp", view->seconds);
	}
	if (view->before && all_rate > 0) {
		link = link_rate;
		all = all_rate;
	}
	if (all > 0)
		fprintf(file, "<td class=n><meter min=0 max=100 value=%.0f></meter> %.0f %%</td>",
			100 * link / all, 100 * link / all);
	else
		fputs("<td class=n>–</td>", file);
}

static void put_ways(FILE *file, const struct view *view, const json_t *before, const json_t *now)
{
	put_rate(file, view, json_object_get(before, "tx"), json_object_get(now, "tx"));
	put_rate(file, view, json_object_get(before, "rx"), json_object_get(now, "rx"));
	put_share(file, view, before, now);
}

/* ---- processes ---- */

static size_t count_state(const json_t *process, const char *state)
{
	const json_t *streams = json_object_get(process, "streams");
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(streams); i++) {
		const char *word = json_string_value(
			json_object_get(json_array_get(streams, i), "state"));

		count += word && !strcmp(word, state);
	}
	return count;
}

static void put_state(FILE *file, const json_t *process, const char *state)
{
	fprintf(file, "<td class=n>%zu</td>", count_state(process, state));
}

/* The limit that its sends wait for most, or why it has no device. */
static void put_note(FILE *file, const json_t *process)
{
	const char *bound = json_string_value(json_object_get(process, "bound_by"));
	const char *reason = json_string_value(json_object_get(process, "reason"));

	fputs("<td>", file);
	if (reason && *reason)
		monitor_html(file, reason);
	else if (bound && strcmp(bound, "none"))
		monitor_html(file, bound);
	fputs("</td>", file);
}

static void put_process(FILE *file, const struct view *view)
{
	const json_t *counters = json_object_get(view->now, "counters");

	fputs("<tr>", file);
	put_name(file, view);
	fputs("<td>", file);
	monitor_html_member(file, view->now, "device");
	fputs("</td>", file);
	put_state(file, view->now, "linked");
	put_state(file, view->now, "candidate");
	put_state(file, view->now, "plain");
	put_ways(file, view, json_object_get(view->before, "totals"),
		 json_object_get(view->now, "totals"));
	fprintf(file, "<td class=n>%lld</td>", (long long)number(counters, "failovers"));
	put_note(file, view->now);
	fputs("</tr>\n", file);
}

void monitor_rows_processes(FILE *file, const struct monitor_look *look)
{
	size_t shown = 0, more = 0;

	fputs("<h2>Processes</h2>\n<div class=wide><table><tr><th>Program<th class=n>Process<th>Device<th class=n>On the link"
	      "<th class=n>Candidates<th class=n>On TCP<th class=n>Sent<th class=n>Received<th class=n>By the link"
	      "<th class=n>Failovers<th>Waits most for</tr>\n",
	      file);
	for (size_t i = 0; i < look->look.count; i++) {
		struct view view = view_of(look, i);

		if (!view.now)
			continue;
		if (shown < PROCESSES)
			put_process(file, &view);
		more += shown++ >= PROCESSES;
	}
	fputs("</table></div>\n", file);
	if (!shown)
		fputs("<p class=none>No shunted process has a connection to speak of. Other users’ processes show only "
		      "to root.</p>\n",
		      file);
	if (more)
		fprintf(file,
			"<p class=none>%zu more are in <a href=metrics>the metrics</a>.</p>\n",
			more);
}

void monitor_rows_late(FILE *file, const struct monitor_look *look)
{
	bool any = false;

	for (size_t i = 0; i < look->look.count; i++) {
		const struct shunt_stat *stat = &look->look.processes[i];
		char name[SHUNT_DOOR_TEXT];

		if (stat->process || !stat->late)
			continue;
		fputs(any ? ", " : "<p class=bad>Without an answer: process ", file);
		any = true;
		fprintf(file, "%s: ", shunt_door_text(&stat->door, name));
		monitor_html(file, stat->why);
	}
	if (any)
		fputs("</p>\n", file);
	if (look->look.shut)
		fprintf(file,
			"<p class=bad>Sockets of unknown processes that could not be asked: %zu</p>\n",
			look->look.shut);
}

/* ---- streams ---- */

struct stream {
	struct view view;
	const json_t *now, *before;
	double weight; /* bytes a second, or bytes */
	double queued;
};

static double weight_of(const struct view *view, const json_t *before, const json_t *now)
{
	static const char *const ways[] = { "tx", "rx" }, *const tracks[] = { "tcp", "link" };
	double weight = 0;

	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 2; j++) {
			const json_t *way = json_object_get(now, ways[i]);

			weight += before       ? shunt_rate(json_object_get(before, ways[i]), way,
							    tracks[j], view->seconds) :
				  view->before ? 0 :
						 (double)number(way, tracks[j]);
		}
	return weight;
}

/* In a table of `most` that is sorted, the largest first. */
static void insert(struct stream *table, size_t *count, size_t most, const struct stream *stream,
		   bool by_queue)
{
	size_t at = *count;

	while (at && (by_queue ? table[at - 1].queued < stream->queued :
				 table[at - 1].weight < stream->weight))
		at--;
	if (at == most)
		return;
	*count += *count < most;
	memmove(table + at + 1, table + at, (*count - at - 1) * sizeof(*table));
	table[at] = *stream;
}

static void put_queue(FILE *file, const json_t *stream, const char *key)
{
	fputs("<td class=n>", file);
	if (json_is_integer(json_object_get(stream, key)))
		monitor_html_amount(file, (double)number(stream, key), "B");
}

static void put_stream(FILE *file, const struct stream *stream)
{
	char reason[256];

	fputs("<tr>", file);
	put_name(file, &stream->view);
	fputs("<td class=a>", file);
	monitor_html_member(file, stream->now, "local");
	fputs("<td class=a>", file);
	monitor_html_member(file, stream->now, "peer");
	fputs("<td>", file);
	monitor_html_member(file, stream->now, "state");
	put_ways(file, &stream->view, stream->before, stream->now);
	put_queue(file, stream->now, "sendq");
	put_queue(file, stream->now, "recvq");
	fputs("<td>", file);
	monitor_html(file, shunt_reason_said(stream->now, reason, sizeof(reason)));
	monitor_html_member(file, stream->now, "held");
	fputs("</tr>\n", file);
}

static void put_streams(FILE *file, const char *title, const struct stream *table, size_t count)
{
	fprintf(file,
		"<h2>%s</h2>\n<div class=wide><table><tr><th>Program<th class=n>Process<th>Local<th>Peer<th>State<th class=n>Sent"
		"<th class=n>Received<th class=n>By the link<th class=n>Send-Q<th class=n>Recv-Q<th>On TCP because of</tr>\n",
		title);
	for (size_t i = 0; i < count; i++)
		put_stream(file, &table[i]);
	fputs("</table></div>\n", file);
	if (!count)
		fputs("<p class=none>None.</p>\n", file);
}

void monitor_rows_streams(FILE *file, const struct monitor_look *look)
{
	struct stream busy[STREAMS], slow[STREAMS];
	size_t busy_count = 0, slow_count = 0;

	for (size_t i = 0; i < look->look.count; i++) {
		struct view view = view_of(look, i);
		const json_t *streams = json_object_get(view.now, "streams"), *now;
		size_t j;

		json_array_foreach(streams, j, now)
		{
			const json_t *before = view.before ? shunt_rate_stream(view.before, now) :
							     NULL;
			struct stream stream = { view, now, before, weight_of(&view, before, now),
						 (double)number(now, "sendq") +
							 (double)number(now, "recvq") };

			insert(busy, &busy_count, STREAMS, &stream, false);
			if (stream.queued > 0)
				insert(slow, &slow_count, STREAMS, &stream, true);
		}
	}
	put_streams(file, "Busiest streams", busy, busy_count);
	put_streams(file, "Slowest streams: most bytes that wait", slow, slow_count);
}

/* ---- reasons ---- */

static void put_reasons(FILE *file, const struct view *view, const char *member, const char *what,
			size_t *shown)
{
	const json_t *reasons = json_object_get(view->now, member);
	const char *reason;
	json_t *times;

	json_object_foreach((json_t *)reasons, reason, times)
	{
		if (json_integer_value(times) <= 0 || (*shown)++ >= REASONS)
			continue;
		fputs("<tr>", file);
		put_name(file, view);
		fprintf(file, "<td>%s<td>", what);
		monitor_html(file, reason);
		fprintf(file, "<td class=n>%lld</tr>\n", (long long)json_integer_value(times));
	}
}

void monitor_rows_reasons(FILE *file, const struct monitor_look *look)
{
	static const struct {
		const char *member, *what;
	} kinds[] = { { "reasons", "stayed on TCP" },
		      { "left", "left the link" },
		      { "stalls", "a send waited" } };
	size_t shown = 0;

	fputs("<h2>Why not on the link, and what was short</h2>\n<div class=wide><table><tr><th>Program<th class=n>Process"
	      "<th>Event<th>Because of<th class=n>Times</tr>\n",
	      file);
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (size_t i = 0; i < look->look.count; i++) {
			struct view view = view_of(look, i);

			if (view.now)
				put_reasons(file, &view, kinds[kind].member, kinds[kind].what,
					    &shown);
		}
	fputs("</table></div>\n", file);
	if (!shown)
		fputs("<p class=none>Nothing.</p>\n", file);
}
