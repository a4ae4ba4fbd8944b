/* SPDX-License-Identifier: MIT */
/*
 * The campaign: seed → plan (plan.c) → what happened, and whether it may (play.c). A plan is a server, or two that share
 * a port, and some clients one after the other, each of them a run.
 */
#ifndef TESTS_FAULT_CAMPAIGN_H
#define TESTS_FAULT_CAMPAIGN_H

#include <stdbool.h>
#include <stdint.h>

enum { RUNS = 8, TEXT = 200 };

enum kind { TRANSFER, REDIS, OWNERS };
enum blow { UNHARMED, KILLED, STOPPED };	/* stopped and continued */

struct side {
	char rules[TEXT];	/* SHUNT_FAULT */
	bool loses;		/* one of them may cost what is not kept */
	bool forgets;		/* one of them may cost what is kept, too */
};

struct run {
	struct side client;
	enum blow client_blow, server_blow;
	unsigned int client_at, server_at, stop;	/* us */
	unsigned int connections, rounds;
	uint64_t bytes, seed;
};

struct plan {
	uint64_t seed;
	enum kind kind;
	bool retain, nonce, plain_client;
	char modes[TEXT];	/* NAME=VALUE ... */
	struct side server;
	unsigned int count;
	struct run runs[RUNS];
};

void plan_make(struct plan *plan, uint64_t seed);
void plan_print(const struct plan *plan);
/* Plays all runs. How many were played; *failed: how many not as they should. */
unsigned int plan_play(const struct plan *plan, unsigned int *failed);

extern const char *shunt_command, *load_program;
extern bool verbose, no_rules;
extern unsigned int limit_s;	/* a run that takes longer hangs */

#endif
