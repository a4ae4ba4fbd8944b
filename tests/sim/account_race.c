/* SPDX-License-Identifier: MIT */
/*
 * Real threads on one account, for TSan: four take, give and report, one fetches from a pool and begins periods. In
 * each period, what was used and what has been returned is never more than the reservation and what was fetched.
 */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

#define PERIODS 200
#define PERIOD 1000000ull /* ns of the test's clock, which each look advances */
#define RESERVATION 500

static struct shunt_account account;
static _Atomic uint64_t pool, moment, used[256], fetched[256];
static _Atomic bool end;

static void must(bool right, const char *text)
{
	if (!right) {
		printf("not ok 1 - %s\n", text);
		exit(1);
	}
}

static void *taker(void *seed)
{
	uint64_t random = (uint64_t)seed;

	while (!end) {
		uint64_t now = atomic_fetch_add(&moment, 50);
		uint32_t tokens = (uint32_t)(random >> 60) + 1;
		uint8_t tag;

		random = random * 6364136223846793005ull + 1442695040888963407ull;
		if (shunt_account_lapsed(&account, now))
			continue;
		if (shunt_account_take(&account, now, tokens, &tag)) {
			if (random >> 63)
				shunt_account_give(&account, tag, tokens);
			else
				atomic_fetch_add(&used[tag], tokens);
		}
		if (!(random >> 62 & 1))
			shunt_account_report(&account, now);
	}
	return NULL;
}

int main(void)
{
	struct shunt_ledger ledger;
	struct shunt_ledger_client client = { 0 };
	pthread_t threads[4];
	uint64_t total = 0;

	shunt_account_begin(&account, 1, RESERVATION, PERIOD, 0);
	for (uint64_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, taker, (void *)(i + 1));
	for (uint16_t number = 2; number < PERIODS; number++) {
		uint64_t start = atomic_load(&moment);
		uint32_t before = 0;

		atomic_store(&pool, shunt_pool_word(number, 300));
		shunt_account_begin(&account, number, RESERVATION, PERIOD, start);
		shunt_ledger_begin(&ledger, number, 1000, PERIOD, start);
		shunt_ledger_grant(&ledger, &client, RESERVATION);
		while (atomic_load(&moment) - start < PERIOD) {
			uint64_t old = atomic_fetch_sub(&pool, 8);
			uint64_t report = shunt_account_report(&account, atomic_load(&moment));

			if (shunt_account_fetched(&account, old, 8) == SHUNT_FETCHED_SOME)
				atomic_fetch_add(&fetched[number], shunt_pool_got(old, 8));
			shunt_ledger_heard(&ledger, &client, report);
			must(client.returned >= before, "returned fell");
			before = client.returned;
		}
		/* What the ledger holds to be returned was not used. */
		must(atomic_load(&used[number]) + client.returned <=
			     RESERVATION + atomic_load(&fetched[number]),
		     "used more than there was");
	}
	end = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 2; i < PERIODS; i++) {
		must(used[i] <= RESERVATION + fetched[i] && fetched[i] <= 300, "a sum is wrong");
		total += used[i];
	}
	must(total > 0, "nothing was used");
	printf("ok 1 - %lu tokens\n1..1\n", (unsigned long)total);
	return 0;
}
