/* SPDX-License-Identifier: MIT */
/*
 * The tables of the page. They may be of processes that lie: what is missing or mistyped shows as nothing, and no
 * process has more rows than a few.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/monitor/monitor.h"
#include "tools/common/output.h"

#define PROCESSES 200 /* rows */
#define STREAMS 25
#define REASONS 40
#define TEXT 256

/* A process now, and a while ago. */
struct view {
	const struct shunt_stat *stat;
	const json_t *now, *before; /* before: NULL where there are no rates */
	double seconds; /* between the two; 0 where there are no rates */
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

static void put_member(struct shunt_page *page, const json_t *object, const char *key)
{
	char text[TEXT];

	shunt_page_cell(page, "%s", shunt_member_text(object, key, text, TEXT));
}

static void put_number(struct shunt_page *page, json_int_t number)
{
	shunt_page_cell(page, "%lld", (long long)number);
}

/* "12.3 MB/s", "512 B" */
static void put_amount(struct shunt_page *page, double amount, const char *unit)
{
	static const char prefixes[] = " kMGTPE";
	int prefix = 0;

	for (; amount >= 999.5 && prefix < 6; prefix++)
		amount /= 1000;
	shunt_page_cell(page, prefix && amount < 99.95 ? "%.1f %.*s%s" : "%.0f %.*s%s", amount,
			prefix > 0, prefixes + prefix, unit);
}

/* A row begins with its process. */
static void put_name(struct shunt_page *page, const struct view *view)
{
	char name[SHUNT_DOOR_TEXT];

	shunt_page_row(page);
	put_member(page, view->now, "program");
	shunt_page_cell(page, "%s%s%s", shunt_door_text(&view->stat->door, name),
			view->stat->host ? " on " : "", view->stat->host ? view->stat->host : "");
}

/* ---- bytes ---- */

/* Bytes a second with `seconds`, else all bytes. */
struct moved {
	double link, all;
};

static void add_way(struct moved *moved, const json_t *before, const json_t *now, const char *way,
		    double seconds)
{
	static const char *const tracks[] = { "link", "tcp" };
	const json_t *then = json_object_get(before, way);

	now = json_object_get(now, way);
	for (int i = 0; i < 2; i++) {
		double bytes = seconds > 0 ? shunt_rate(then, now, tracks[i], seconds) :
					     (double)number(now, tracks[i]);

		moved->all += bytes;
		moved->link += i ? 0 : bytes;
	}
}

static struct moved moved_by(const json_t *before, const json_t *now, double seconds)
{
	struct moved moved = { 0 };

	add_way(&moved, before, now, "tx", seconds);
	add_way(&moved, before, now, "rx", seconds);
	return moved;
}

/* Sent, received, and the link's share of both. */
static void put_moved(struct shunt_page *page, const struct moved *sent,
		      const struct moved *received, const struct moved *both, bool rates)
{
	const char *unit = rates ? "B/s" : "B";

	put_amount(page, sent->all, unit);
	put_amount(page, received->all, unit);
	shunt_page_percent(page, both->all > 0 ? 100 * both->link / both->all : -1);
}

/* The share is of all bytes if none has moved since the last look. */
static void put_ways(struct shunt_page *page, const struct view *view, const json_t *before,
		     const json_t *now)
{
	struct moved sent = { 0 }, received = { 0 }, both = moved_by(before, now, view->seconds);

	add_way(&sent, before, now, "tx", view->seconds);
	add_way(&received, before, now, "rx", view->seconds);
	if (!(both.all > 0))
		both = moved_by(before, now, 0);
	put_moved(page, &sent, &received, &both, view->seconds > 0);
}

/* ---- processes ---- */

#define STATES 3

static const char *const states[STATES] = { "linked", "candidate", "plain" };

static json_int_t count_state(const json_t *process, const char *state)
{
	const json_t *stream;
	json_int_t count = 0;
	size_t i;

	json_array_foreach(json_object_get(process, "streams"), i, stream)
	{
		const char *word = json_string_value(json_object_get(stream, "state"));

		count += word && !strcmp(word, state);
	}
	return count;
}

/* The limit that its sends wait for most, or why it has no device. */
static void put_note(struct shunt_page *page, const json_t *process)
{
	const char *bound = json_string_value(json_object_get(process, "bound_by"));
	const char *reason = json_string_value(json_object_get(process, "reason"));
	char text[TEXT];

	if (!reason || !*reason)
		reason = bound && strcmp(bound, "none") ? bound : "";
	shunt_page_cell(page, "%s", shunt_escape(reason, text, TEXT));
}

static void put_process(struct shunt_page *page, const struct view *view)
{
	put_name(page, view);
	put_member(page, view->now, "device");
	for (size_t i = 0; i < STATES; i++)
		put_number(page, count_state(view->now, states[i]));
	put_ways(page, view, json_object_get(view->before, "totals"),
		 json_object_get(view->now, "totals"));
	put_number(page, number(json_object_get(view->now, "counters"), "failovers"));
	put_note(page, view->now);
}

void monitor_rows_processes(struct shunt_page *page, const struct monitor_look *look)
{
	size_t more = 0;

	shunt_page_table(
		page, "Processes", "",
		"Program|#Process|Device|#On the link|#Candidates|#On TCP|#Sent|#Received|#By the link|#Failovers|Waits most for");
	for (size_t i = 0; i < look->look.count; i++) {
		struct view view = view_of(look, i);

		if (view.now && page->rows < PROCESSES)
			put_process(page, &view);
		else
			more += view.now != NULL;
	}
	shunt_page_table_end(
		page,
		"No shunted process has a connection to speak of. Other users’ processes show only to root.");
	if (more)
		shunt_page_paragraph(page, "none", "%zu more are in the metrics.", more);
}

/* ---- hosts ---- */

/* Sums of a host's processes. A new process has no rates, and counts from the next look on. */
struct sums {
	json_int_t processes, states[STATES];
	uint64_t failovers; /* a host may lie: the sum wraps */
	struct moved sent, received;
	bool rates;
};

static void sum_up(struct sums *sums, const struct view *view)
{
	const json_t *before = json_object_get(view->before, "totals"),
		     *now = json_object_get(view->now, "totals");

	sums->processes++;
	for (size_t i = 0; i < STATES; i++)
		sums->states[i] += count_state(view->now, states[i]);
	sums->failovers += (uint64_t)number(json_object_get(view->now, "counters"), "failovers");
	if (sums->rates && !(view->seconds > 0))
		return;
	add_way(&sums->sent, before, now, "tx", view->seconds);
	add_way(&sums->received, before, now, "rx", view->seconds);
}

static bool has_rates(const struct monitor_look *look, const char *host)
{
	for (size_t i = 0; i < look->look.count; i++)
		if (look->look.processes[i].host == host && view_of(look, i).seconds > 0)
			return true;
	return false;
}

static void put_host(struct shunt_page *page, const struct monitor_look *look,
		     const struct shunt_look_host *host)
{
	struct sums sums = { .rates = has_rates(look, host->name) };
	struct moved both;
	char clock[32];

	for (size_t i = 0; i < look->look.count; i++) {
		struct view view;

		if (look->look.processes[i].host != host->name)
			continue;
		view = view_of(look, i);
		sum_up(&sums, &view);
	}
	both = (struct moved) { sums.sent.link + sums.received.link,
				sums.sent.all + sums.received.all };
	shunt_page_row(page);
	shunt_page_cell(page, "%s", host->name);
	shunt_page_cell(page, "%s since %s", host->up ? "answers" : "no answer",
			shunt_page_clock(host->since, clock));
	if (!host->up) {
		shunt_page_wide(page, 8, "%s", host->why);
		return;
	}
	put_number(page, sums.processes);
	for (size_t i = 0; i < STATES; i++)
		put_number(page, sums.states[i]);
	put_moved(page, &sums.sent, &sums.received, &both, sums.rates);
	put_number(page, (json_int_t)sums.failovers);
}

void monitor_rows_hosts(struct shunt_page *page, const struct monitor_look *look)
{
	if (!look->look.host_count)
		return;
	shunt_page_table(
		page, "Other hosts", "",
		"@Host|State|#Processes|#On the link|#Candidates|#On TCP|#Sent|#Received|#By the link|#Failovers");
	for (size_t i = 0; i < look->look.host_count; i++)
		put_host(page, look, &look->look.hosts[i]);
	shunt_page_table_end(page, NULL);
}

/* ---- what was not answered ---- */

void monitor_rows_late(struct shunt_page *page, const struct monitor_look *look)
{
	char name[SHUNT_DOOR_TEXT], why[TEXT];

	for (size_t i = 0; i < look->look.count; i++) {
		const struct shunt_stat *stat = &look->look.processes[i];

		if (!stat->process && stat->late)
			shunt_page_paragraph(page, "bad", "Without an answer: process %s: %s",
					     shunt_door_text(&stat->door, name),
					     shunt_escape(stat->why, why, TEXT));
	}
	if (look->look.shut)
		shunt_page_paragraph(page, "bad",
				     "Sockets of unknown processes that could not be asked: %zu",
				     look->look.shut);
}

/* ---- streams ---- */

struct stream {
	struct view view;
	const json_t *now, *before;
	double weight; /* bytes a second, or bytes; 0: it is new */
	double queued;
};

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

static void put_queue(struct shunt_page *page, const json_t *stream, const char *key)
{
	if (json_is_integer(json_object_get(stream, key)))
		put_amount(page, (double)number(stream, key), "B");
	else
		shunt_page_cell(page, "%s", "");
}

static void put_stream(struct shunt_page *page, const struct stream *stream)
{
	char reason[TEXT], shown[TEXT], held[TEXT];

	put_name(page, &stream->view);
	put_member(page, stream->now, "local");
	put_member(page, stream->now, "peer");
	put_member(page, stream->now, "state");
	put_ways(page, &stream->view, stream->before, stream->now);
	put_queue(page, stream->now, "sendq");
	put_queue(page, stream->now, "recvq");
	shunt_page_cell(page, "%s%s",
			shunt_escape(shunt_reason_said(stream->now, reason, TEXT), shown, TEXT),
			shunt_member_text(stream->now, "held", held, TEXT));
}

static void put_streams(struct shunt_page *page, const char *title, const struct stream *table,
			size_t count)
{
	shunt_page_table(
		page, title, "",
		"Program|#Process|@Local|@Peer|State|#Sent|#Received|#By the link|#Send-Q|#Recv-Q|On TCP because of");
	for (size_t i = 0; i < count; i++)
		put_stream(page, &table[i]);
	shunt_page_table_end(page, "None.");
}

void monitor_rows_streams(struct shunt_page *page, const struct monitor_look *look)
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
			struct stream stream = { view, now, before,
						 before || !view.before ?
							 moved_by(before, now, view.seconds).all :
							 0,
						 (double)number(now, "sendq") +
							 (double)number(now, "recvq") };

			insert(busy, &busy_count, STREAMS, &stream, false);
			if (stream.queued > 0)
				insert(slow, &slow_count, STREAMS, &stream, true);
		}
	}
	put_streams(page, "Busiest streams", busy, busy_count);
	put_streams(page, "Slowest streams: most bytes that wait", slow, slow_count);
}

/* ---- reasons ---- */

static void put_reasons(struct shunt_page *page, const struct view *view, const char *member,
			const char *what)
{
	const json_t *reasons = json_object_get(view->now, member);
	char text[TEXT];
	const char *reason;
	json_t *times;

	json_object_foreach((json_t *)reasons, reason, times)
	{
		if (json_integer_value(times) <= 0 || page->rows >= REASONS)
			continue;
		put_name(page, view);
		shunt_page_cell(page, "%s", what);
		shunt_page_cell(page, "%s", shunt_escape(reason, text, TEXT));
		put_number(page, json_integer_value(times));
	}
}

void monitor_rows_reasons(struct shunt_page *page, const struct monitor_look *look)
{
	static const struct {
		const char *member, *what;
	} kinds[] = { { "reasons", "stayed on TCP" },
		      { "left", "left the link" },
		      { "stalls", "a send waited" } };

	shunt_page_table(page, "Why not on the link, and what was short", "",
			 "Program|#Process|Event|Because of|#Times");
	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
		for (size_t i = 0; i < look->look.count; i++) {
			struct view view = view_of(look, i);

			if (view.now)
				put_reasons(page, &view, kinds[kind].member, kinds[kind].what);
		}
	shunt_page_table_end(page, "Nothing.");
}
