/* SPDX-License-Identifier: MIT */
/* Clients, pools and a node's ledger in a random order of steps, by seed: nobody spends what the node has not got. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

#define CLIENTS 10
#define PERIOD 1000000ull

struct client {
	struct shunt_account account;
	struct shunt_ledger_client at_node;
	bool flying;
	uint64_t answer, report, used;
};

static uint64_t random_state;

static uint32_t below(uint32_t most)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % most;
}

static uint64_t spendable(const struct client *c, const struct shunt_ledger *ledger)
{
	uint64_t sum = 0, purse = c->account.purse;

	if (c->flying && shunt_pool_tag(c->answer) == ledger->number)
		sum = shunt_pool_got(c->answer, 8);
	if (c->account.number != ledger->number)
		return sum + c->at_node.reservation +
		       ((uint16_t)(c->account.number + 1) == ledger->number ? c->account.ahead : 0);
	return sum + c->used + (purse >> 28 & SHUNT_ACCOUNT_MOST) + (purse & SHUNT_ACCOUNT_MOST);
}

static bool run(uint64_t seed)
{
	static struct client clients[CLIENTS];
	struct shunt_ledger_pool pools[3] = { 0 };
	struct shunt_ledger ledger = { 0 };
	uint64_t words[3] = { 0 }, now = 0, gone = 0;
	uint16_t number = (uint16_t)(seed * 251);
	bool convert = seed & 1;

	random_state = seed;
	memset(clients, 0, sizeof(clients));
	for (int step = 0; step < 1500; step++) {
		struct client *c = &clients[below(CLIENTS)];
		uint32_t what = below(100), k = below(3);
		uint64_t sum = gone;
		uint8_t tag;

		now += below(4000);
		if (!step || now - ledger.began > PERIOD) {
			shunt_ledger_begin(&ledger, ++number, 1000, PERIOD, now);
			gone = 0;
			for (int i = 0; i < CLIENTS; i++) {
				clients[i].used = 0;
				shunt_ledger_grant(&ledger, &clients[i].at_node, below(150));
			}
		} else if (what < 15 && c->account.number != number) {
			shunt_account_begin(&c->account, number, c->at_node.reservation, PERIOD,
					    now);
		} else if (what < 45) {
			uint32_t tokens = below(16) + 1;

			if (!shunt_account_lapsed(&c->account, now) &&
			    shunt_account_take(&c->account, now, tokens, &tag)) {
				if (below(4) == 0)
					shunt_account_give(&c->account, tag, tokens);
				else if (c->account.number == number)
					c->used += tokens;
			}
		} else if (what < 60 && !c->flying) {
			c->answer = words[k];
			words[k] -= 8;
			c->flying = true;
		} else if (what < 70 && c->flying) {
			shunt_account_fetched(&c->account, c->answer, 8);
			c->flying = false;
		} else if (what < 80) {
			c->report = shunt_account_report(&c->account, now);
		} else if (what < 88) {
			shunt_ledger_heard(&ledger, &c->at_node, c->report);
		} else if (what < 98) {
			uint64_t most;

			shunt_ledger_read(&ledger, &pools[k], words[k]);
			most = shunt_ledger_most(&ledger, &pools[k], now, convert);
			words[k] = shunt_pool_word(number, (int64_t)most);
			shunt_ledger_written(&ledger, &pools[k], most);
		} else if (below(4) == 0) {
			gone += spendable(c, &ledger);
			shunt_ledger_gone(&ledger, &c->at_node);
			memset(c, 0, sizeof(*c));
		}
		sum = gone;
		for (int i = 0; i < CLIENTS; i++)
			sum += spendable(&clients[i], &ledger);
		for (int i = 0; i < 3; i++)
			if (shunt_pool_tag(words[i]) == number && shunt_pool_tokens(words[i]) > 0)
				sum += (uint64_t)shunt_pool_tokens(words[i]);
		if (sum > ledger.capacity) {
			printf("not ok 1 - seed %lu, step %d: %lu tokens\n", (unsigned long)seed,
			       step, (unsigned long)sum);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 2 && !strcmp(argv[1], "--seeds") ? strtoull(argv[2], NULL, 10) : 500;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		if (!run(seed))
			return 1;
	printf("ok 1 - %lu seeds\n1..1\n", (unsigned long)seeds);
	return 0;
}
