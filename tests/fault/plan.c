/* SPDX-License-Identifier: MIT */
/* A run's plan, from its seed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "campaign.h"
#include "table.h"

static uint64_t state;

static unsigned int roll(unsigned int below)
{
	state += 0x9e3779b97f4a7c15ull;
	return mix(state) % below;
}

__attribute__((format(printf, 2, 3))) static void add(char *text, const char *format, ...)
{
	size_t length = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + length, TEXT - length, format, arguments);
	va_end(arguments);
}

static void rule(struct side *side)
{
	if (*side->rules)
		add(side->rules, ";");
	switch (roll(12)) {
	case 0:
		add(side->rules, "delay:p=0.1,us=%u", 1 + roll(5000));
		break;
	case 1:
		add(side->rules, "stall:p=0.05,count=2,ms=%u", 1 + roll(40));
		break;
	case 2:
		add(side->rules, "post:p=0.%02u", 1 + roll(50));
		break;
	case 3:
		add(side->rules, "freeze:p=0.2,count=4,ms=%u", 1 + roll(40));
		break;
	case 4:
		add(side->rules, "refuse:p=0.%u", 1 + roll(9));
		break;
	case 5:
		add(side->rules, "deny:nth=%u", 1 + roll(90));
		side->forgets = true;
		break;
	case 6:
		add(side->rules, "drop:count=1,bytes=%u", roll(400000));
		side->loses = true;
		break;
	case 7:
		add(side->rules, "corrupt:what=imm,nth=%u", 1 + roll(60));
		side->loses = side->forgets = true;
		break;
	case 8:
		add(side->rules, "corrupt:what=word,nth=%u", 1 + roll(12));
		side->loses = side->forgets = true;
		break;
	case 9:
		add(side->rules, "kill:nth=%u", 1 + roll(60));
		side->loses = true;
		break;
	default:
		add(side->rules, "kill:count=1,bytes=%u", roll(600000));
		side->loses = true;
	}
}

static void side(struct side *side, uint64_t seed)
{
	unsigned int count = "\0\1\1\2"[roll(4)];

	memset(side, 0, sizeof(*side));
	while (count--)
		rule(side);
	if (*side->rules)
		add(side->rules, ";seed=%u", (unsigned int)(seed & 0xffffffff));
}

static void modes(struct plan *plan)
{
	static const char *const polls[] = { "event", "batch", "hybrid", "busy", "adaptive" };

	plan->retain = roll(2);
	plan->nonce = plan->retain && roll(2);	/* as between hosts */
	snprintf(plan->modes, TEXT, "SHUNT_TUNE=dead_ms=%u,seed=%u", 20 + roll(60),
		 1 + roll(1 << 30));
	if (plan->retain)
		add(plan->modes, ",retain=always");
	if (plan->nonce)
		add(plan->modes, ",proof=nonce");
	if (plan->retain && !roll(3))
		add(plan->modes, ",inline=100,mr_threshold=8K");
	if (!roll(3))
		add(plan->modes, ",flip=%u", 1u << (6 + roll(12)));
	if (!roll(3)) {
		add(plan->modes, ",poll=");
		add(plan->modes, "%s", polls[roll(5)]);
	}
	if (!roll(4))
		add(plan->modes, ",ring_max=%uK", 16u << roll(3));
	if (!roll(5))
		add(plan->modes, ",rq=64,sq=64");
	if (roll(2))
		add(plan->modes, ",waiters=on");
}

static void run(struct run *run, enum kind kind, bool last)
{
	memset(run, 0, sizeof(*run));
	run->seed = roll(1u << 31);
	side(&run->client, run->seed);
	run->connections = 1 + roll(3);
	run->bytes = 1ull << (12 + roll(11));
	run->rounds = 1 + roll(200);
	run->client_at = roll(30000);
	run->server_at = roll(30000);
	run->stop = 1000 + roll(30000);
	switch (roll(8)) {
	case 0:
		run->client_blow = KILLED;
		break;
	case 1:
		run->client_blow = STOPPED;
		break;
	case 2:
		run->server_blow = STOPPED;
		break;
	}
	if (last && (kind == OWNERS || !roll(2)))
		run->server_blow = KILLED;
}

void plan_make(struct plan *plan, uint64_t seed)
{
	memset(plan, 0, sizeof(*plan));
	state = mix(seed + 1);
	plan->seed = seed;
	plan->kind = "\0\0\0\0\1\2"[roll(6)];
	modes(plan);
	side(&plan->server, seed);
	plan->count = RUNS;
	for (unsigned int i = 0; i < plan->count; i++)	/* of two owners, one is lost half-way */
		run(&plan->runs[i], plan->kind, i == (plan->kind == OWNERS ? RUNS / 2 : RUNS - 1));
}

static const char *const blows[] = { "", "killed", "stopped" };

void plan_print(const struct plan *plan)
{
	static const char *const kinds[] = { "transfer", "redis", "owners" };

	printf("# seed %llu: %s, %s, server '%s'\n", (unsigned long long)plan->seed, kinds[plan->kind], plan->modes,
	       plan->server.rules);
	for (unsigned int i = 0; i < plan->count; i++) {
		const struct run *run = &plan->runs[i];

		printf("#   run %u: client '%s', %u connections, %llu bytes or %u rounds, client %s at %u, server %s at %u, for %u us\n",
		       i, run->client.rules, run->connections, (unsigned long long)run->bytes, run->rounds,
		       blows[run->client_blow], run->client_at, blows[run->server_blow], run->server_at, run->stop);
	}
}
