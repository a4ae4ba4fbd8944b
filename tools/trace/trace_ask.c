/* SPDX-License-Identifier: MIT */
/* Processes' words about followed sends. They may lie: a member that is missing or mistyped is 0, and a send that is out of order is left out. */
#include "tools/trace/trace.h"
#include "tools/ask/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/output.h"

#define SENDS_MAX 4096 /* of one process; it keeps no more than 1,024 */
#define PEERS_MAX 256 /* of all processes that are asked */

static uint64_t number_of(const json_t *object, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(object, key));

	return number > 0 ? (uint64_t)number : 0;
}

/* A PID that could be one; 0: it could not. */
static pid_t pid_of(const json_t *object, const char *key)
{
	uint64_t number = number_of(object, key);

	return number <= INT32_MAX ? (pid_t)number : 0;
}

static void find_name(struct trace_process *process)
{
	char path[64], line[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)process->pid);
	file = fopen(path, "re");
	if (file && fgets(line, sizeof(line), file))
		line[strcspn(line, "\n")] = 0;
	if (file)
		fclose(file);
	shunt_escape(*line ? line : "?", process->name, sizeof(process->name));
}

static bool read_send(const json_t *said, pid_t reader, struct trace_send *send)
{
	const char *id = json_string_value(json_object_get(said, "id"));

	*send = (struct trace_send) {
		.id = id ? strtoull(id, NULL, 16) : 0,
		.answer = json_is_true(json_object_get(said, "answer")),
		.sender = pid_of(said, "peer"),
		.reader = reader,
		.fd = (json_int_t)number_of(said, "fd"),
		.stream = (json_int_t)number_of(said, "stream"),
		.bytes = (json_int_t)number_of(said, "bytes"),
		.called = number_of(said, "called_ns"),
		.accepted = number_of(said, "accepted_ns"),
		.posted = number_of(said, "posted_ns"),
		.placed = number_of(said, "placed_ns"),
		.seen = number_of(said, "seen_ns"),
		.read = number_of(said, "read_ns"),
		.error = number_of(said, "error_ns"),
	};
	return send->called && send->called <= send->posted && send->posted <= send->seen &&
	       send->seen <= send->read &&
	       (!send->placed || (send->posted <= send->placed && send->placed <= send->seen));
}

static void *more(void *array, size_t count, size_t size)
{
	array = realloc(array, (count + 1) * size);
	if (!array) {
		fputs("shunt trace: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	return array;
}

static bool is_wanted(const struct shunt_door *wanted, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (wanted[i].met && wanted[i].pid == pid)
			return true;
	return !count;
}

static void take_sends(struct trace *trace, const json_t *said, pid_t reader, uint64_t since)
{
	const json_t *records = json_object_get(said, "records"), *record;
	size_t i;

	json_array_foreach(records, i, record)
	{
		struct trace_send send;

		if (i == SENDS_MAX)
			break;
		if (!read_send(record, reader, &send) || send.called < since)
			continue;
		trace->send = more(trace->send, trace->sends, sizeof(*trace->send));
		trace->send[trace->sends++] = send;
	}
}

static bool is_there(const struct trace *trace, pid_t pid)
{
	for (size_t i = 0; i < trace->processes; i++)
		if (trace->process[i].pid == pid)
			return true;
	return false;
}

/* The reply becomes a process. NULL; or why it does not. */
static const char *take_reply(struct trace *trace, const struct shunt_reply *reply, uint64_t since)
{
	struct trace_process process = { .pid = reply->door.pid };
	json_error_t error;

	if (!reply->text)
		return reply->why;
	if (reply->refused)
		return "it does not know how to follow sends (an older version?)";
	process.said = shunt_budget_parse(reply->text, reply->length, shunt_budget_usual.values / 4, 0, &error);
	if (!json_is_object(process.said)) {
		json_decref(process.said);
		return "its answer is no JSON object";
	}
	find_name(&process);
	trace->process = more(trace->process, trace->processes, sizeof(*trace->process));
	trace->process[trace->processes++] = process;
	take_sends(trace, process.said, process.pid, since);
	return NULL;
}

static void complain(const struct shunt_door *door, const char *why)
{
	char name[SHUNT_DOOR_TEXT];

	fprintf(stderr, "shunt trace: process %s: ", shunt_door_text(door, name));
	shunt_print_escaped(stderr, why, strlen(why));
	fputc('\n', stderr);
}

/* Processes of this host that links lead to, and that have not answered yet. Returns how many. */
static size_t find_peers(const struct trace *trace, struct shunt_door *peers)
{
	size_t count = 0;

	for (size_t i = 0; i < trace->processes; i++) {
		const json_t *links = json_object_get(trace->process[i].said, "peers"), *link;
		size_t k;

		json_array_foreach(links, k, link)
		{
			pid_t pid = pid_of(link, "pid");
			bool known = !pid || is_there(trace, pid) ||
				     !json_is_true(json_object_get(link, "same_host"));

			for (size_t n = 0; n < count; n++)
				known |= peers[n].pid == pid;
			if (known || count == PEERS_MAX)
				continue;
			peers[count++] = (struct shunt_door) { .met = true, .pid = pid };
		}
	}
	return count;
}

static void ask_peers(struct trace *trace, uint64_t since)
{
	static struct shunt_door peers[PEERS_MAX];
	size_t count = find_peers(trace, peers);
	struct shunt_replies replies;

	if (!count || shunt_ask(peers, count, "trace", &replies))
		return;
	for (size_t i = 0; i < replies.count; i++)
		take_reply(trace, &replies.of[i], since);
	shunt_ask_free(&replies);
}

static int by_call(const void *a, const void *b)
{
	const struct trace_send *x = a, *y = b;

	return x->called < y->called ? -1 : x->called > y->called;
}

/* Sends between two processes that were not named are left out. */
static void keep_wanted(struct trace *trace, const struct shunt_door *wanted, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < trace->sends; i++)
		if (is_wanted(wanted, count, trace->send[i].sender) ||
		    is_wanted(wanted, count, trace->send[i].reader))
			trace->send[kept++] = trace->send[i];
	trace->sends = kept;
	if (kept)
		qsort(trace->send, kept, sizeof(*trace->send), by_call);
}

void trace_ask(struct trace *trace, const struct shunt_door *wanted, size_t count, uint64_t since)
{
	struct shunt_door *found = count ? more(NULL, count, sizeof(*found)) : NULL;
	struct shunt_replies replies;
	size_t known = 0;
	int rc;

	*trace = (struct trace) { .failed = false };
	rc = shunt_ask(wanted, count, "trace", &replies);
	if (rc) {
		fprintf(stderr, "shunt trace: %s\n", strerror(-rc));
		trace->failed = true;
		free(found);
		return;
	}
	for (size_t i = 0; i < replies.count; i++) {
		const char *why = is_there(trace, replies.of[i].door.pid) ?
					  NULL :
					  take_reply(trace, &replies.of[i], since);

		if (why && count) {
			complain(&replies.of[i].door, why);
			trace->failed = true;
		}
		if (!why && count && known < count)
			found[known++] = replies.of[i].door;
	}
	shunt_ask_free(&replies);
	ask_peers(trace, since);
	keep_wanted(trace, found, count ? known : 0);
	if (count && !known)
		trace->sends = 0;
	free(found);
}

void trace_free(struct trace *trace)
{
	for (size_t i = 0; i < trace->processes; i++)
		json_decref(trace->process[i].said);
	free(trace->process);
	free(trace->send);
}

bool trace_set(const struct shunt_door *door, const char *value)
{
	struct shunt_replies replies;
	char line[64];
	bool done = false;

	snprintf(line, sizeof(line), "set SHUNT_TRACE %s", value);
	if (shunt_ask(door, 1, line, &replies))
		return false;
	for (size_t i = 0; i < replies.count; i++) {
		const struct shunt_reply *reply = &replies.of[i];

		done |= reply->text && !reply->refused;
		if (!done)
			complain(door, reply->text ? reply->text : reply->why);
	}
	shunt_ask_free(&replies);
	return done;
}
