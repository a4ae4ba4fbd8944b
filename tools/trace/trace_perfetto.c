/* SPDX-License-Identifier: MIT */
/*
 * Followed sends as Chrome's trace events (the JSON that ui.perfetto.dev opens). Each process is a process there. A
 * stream is one or several threads, because slices of one thread must not overlap. A send that begins before the last
 * one has ended takes the next thread. An arrow leads from the send to the read.
 */
#include "tools/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>

#define THREADS 64 /* of a stream in one process; what does not fit is drawn into the last */
#define STREAM 1000 /* numbers of threads from one stream to the next */

struct thread {
	pid_t pid;
	json_int_t number;
	uint64_t busy; /* ns, until then */
};

struct drawing {
	json_t *events;
	struct thread *thread;
	size_t threads;
};

/* Microseconds, as the format has them. */
static json_t *us(uint64_t ns)
{
	return json_real((double)ns / 1e3);
}

static struct thread *add_thread(struct drawing *drawing, pid_t pid, json_int_t number)
{
	struct thread *thread = realloc(drawing->thread, (drawing->threads + 1) * sizeof(*thread));
	char name[64];

	if (!thread) {
		fputs("shunt trace: out of memory\n", stderr);
		exit(EXIT_FAILURE);
	}
	drawing->thread = thread;
	thread += drawing->threads++;
	*thread = (struct thread) { .pid = pid, .number = number };
	snprintf(name, sizeof(name), "stream %lld", (long long)(number / STREAM));
	json_array_append_new(drawing->events, json_pack("{s:s,s:s,s:i,s:I,s:{s:s}}", "ph", "M",
							 "name", "thread_name", "pid", (int)pid,
							 "tid", number, "args", "name", name));
	return thread;
}

/* The thread on which nothing of the stream is drawn at `from`; it is busy until `to`. */
static json_int_t thread_for(struct drawing *drawing, pid_t pid, json_int_t stream, uint64_t from,
			     uint64_t to)
{
	for (json_int_t number = stream * STREAM;; number++) {
		struct thread *thread = NULL;

		for (size_t i = 0; i < drawing->threads && !thread; i++)
			if (drawing->thread[i].pid == pid && drawing->thread[i].number == number)
				thread = &drawing->thread[i];
		if (!thread)
			thread = add_thread(drawing, pid, number);
		if (thread->busy <= from || number == stream * STREAM + THREADS - 1) {
			thread->busy = to;
			return number;
		}
	}
}

static void draw_slice(struct drawing *drawing, const char *name, pid_t pid, json_int_t tid,
		       uint64_t from, uint64_t to, const struct trace_send *send)
{
	char id[17];

	snprintf(id, sizeof(id), "%016llx", (unsigned long long)send->id);
	json_array_append_new(drawing->events,
			      json_pack("{s:s,s:s,s:s,s:i,s:I,s:o,s:o,s:{s:s,s:I,s:I}}", "ph", "X",
					"name", name, "cat", send->answer ? "answer" : "send",
					"pid", (int)pid, "tid", tid, "ts", us(from), "dur",
					us(to - from), "args", "id", id, "bytes", send->bytes,
					"error_ns", (json_int_t)send->error));
}

/* `which`: s begins an arrow, f ends it. */
static void draw_arrow(struct drawing *drawing, const char *which, pid_t pid, json_int_t tid,
		       uint64_t at, size_t number)
{
	json_t *event = json_pack("{s:s,s:s,s:s,s:I,s:i,s:I,s:o}", "ph", which, "name", "send",
				  "cat", "flow", "id", (json_int_t)number, "pid", (int)pid, "tid",
				  tid, "ts", us(at));

	if (*which == 'f')
		json_object_set_new(event, "bp", json_string("e"));
	json_array_append_new(drawing->events, event);
}

static void draw_send(struct drawing *drawing, const struct trace_send *send, size_t number)
{
	uint64_t placed = send->placed ? send->placed : send->seen;
	json_int_t from = thread_for(drawing, send->sender, send->stream, send->called, placed);
	json_int_t to = thread_for(drawing, send->reader, send->stream, placed, send->read);

	if (send->posted > send->called)
		draw_slice(drawing, "waited for credit", send->sender, from, send->called,
			   send->posted, send);
	draw_slice(drawing, send->placed ? "on the link" : "on the link, or for the poll",
		   send->sender, from, send->posted, placed, send);
	if (send->placed)
		draw_slice(drawing, "waited for the reader's poll", send->reader, to, placed,
			   send->seen, send);
	draw_slice(drawing, "waited for the program", send->reader, to, send->seen, send->read,
		   send);
	draw_arrow(drawing, "s", send->sender, from, send->posted, number);
	draw_arrow(drawing, "f", send->reader, to, send->seen, number);
}

json_t *trace_perfetto(const struct trace *trace)
{
	struct drawing drawing = { .events = json_array() };

	for (size_t i = 0; i < trace->processes; i++)
		json_array_append_new(drawing.events,
				      json_pack("{s:s,s:s,s:i,s:{s:s}}", "ph", "M", "name",
						"process_name", "pid", (int)trace->process[i].pid,
						"args", "name", trace->process[i].name));
	for (size_t i = 0; i < trace->sends; i++)
		draw_send(&drawing, &trace->send[i], i + 1);
	free(drawing.thread);
	return json_pack("{s:o,s:s}", "traceEvents", drawing.events, "displayTimeUnit", "ns");
}
