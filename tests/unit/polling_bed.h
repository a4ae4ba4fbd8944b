/* SPDX-License-Identifier: MIT */
/*
 * A scripted device and a system under a virtual clock, for waits and sleepers. Completions arrive at times that a test
 * sets; polls, looks at the clock and sleeps take time; nothing else moves. As on a real device, what is in a CQ before it
 * is armed raises no event (SD-07).
 */
#ifndef SHUNT_TESTS_UNIT_POLLING_BED_H
#define SHUNT_TESTS_UNIT_POLLING_BED_H

#include <stdbool.h>
#include "core/engine.h"
#include "core/fd/thread.h"
#include "core/poll/polling.h"
#include "core/stream/wait.h"
#include "tests/inspect.h"

#define POLL_NS 30

enum { EVENT, BATCH, HYBRID, BUSY, ADAPTIVE };

struct cq {
	struct ibv_cq ibv;
	int waiting[2];		/* completions for each stream */
	bool armed, fired;
};

extern struct shunt_engine engine;
extern struct shunt_stream streams[2];
extern struct shunt_seat seats[2];
extern struct shunt_lane lane;
extern struct cq cqs[SHUNT_CQS_MAX];
extern const struct shunt_verbs verbs;
extern int arrival_count, arrived;
extern uint64_t clock_now;
extern uint64_t others_ns;	/* for which others have the core that is yielded */
extern uint64_t moments;	/* calls to the device and the system so far */
extern uint64_t race_moment;	/* the one before which a completion slips in; 0 never */
extern int sleeps, hang_ups;

/* All of it anew, in a mode. */
void make(int mode);
/* A completion comes now, or at a time of ns. */
void put(int cq, int stream);
void arrive(uint64_t at, int cq, int stream);
/* `trains` times `bursts` bursts of so many messages; all times in ns. */
void load(int trains, uint64_t rest, int bursts, uint64_t gap, int messages, uint64_t spacing);
/* A program that receives all of it. */
void receive_all(void);
void pass(uint64_t ns);

bool event_waits(void);
int left_in_cqs(void);

#endif
