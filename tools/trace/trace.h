/* SPDX-License-Identifier: MIT */
/*
 * shunt trace: asking processes for the sends that were followed (trace_ask.c), where their time went (trace_show.c),
 * and a file for Perfetto (trace_perfetto.c).
 */
#ifndef SHUNT_TOOLS_TRACE_H
#define SHUNT_TOOLS_TRACE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "tools/ask/ask.h"

/* Stages of a send, in their order. */
enum trace_stage {
	TRACE_CREDIT, /* called to posted */
	TRACE_LINK, /* posted to placed */
	TRACE_POLL, /* placed to seen */
	TRACE_PROGRAM, /* seen to read */
	TRACE_TOGETHER, /* link and poll, where nobody has told when the bytes were placed */
	TRACE_ALL, /* called to read */
	TRACE_STAGES
};

struct trace_send {
	uint64_t id;
	bool answer;
	pid_t sender, reader;
	json_int_t fd, stream, bytes;
	/* ns of the reader's clock; placed 0: not known */
	uint64_t called, accepted, posted, placed, seen, read;
	uint64_t error; /* ns by which the sender's times may be off */
};

/* A process that has answered. */
struct trace_process {
	pid_t pid;
	char name[32]; /* of its program; escaped */
	json_t *said; /* an object */
};

struct trace {
	struct trace_process *process;
	size_t processes;
	struct trace_send *send; /* by the time of the call */
	size_t sends;
	bool failed; /* a process that was named has not answered; it has been said why */
};

/*
 * Asks the wanted processes (all with a count of 0), and the processes of this host at the other ends of their links.
 * Sends are taken of which the sender or the reader is wanted, and that were called at `since` or later.
 */
void trace_ask(struct trace *trace, const struct shunt_door *wanted, size_t count, uint64_t since);
void trace_free(struct trace *trace);
/* Sets SHUNT_TRACE in a process. False: it has been said why not. */
bool trace_set(const struct shunt_door *door, const char *value);

/* ns that the send was in a stage; UINT64_MAX: not known, or not there. */
uint64_t trace_spent(const struct trace_send *send, enum trace_stage stage);

void trace_show(const struct trace *trace);
/* The trace as JSON, which the caller releases. */
json_t *trace_json(const struct trace *trace);
/* Chrome's trace events, which ui.perfetto.dev opens. The caller's. */
json_t *trace_perfetto(const struct trace *trace);

#endif
