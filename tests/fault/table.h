/* SPDX-License-Identifier: MIT */
/*
 * Reports of a run's ends to the campaign, in memory that all of them map. It outlives an end that
 * was killed. The descriptors are inherited: TABLE_FD the memory, EVENT_FD an eventfd that is
 * written when an end of a connection is over.
 */
#ifndef TESTS_FAULT_TABLE_H
#define TESTS_FAULT_TABLE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

enum { TABLE_FD = 3, EVENT_FD = 4 };
enum { SLOTS = 64 };

/* RUNNING: nothing has been told yet. EARLY: the stream ended before all had come. */
enum outcome { UNUSED, RUNNING, COMPLETE, EARLY, BROKEN, WRONG };

struct end {
	_Atomic uint64_t sent;	/* bytes that send() has taken */
	_Atomic uint64_t got;
	_Atomic int error;	/* of BROKEN */
	_Atomic pid_t pid;
	_Atomic int outcome;
};

struct slot {
	struct end client, server;
};

struct table {
	struct slot slots[SLOTS];
};

enum style { POLL, EDGE, HALVES, PINGPONG, STYLES };

struct order {		/* the first bytes of a connection */
	uint64_t key;		/* of its bytes */
	uint64_t up, down;	/* from the client to the server, and back */
	uint32_t style, slot;
	uint32_t pause;		/* us that both think before the rest, in which they may be put on a link */
	uint32_t zero;
};

extern struct table *table;
void table_map(void);
/* An end is over. */
void table_tell(struct end *end, enum outcome outcome, int error);

/* redis.c: sets and gets, and checks what comes. */
void redis_run(int port, uint64_t seed, uint32_t slot, uint32_t rounds);

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

#endif
