/* SPDX-License-Identifier: MIT */
/*
 * Steps that took long, and polls that came late: the last 1,024 of them, and how many there were
 * of each kind. Any thread notes one while it holds any lock. Only the pages of the ring are
 * allocated, once, and nothing is written to a file. Times are nanoseconds of the engine's clock.
 *
 * An event has its step, its time, how long it took, and the stream's descriptor and addresses as they were then.
 * Each slot of the ring belongs to one writer at a time, and a reader drops a slot that changes under it. The ring is
 * mapped with the first event, because a handler of the program may have interrupted malloc. shunt trace slow shows it.
 */
#ifndef SHUNT_CORE_TRACE_SLOW_H
#define SHUNT_CORE_TRACE_SLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "shunt/wire.h"

struct shunt_json;

#define SHUNT_SLOW_KEPT 1024	/* a power of two */

/* In the order of shunt_slow_text(). The first is a gap between polls (poll_warn_us). */
enum shunt_step {
	SHUNT_STEP_POLL,	/* arrived bytes waited for a poll, at most so long */
	SHUNT_STEP_ROOM,	/* a blocking send waited for room */
	SHUNT_STEP_COMPLETION,	/* a work request was not complete, at least so long */
	SHUNT_STEP_CLAIM,	/* from the claim of a connection to its link, or to a refusal */
	SHUNT_STEP_RETIRE,	/* a call of the program waited until its stream was the kernel's */
	SHUNT_STEP_SERVICE,	/* one handler of the service thread */
	SHUNT_STEP_REGISTER,	/* the device registered memory */
	SHUNT_STEP_FAILOVER,	/* from a queue pair's death until its streams are over TCP */
	SHUNT_STEPS
};

struct shunt_slow_event {
	uint64_t number;	/* from 1 on */
	uint64_t at;		/* its end */
	uint64_t duration;
	uint64_t extra;		/* a number that shunt_slow_text() names; SHUNT_STEP_SERVICE: the handler's name */
	enum shunt_step step;
	int fd;			/* -1: of no stream */
	bool addressed;		/* `tuple` is known */
	struct shunt_tuple tuple;
};

#define SHUNT_SLOW_WORDS 9

struct shunt_slow_slot {
	_Atomic uint64_t state;	/* number of its event; UINT64_MAX: it is being written */
	_Atomic uint64_t word[SHUNT_SLOW_WORDS];
};

struct shunt_slow_ring {
	_Atomic uint64_t noted;	/* events so far */
	_Atomic uint64_t lost;	/* of them: their slot was still being written */
	struct {
		_Atomic uint64_t count, longest;
	} steps[SHUNT_STEPS];
	struct shunt_slow_slot slot[SHUNT_SLOW_KEPT];
};

/* NULL until the first event. */
typedef _Atomic(struct shunt_slow_ring *) shunt_slow_log;

/* The name of the step; *extra: of its `extra`, NULL if it has none. */
const char *shunt_slow_text(enum shunt_step step, const char **extra);

/* Notes an event; its number is given here. Without memory for the ring it is forgotten. */
void shunt_slow_note(shunt_slow_log *log, const struct shunt_slow_event *event);
/* Of the step, all that were noted. */
uint64_t shunt_slow_count(shunt_slow_log *log, enum shunt_step step);
/* Of all steps but SHUNT_STEP_POLL. */
uint64_t shunt_slow_steps(shunt_slow_log *log);
/* A copy of event `number`. False: another is in its place, or it is being written. */
bool shunt_slow_get(shunt_slow_log *log, uint64_t number, struct shunt_slow_event *event);
/* Members "lost", "steps" and "events": those kept with numbers above `after`, in their order. */
void shunt_slow_json(shunt_slow_log *log, uint64_t after, struct shunt_json *json);

#endif
