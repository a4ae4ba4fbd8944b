/* SPDX-License-Identifier: MIT */
/* One of two processes that are connected by the soft device, and met over a Unix socket. */
#ifndef SHUNT_TESTS_SOFT_PARTY_H
#define SHUNT_TESTS_SOFT_PARTY_H

#include <stdio.h>
#include <unistd.h>
#include "tests/soft/rig.h"

enum { CREDIT = 64 }; /* receives posted from the start */

struct hello {
	struct rig_address address;
	uint64_t memory;
	uint32_t rkey;
};

struct party {
	struct rig_end end;
	struct rig_options options;
	struct hello peer;
	int socket;
};

/* In the child, where cmocka must not run, a failure is an exit. */
#define must(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(99); \
		} \
	} while (0)

typedef void (*role)(struct party *party);

/* Runs one role in a child made before any device, the other here. */
void party_run(role child, role parent);

/* The k-th message: its number, at a place of its own. */
void party_say(struct party *party, uint64_t k);
/* Consumes what is there; *k counts the messages, each of which must be the next. */
void party_consume(struct party *party, uint64_t *k);
/* Arms, looks once more, sleeps. Never later than DOZE_MS, else a wake-up was lost. */
void party_doze(struct party *party, uint64_t *k, uint64_t until);
void party_wait_for(struct party *party, uint64_t *k, uint64_t until);
/* Until the device has carried out all that was said. */
void party_settle(struct party *party);

#endif
