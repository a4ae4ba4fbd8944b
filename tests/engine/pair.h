/* SPDX-License-Identifier: MIT */
/*
 * Engines of one process over real TCP on the loopback: what race.c and bed.c stand on.
 */
#ifndef TESTS_ENGINE_PAIR_H
#define TESTS_ENGINE_PAIR_H

#include "core/engine.h"
#include "core/service.h"
#include "tests/inspect.h"
#include "tests/sim/role.h"

struct side {
	struct shunt_engine *engine;
	int fd;
};

struct pair {
	struct side side[2];	/* connected, accepted */
};

extern struct shunt_engine *engines[2];
extern uint64_t pair_skew;	/* added to the clock of the engines */
extern void (*pair_looked)(void); /* whenever an engine looks at its clock; NULL: nothing */

/* From here on `pair_skew` alone moves the clock of the engines; false: time does, too. */
void freeze_clock(bool frozen);

_Noreturn void die(const char *what);
/* Makes both engines; `manual`: the caller steps their services. The former two are left as they are. */
void make_engines(const struct shunt_config *config, bool manual);
void listen_here(void);
void connect_pair(struct pair *pair);
/* The same socket connects once more; side[1] is another. */
void connect_again(struct pair *pair);
void close_side(struct side *side);
struct shunt_stream *stream_of(struct side *side);
/* A stream that is the kernel's is served by it. */
ssize_t send_some(struct side *side, const void *bytes, size_t count, int flags);
ssize_t receive_some(struct side *side, void *bytes, size_t count, int flags);

#endif
