/* SPDX-License-Identifier: MIT */
/*
 * Spares of a listener (core/stream/spare.h) whose peer has connected anew: births. They wait for accept() beside the
 * kernel's own queue. A listener that has had a spare is asked for by way of the companion (core/wait/epset.h), because the
 * kernel's set would not tell of them.
 *
 * Only a listener of one process has births: another process that accepts there would not see them. It is the only one at
 * its address, or the others would get none. At one that blocks
 * accept() waits here, and not in the kernel (core/accept.h).
 */
#ifndef SHUNT_CORE_STREAM_BIRTHS_H
#define SHUNT_CORE_STREAM_BIRTHS_H

#include <stdbool.h>
#include <stdint.h>

struct shunt_group;
struct shunt_spares;
struct shunt_stream;

/* Its memory is used for another listener later, and stays mapped. group.lock. */
struct shunt_births {
	struct shunt_stream *listener; /* NULL: it is closed, or has births no more */
	struct shunt_stream *first, *last;
	uint32_t count;
	uint32_t uses; /* by the listener, and by each of its spares */
	uint32_t most; /* connections that may wait for accept(), and one: there are no more spares */
	struct shunt_births *next; /* unused ones */
	uint32_t
		turns; /* births in a row that were taken before the kernel was asked */
};

/* For a listener that has none yet. NULL: there is no memory. group.lock held, as for the next. */
struct shunt_births *shunt_births_begin(struct shunt_spares *spares, struct shunt_stream *listener);
/* One more; `counted`: the caller is among them. False: there are as many as may be. */
bool shunt_births_use(struct shunt_births *births, bool counted);
/* NULL is allowed. */
void shunt_births_let_go(struct shunt_spares *spares, struct shunt_births *births);
/* The listener has none from now on. */
void shunt_births_end(struct shunt_births *births);
/* The peer has connected anew: UPGRADE to a spare that rests. NULL, or what is wrong with it. */
const char *shunt_births_add(struct shunt_stream *stream, uint64_t at);
/* The listener is readable by births. Any thread. */
bool shunt_births_wait(const struct shunt_stream *listener);
/*
 * The first of them, which is not listed any more. NULL: no birth waits, or the kernel's queue is to be asked before. `again`: it
 * has been. No lock held.
 */
struct shunt_stream *shunt_births_pop(struct shunt_group *group, struct shunt_stream *listener,
				      bool again);
/* It could not be given a number: it is the first again. No lock held. */
void shunt_births_push_back(struct shunt_stream *stream);

#endif
