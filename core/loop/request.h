/* SPDX-License-Identifier: MIT */
/*
 * Requests of the rooms below to the service thread. It polls for completions in the program's
 * stead while a lane waits for one, or while arrivals must be refused. The program may never poll
 * again (PF-21). Any thread asks; any lock may be held.
 */
#ifndef SHUNT_CORE_LOOP_REQUEST_H
#define SHUNT_CORE_LOOP_REQUEST_H

#include <stdbool.h>

struct shunt_loop;

/* A lane has work that waits for credit. */
void shunt_request_watch(struct shunt_loop *loop);
/* A QP did not take a WR: the service thread offers it again in a while, also if it rests by now. */
void shunt_request_retry(struct shunt_loop *loop);
/* Data for the stream is to be answered by a reset; `refusing` is the stream's, under its tx.lock. */
void shunt_request_refuse(struct shunt_loop *loop, bool *refusing, bool on);

#define SHUNT_GATHER_LOOK 50000000ull	/* ns between two looks at streams that gather, and so between wake-ups for it */
/* A stream has begun to gather (core/stream/gather.h). */
void shunt_request_gather(struct shunt_loop *loop);
/* There may be memory to let go: reclaim.c. */
void shunt_request_memory(struct shunt_loop *loop);
/* A record of a send is to be completed when the device has placed its last byte (core/lane/lane_trace.h). */
void shunt_request_trace(struct shunt_loop *loop);
/* A device has WRs that it has not carried out: the rule of mock.h. */
void shunt_request_completions(struct shunt_loop *loop);
/* Whether a stream is another process' is to be found out, or told (core/peer/fork_owner.h). */
void shunt_request_owner(struct shunt_loop *loop);

#endif
