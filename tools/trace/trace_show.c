/* SPDX-License-Identifier: MIT */
/* Where the time of followed sends went: percentiles of each stage, and the slowest sends. */
#include "tools/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"

#define SLOWEST 10

static const struct {
	const char *key, *text;
} stages[TRACE_STAGES] = {
	[TRACE_CREDIT] = { "credit", "waited for credit" },
	[TRACE_LINK] = { "link", "on the link" },
	[TRACE_POLL] = { "poll", "waited for the reader's poll" },
	[TRACE_PROGRAM] = { "program", "waited for the program" },
	[TRACE_TOGETHER] = { "link_and_poll", "on the link, or for the poll" },
	[TRACE_ALL] = { "all", "all" },
};

uint64_t trace_spent(const struct trace_send *send, enum trace_stage stage)
{
	switch (stage) {
	case TRACE_CREDIT:
		return send->posted - send->called;
	case TRACE_LINK:
		return send->placed ? send->placed - send->posted : UINT64_MAX;
	case TRACE_POLL:
		return send->placed ? send->seen - send->placed : UINT64_MAX;
	case TRACE_PROGRAM:
		return send->read - send->seen;
	case TRACE_TOGETHER:
		return send->placed ? UINT64_MAX : send->seen - send->posted;
	default:
		return send->read - send->called;
	}
}

/* --- percentiles --- */

struct spread {
	size_t count;
	uint64_t p50, p90, p99, max;
};

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The least value that so many percent are not above. */
static uint64_t percentile(const uint64_t *sorted, size_t count, size_t percent)
{
	size_t at = (count * percent + 99) / 100;

	return sorted[at ? at - 1 : 0];
}

static struct spread spread_of(const struct trace *trace, enum trace_stage stage)
{
	uint64_t *spent = calloc(trace->sends + 1, sizeof(*spent));
	struct spread spread = { 0 };

	for (size_t i = 0; spent && i < trace->sends; i++) {
		uint64_t ns = trace_spent(&trace->send[i], stage);

		if (ns != UINT64_MAX)
			spent[spread.count++] = ns;
	}
	if (spread.count) {
		qsort(spent, spread.count, sizeof(*spent), by_size);
		spread.p50 = percentile(spent, spread.count, 50);
		spread.p90 = percentile(spent, spread.count, 90);
		spread.p99 = percentile(spent, spread.count, 99);
		spread.max = spent[spread.count - 1];
	}
	free(spent);
	return spread;
}

/* --- for people --- */

/* "812 ns", "4.10 us", "5.00 ms", "1.20 s", at most ten columns; "" for what is not known. */
static const char *duration(uint64_t ns, char buf[16])
{
	if (ns == UINT64_MAX)
		snprintf(buf, 16, "?");
	else if (ns < 1000)
		snprintf(buf, 16, "%u ns", (unsigned int)ns);
	else if (ns < 1000000)
		snprintf(buf, 16, "%.2f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, 16, "%.2f ms", (double)ns / 1e6);
	else
		snprintf(buf, 16, "%.2f s", (double)ns / 1e9);
	return buf;
}

static void show_process(const struct trace_process *process)
{
	const json_t *counts = json_object_get(process->said, "counts");
	json_int_t every = json_integer_value(json_object_get(process->said, "every"));
	char chosen[64] = "follows none of its sends";

#define COUNT(name) ((long long)json_integer_value(json_object_get(counts, name)))
	if (every)
		snprintf(chosen, sizeof(chosen), "follows one send in %lld", (long long)every);
	printf("%s (pid %d): %s; of %lld sends %lld followed, %lld answers", process->name,
	       (int)process->pid, chosen, COUNT("sends"), COUNT("chosen"), COUNT("answers"));
	if (COUNT("lost") + COUNT("abandoned"))
		printf(", %lld lost, %lld abandoned to TCP", COUNT("lost"), COUNT("abandoned"));
	printf("; read %lld of its peers", COUNT("read"));
	if (COUNT("missed") + COUNT("refused") + COUNT("unread"))
		printf(", missed %lld, refused %lld, left %lld unread", COUNT("missed"),
		       COUNT("refused"), COUNT("unread"));
	puts("");
#undef COUNT
}

static void show_spreads(const struct trace *trace)
{
	char a[16], b[16], c[16], d[16];

	printf("\n%-30s %8s %10s %10s %10s %10s\n", "STAGE", "COUNT", "P50", "P90", "P99", "MAX");
	for (int i = 0; i < TRACE_STAGES; i++) {
		struct spread spread = spread_of(trace, (enum trace_stage)i);

		if (i == TRACE_TOGETHER && !spread.count)
			continue;
		printf("%-30s %8zu %10s %10s %10s %10s\n", stages[i].text, spread.count,
		       duration(spread.p50, a), duration(spread.p90, b), duration(spread.p99, c),
		       duration(spread.max, d));
	}
}

static int by_length(const void *a, const void *b)
{
	const struct trace_send *x = *(const struct trace_send *const *)a,
				*y = *(const struct trace_send *const *)b;
	uint64_t mine = x->read - x->called, its = y->read - y->called;

	return mine > its	     ? -1 :
	       mine < its	     ? 1 :
	       x->called < y->called ? -1 :
				       x->called > y->called;
}

/* The slowest sends, up to SLOWEST. Returns how many. */
static size_t find_slowest(const struct trace *trace, const struct trace_send *slowest[SLOWEST])
{
	const struct trace_send **all = calloc(trace->sends + 1, sizeof(struct trace_send *));
	size_t count = trace->sends < SLOWEST ? trace->sends : SLOWEST;

	if (!all)
		return 0;
	for (size_t i = 0; i < trace->sends; i++)
		all[i] = &trace->send[i];
	qsort(all, trace->sends, sizeof(struct trace_send *), by_length);
	memcpy(slowest, all, count * sizeof(struct trace_send *));
	free(all);
	return count;
}

static void show_slowest(const struct trace *trace)
{
	const struct trace_send *slowest[SLOWEST];
	size_t count = find_slowest(trace, slowest);
	char text[5][16], way[32], error[32] = "";

	printf("\nThe slowest:\n%-17s %8s %10s %10s %10s %10s %10s\n", "SENDER > READER", "BYTES",
	       "ALL", "CREDIT", "LINK", "POLL", "PROGRAM");
	for (size_t i = 0; i < count; i++) {
		const struct trace_send *send = slowest[i];

		snprintf(way, sizeof(way), "%d > %d", (int)send->sender, (int)send->reader);
		if (send->error)
			snprintf(error, sizeof(error), "  +-%s", duration(send->error, text[0]));
		printf("%-17s %8lld %10s %10s %10s %10s %10s%s%s\n", way, (long long)send->bytes,
		       duration(trace_spent(send, TRACE_ALL), text[0]),
		       duration(trace_spent(send, TRACE_CREDIT), text[1]),
		       duration(trace_spent(send, TRACE_LINK), text[2]),
		       duration(trace_spent(send, TRACE_POLL), text[3]),
		       duration(trace_spent(send, TRACE_PROGRAM), text[4]),
		       send->answer ? "  answer" : "", error);
	}
}

void trace_show(const struct trace *trace)
{
	for (size_t i = 0; i < trace->processes; i++)
		show_process(&trace->process[i]);
	if (!trace->sends) {
		puts("no followed send has been read yet (SHUNT_TRACE, or --seconds)");
		return;
	}
	show_spreads(trace);
	show_slowest(trace);
}

/* --- for programs --- */

static json_t *send_json(const struct trace_send *send)
{
	json_t *json = json_object();
	char id[17];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)send->id);
	json_object_set_new(json, "id", json_string(id));
	json_object_set_new(json, "answer", json_boolean(send->answer));
	json_object_set_new(json, "sender", json_integer(send->sender));
	json_object_set_new(json, "reader", json_integer(send->reader));
	json_object_set_new(json, "fd", json_integer(send->fd));
	json_object_set_new(json, "bytes", json_integer(send->bytes));
	json_object_set_new(json, "called_ns", json_integer((json_int_t)send->called));
	json_object_set_new(json, "error_ns", json_integer((json_int_t)send->error));
	json_object_set_new(json, "accepted", json_boolean(send->accepted != 0));
	for (int i = 0; i < TRACE_STAGES; i++) {
		uint64_t ns = trace_spent(send, (enum trace_stage)i);
		char name[32];

		snprintf(name, sizeof(name), "%s_ns", stages[i].key);
		json_object_set_new(json, name,
				    ns == UINT64_MAX ? json_null() : json_integer((json_int_t)ns));
	}
	return json;
}

static json_t *spread_json(struct spread spread)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "count", (json_int_t)spread.count, "p50_ns",
			 (json_int_t)spread.p50, "p90_ns", (json_int_t)spread.p90, "p99_ns",
			 (json_int_t)spread.p99, "max_ns", (json_int_t)spread.max);
}

static json_t *process_json(const struct trace_process *process)
{
	json_t *json = json_pack("{s:i,s:s}", "pid", (int)process->pid, "program", process->name);

	json_object_set_new(
		json, "every",
		json_integer(json_integer_value(json_object_get(process->said, "every"))));
	json_object_set(json, "counts", json_object_get(process->said, "counts"));
	return json;
}

json_t *trace_json(const struct trace *trace)
{
	json_t *processes = json_array(), *spreads = json_object(), *slowest = json_array(),
	       *sends = json_array();
	const struct trace_send *slow[SLOWEST];
	size_t count = find_slowest(trace, slow);

	for (size_t i = 0; i < trace->processes; i++)
		json_array_append_new(processes, process_json(&trace->process[i]));
	for (int i = 0; i < TRACE_STAGES; i++)
		json_object_set_new(spreads, stages[i].key,
				    spread_json(spread_of(trace, (enum trace_stage)i)));
	for (size_t i = 0; i < count; i++)
		json_array_append_new(slowest, send_json(slow[i]));
	for (size_t i = 0; i < trace->sends; i++)
		json_array_append_new(sends, send_json(&trace->send[i]));
	return json_pack("{s:i,s:o,s:o,s:o,s:o}", "schema", 1, "processes", processes, "stages",
			 spreads, "slowest", slowest, "sends", sends);
}
