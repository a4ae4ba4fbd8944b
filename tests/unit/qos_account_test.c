/* SPDX-License-Identifier: MIT */
/* A client's account and the node's ledger, with a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/qos/account.h"
#include "core/qos/ledger.h"
#include "core/qos/pool.h"

#define SECOND 1000000000ull

static struct shunt_account account;
static struct shunt_ledger ledger;
static struct shunt_ledger_client clients[4];
static uint8_t tag;

static int fresh(void **state)
{
	(void)state;
	account = (struct shunt_account) { 0 };
	for (int i = 0; i < 4; i++)
		clients[i] = (struct shunt_ledger_client) { 0 };
	return 0;
}

static void test_pool_word(void **state)
{
	uint64_t word = shunt_pool_word(65535, 5);

	(void)state;
	assert_int_equal(shunt_pool_got(word, 8), 5);
	assert_int_equal(shunt_pool_got(word, 3), 3);
	word -= 8;
	assert_int_equal(shunt_pool_tag(word), 65535);
	assert_int_equal(shunt_pool_tokens(word), -3);
	assert_int_equal(shunt_pool_got(word, 8), 0);
	assert_int_equal(shunt_pool_tag(shunt_pool_word(65536 + 7, 0)), 7);
	assert_int_equal(shunt_pool_batch(0, 1000), 1);
	assert_int_equal(shunt_pool_batch(800, 1000), 100);
	assert_int_equal(shunt_pool_batch(1 << 20, 5000), 1000);
	assert_int_equal(shunt_pool_batch(1 << 20, 0), 1);
}

static void takes(uint64_t now, uint32_t tokens, enum shunt_taken taken)
{
	assert_int_equal(shunt_account_take(&account, now, tokens, &tag), taken);
}

static uint64_t reported(uint64_t now)
{
	return shunt_account_report(&account, now, false);
}

/* Example 1 of the paper: R = 50, T = 1 s, at 0.6 s. */
static void example(uint32_t demand, bool backlogged, uint32_t residual, uint32_t returned)
{
	uint64_t report;

	fresh(NULL);
	shunt_ledger_begin(&ledger, 1, 100, SECOND, 0);
	shunt_ledger_grant(&ledger, &clients[0], 50);
	shunt_account_begin(&account, 1, 50, SECOND, 0);
	for (uint32_t i = 0; i < demand; i++)
		takes(i, 1, i < 50 ? SHUNT_TAKEN_RESERVED : SHUNT_TAKEN_NONE);
	report = shunt_account_report(&account, SECOND * 6 / 10, backlogged);
	assert_int_equal(shunt_report_tag(report), 1);
	assert_int_equal(shunt_report_residual(report), residual);
	assert_int_equal(shunt_report_spent(report), demand < 50 ? demand : 50);
	assert_true(shunt_ledger_heard(&ledger, &clients[0], report));
	assert_int_equal(clients[0].returned, returned);
	assert_int_equal(account.returned, returned);
	/* Decayed tokens cannot be taken. */
	takes(SECOND * 6 / 10, residual + 1, SHUNT_TAKEN_NONE);
	if (residual)
		takes(SECOND * 6 / 10, residual, SHUNT_TAKEN_RESERVED);
	assert_int_equal(reported(SECOND * 6 / 10),
			 shunt_report_word(1, 0, (demand < 50 ? demand : 50) + residual));
}

static void test_example_1(void **state)
{
	(void)state;
	example(20, false, 20, 10);
	example(40, false, 10, 0);
	example(50, false, 0, 0);
	example(60, false, 0, 0);
	/* Nothing decays where something waits. */
	example(20, true, 30, 0);
	example(0, true, 50, 0);
	example(60, true, 0, 0);
}

static void test_backlogged(void **state)
{
	(void)state;
	shunt_account_begin(&account, 1, 100, SECOND, 0);
	assert_int_equal(shunt_account_report(&account, SECOND - 1, true),
			 shunt_report_word(1, 100, 0));
	/* As soon as nothing waits any more, all decays that should have. */
	assert_int_equal(reported(SECOND / 4), shunt_report_word(1, 75, 0));
	assert_int_equal(shunt_account_report(&account, SECOND / 2, true),
			 shunt_report_word(1, 75, 0));
	takes(SECOND * 3 / 4, 75, SHUNT_TAKEN_RESERVED);
	assert_int_equal(reported(SECOND), shunt_report_word(1, 0, 75));
	assert_int_equal(account.returned, 25);
	/* After the period's end nobody spends what it did not. */
	shunt_account_begin(&account, 2, 100, SECOND, SECOND);
	takes(2 * SECOND, 1, SHUNT_TAKEN_NONE);
	assert_int_equal(shunt_account_report(&account, 2 * SECOND, true),
			 shunt_report_word(2, 100, 0));
	assert_int_equal(reported(2 * SECOND), shunt_report_word(2, 0, 0));
	/* Clocks of threads differ. */
	shunt_account_begin(&account, 3, 100, SECOND, 3 * SECOND);
	assert_int_equal(reported(2 * SECOND), shunt_report_word(3, 100, 0));
}

/* R = 6400: 100 and 16 tokens ahead of R * t/T. */
static void test_paced(void **state)
{
	uint64_t due;

	(void)state;
	account.paced = true;
	shunt_account_begin(&account, 1, 6400, SECOND, 0);
	takes(0, 117, SHUNT_TAKEN_NONE);
	takes(0, 100, SHUNT_TAKEN_RESERVED);
	assert_int_equal(shunt_account_due(&account, 0, 16), 0);
	takes(0, 16, SHUNT_TAKEN_RESERVED);
	takes(0, 1, SHUNT_TAKEN_NONE);
	due = shunt_account_due(&account, 0, 2);
	assert_in_range(due, SECOND * 2 / 6400, SECOND * 2 / 6400 + 1);
	takes(due / 4, 2, SHUNT_TAKEN_NONE);
	due = SECOND * 2 / 6400;
	takes(due, 2, SHUNT_TAKEN_RESERVED);
	/* Pooled tokens have no schedule. */
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(1, 8), 8),
			 SHUNT_FETCHED_SOME);
	assert_int_equal(shunt_account_pooled(&account), 8);
	takes(due, 8, SHUNT_TAKEN_POOLED);
	/* A client that is behind catches up at any rate. */
	assert_int_equal(shunt_account_due(&account, SECOND / 2, 3198), SECOND / 2);
	takes(SECOND / 2, 3199, SHUNT_TAKEN_NONE);
	takes(SECOND / 2, 3198, SHUNT_TAKEN_RESERVED);
	takes(SECOND / 2, 1, SHUNT_TAKEN_NONE);
	/* At the last moment all that is left. */
	takes(SECOND - 1, 6400 - 3316, SHUNT_TAKEN_RESERVED);
	assert_int_equal(reported(SECOND - 1), shunt_report_word(1, 0, 6400));
	assert_int_equal(account.returned, 0);
	/* Decayed tokens are not on the schedule either. */
	shunt_account_begin(&account, 2, 6400, SECOND, SECOND);
	assert_int_equal(reported(SECOND * 3 / 2), shunt_report_word(2, 3200, 0));
	takes(SECOND * 3 / 2, 3201, SHUNT_TAKEN_NONE);
	takes(SECOND * 3 / 2, 3200, SHUNT_TAKEN_RESERVED);
	account.paced = false;
	takes(SECOND * 3 / 2, 1, SHUNT_TAKEN_NONE);
	shunt_account_begin(&account, 3, 6400, SECOND, 2 * SECOND);
	takes(2 * SECOND, 6400, SHUNT_TAKEN_RESERVED);
}

/* Each time that is named is one at which so many can be taken, or at which something else is due. */
static void test_due(void **state)
{
	uint64_t now = 0, due;
	uint32_t spent = 0;

	(void)state;
	assert_int_equal(shunt_account_due(&account, 5, 100), 5); /* lapsed */
	account.paced = true;
	shunt_account_begin(&account, 1, 1000, SECOND, 0);
	assert_int_equal(shunt_account_due(&account, 0, 1001), SECOND);
	for (uint32_t tokens = 1; spent + tokens <= 1000; tokens = tokens % 13 + 1) {
		due = shunt_account_due(&account, now, tokens);
		if (due > now)
			takes(now, tokens, SHUNT_TAKEN_NONE);
		assert_in_range(due, now, SECOND - 1);
		now = due;
		takes(now, tokens, SHUNT_TAKEN_RESERVED);
		spent += tokens;
	}
	assert_true(now > SECOND * 9 / 10);
	assert_int_equal(shunt_account_due(&account, now, 1000), SECOND);
	assert_int_equal(shunt_account_due(&account, SECOND, 1000), 2 * SECOND);
	assert_int_equal(shunt_account_due(&account, 2 * SECOND, 1000), 2 * SECOND);
	/* None of a reservation of none. */
	shunt_account_begin(&account, 2, 0, SECOND, SECOND);
	assert_int_equal(shunt_account_due(&account, SECOND, 1), 2 * SECOND);
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(2, 3), 8),
			 SHUNT_FETCHED_SOME);
	assert_int_equal(shunt_account_due(&account, SECOND, 3), SECOND);
	assert_int_equal(shunt_account_due(&account, SECOND, 4), 2 * SECOND);
}

static void test_take(void **state)
{
	uint64_t word = shunt_pool_word(1, 20);

	(void)state;
	shunt_account_begin(&account, 1, 10, SECOND, 0);
	assert_int_equal(shunt_account_fetched(&account, word, 8), SHUNT_FETCHED_SOME);
	/* Of both, and all or nothing. */
	takes(0, 19, SHUNT_TAKEN_NONE);
	takes(0, 16, SHUNT_TAKEN_POOLED);
	assert_int_equal(reported(0), shunt_report_word(1, 0, 10));
	takes(SECOND - 1, 2, SHUNT_TAKEN_POOLED);
	takes(SECOND - 1, 1, SHUNT_TAKEN_NONE);
	shunt_account_begin(&account, 2, 4, SECOND, SECOND);
	assert_int_equal(shunt_account_pooled(&account), 0);
	assert_int_equal(reported(SECOND), shunt_report_word(2, 4, 0));
	takes(SECOND, 3, SHUNT_TAKEN_RESERVED);
	assert_int_equal(reported(SECOND), shunt_report_word(2, 1, 3));
	takes(SECOND, 2, SHUNT_TAKEN_NONE);
}

/* After T pooled tokens are good until the next period begins; after 2 T the node is silent. */
static void test_late(void **state)
{
	(void)state;
	assert_true(shunt_account_lapsed(&account, 5));
	shunt_account_begin(&account, 7, 10, SECOND, SECOND);
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(7, 3), 8),
			 SHUNT_FETCHED_SOME);
	takes(2 * SECOND, 2, SHUNT_TAKEN_POOLED);
	takes(2 * SECOND, 2, SHUNT_TAKEN_NONE);
	assert_false(shunt_account_lapsed(&account, 3 * SECOND - 1));
	takes(3 * SECOND - 1, 2, SHUNT_TAKEN_NONE);
	assert_true(shunt_account_lapsed(&account, 3 * SECOND));
	/* Nothing is taken then. */
	takes(3 * SECOND, 2, SHUNT_TAKEN_LAPSED);
	assert_int_equal(shunt_account_pooled(&account), 1);
	takes(3 * SECOND, 1000000, SHUNT_TAKEN_LAPSED);
	shunt_account_begin(&account, 8, 10, SECOND, 4 * SECOND);
	shunt_account_begin(&account, 8, 99, SECOND, 4 * SECOND); /* said twice */
	takes(4 * SECOND, 11, SHUNT_TAKEN_NONE);
	/* Numbers with the same lowest bit, one after the other. */
	shunt_account_begin(&account, 10, 5, SECOND, 5 * SECOND);
	takes(5 * SECOND, 6, SHUNT_TAKEN_NONE);
	takes(5 * SECOND, 5, SHUNT_TAKEN_RESERVED);
}

/* An FAA that arrives after the pool was written anew, from a client at the old period. */
static void test_late_faa(void **state)
{
	uint64_t word;

	(void)state;
	shunt_account_begin(&account, 65535, 0, SECOND, 0);
	word = shunt_pool_word(0, 100); /* the next period's, which wraps */
	assert_int_equal(shunt_account_fetched(&account, word, 30), SHUNT_FETCHED_AHEAD);
	takes(0, 1, SHUNT_TAKEN_NONE);
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(1, 100), 30),
			 SHUNT_FETCHED_STALE);
	shunt_account_begin(&account, 0, 0, SECOND, SECOND);
	takes(SECOND, 30, SHUNT_TAKEN_POOLED);
	takes(SECOND, 1, SHUNT_TAKEN_NONE);
	/* The answer of an FAA of the period before. */
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(65535, 100), 30),
			 SHUNT_FETCHED_STALE);
	takes(SECOND, 1, SHUNT_TAKEN_NONE);
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(0, -5), 30),
			 SHUNT_FETCHED_NONE);
	/* Tokens that came ahead of a period that was left out. */
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(1, 9), 30),
			 SHUNT_FETCHED_AHEAD);
	shunt_account_begin(&account, 2, 0, SECOND, 2 * SECOND);
	takes(2 * SECOND, 1, SHUNT_TAKEN_NONE);
	assert_int_equal(account.faas, 5);
	assert_int_equal(account.from_pool, 39);
}

static void test_ledger(void **state)
{
	struct shunt_ledger_pool pools[2] = { 0 };
	uint64_t half = SECOND / 2;

	(void)state;
	shunt_ledger_begin(&ledger, 3, 100, SECOND, 0);
	assert_int_equal(shunt_ledger_grant(&ledger, &clients[0], 30), 30);
	assert_int_equal(shunt_ledger_grant(&ledger, &clients[1], 20), 20);
	assert_int_equal(shunt_ledger_target(&ledger, 0, true), 50);
	assert_int_equal(shunt_ledger_target(&ledger, 0, false), 50);
	assert_true(shunt_ledger_read(&ledger, &pools[0], 0));
	shunt_ledger_written(&ledger, &pools[0], 25);
	assert_int_equal(shunt_ledger_most(&ledger, &pools[1], 0, true), 25);
	shunt_ledger_written(&ledger, &pools[1], 25);
	assert_int_equal(shunt_ledger_grant(&ledger, &clients[2], 1), 0);
	/* 10 drawn, and one pool drawn over. */
	assert_true(shunt_ledger_read(&ledger, &pools[0], shunt_pool_word(3, 15)));
	assert_true(shunt_ledger_read(&ledger, &pools[1], shunt_pool_word(3, -40)));
	assert_int_equal(ledger.drawn, 35);
	assert_int_equal(ledger.pooled, 15);
	assert_int_equal(shunt_ledger_most(&ledger, &pools[1], 0, true), 0);
	/* At 0.5 s: 50 - L = 50 - 10 - 5, but no more than 100 - 50 - 35 + returned. */
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(3, 10, 5)));
	assert_true(shunt_ledger_heard(&ledger, &clients[1], shunt_report_word(3, 5, 10)));
	assert_int_equal(ledger.returned, 20);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 35);
	assert_int_equal(shunt_ledger_target(&ledger, half, false), 15);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND * 7 / 10, true), 15);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND, true), 0);
	assert_int_equal(shunt_ledger_most(&ledger, &pools[1], half, true), 20);
	/* The one that has gone keeps what it had. */
	shunt_ledger_gone(&ledger, &clients[0]);
	assert_int_equal(ledger.residual, 5);
	assert_int_equal(ledger.reserved, 50);
	assert_false(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(3, 1, 0)));
	/* A pool that somebody has filled. */
	assert_false(shunt_ledger_read(&ledger, &pools[0], shunt_pool_word(3, 16)));
	assert_int_equal(ledger.drawn, 50);
	shunt_ledger_written(&ledger, &pools[0], 5);
	assert_false(shunt_ledger_read(&ledger, &pools[0], shunt_pool_word(4, 5)));
	assert_int_equal(ledger.pooled, 0);
	/* A pool's rest of the period before does not count in this one. */
	shunt_ledger_written(&ledger, &pools[0], 5);
	shunt_ledger_begin(&ledger, 4, 100, SECOND, SECOND);
	assert_false(shunt_ledger_heard(&ledger, &clients[1], shunt_report_word(4, 5, 0)));
	assert_true(shunt_ledger_read(&ledger, &pools[0], shunt_pool_word(3, 2)));
	assert_int_equal(ledger.drawn, 0);
	assert_int_equal(shunt_ledger_most(&ledger, &pools[0], SECOND, true), 100);
}

/* A client that has said nothing is taken to decay; L has the residuals of the others. */
static void test_unheard(void **state)
{
	uint64_t half = SECOND / 2;

	(void)state;
	shunt_ledger_begin(&ledger, 5, 1000, SECOND, 0);
	shunt_ledger_grant(&ledger, &clients[0], 400);
	shunt_ledger_grant(&ledger, &clients[1], 100);
	assert_int_equal(ledger.unheard, 500);
	assert_int_equal(shunt_ledger_target(&ledger, 0, true), 500);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND / 4, true), 750 - 375);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 500 - 250);
	/* Backlogged, and behind: it needs all that is left. */
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 400, 0)));
	assert_int_equal(ledger.residual, 400);
	assert_int_equal(ledger.unheard, 100);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 500 - 400 - 50);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND * 7 / 10, true), 0);
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 0, 400)));
	assert_int_equal(clients[0].spent, 400);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 500 - 50);
	/* One that has gone needs nothing; it keeps what it was granted. */
	shunt_ledger_gone(&ledger, &clients[1]);
	assert_int_equal(ledger.unheard, 0);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 500);
	assert_int_equal(shunt_ledger_target(&ledger, 0, true), 500);
}

/* Unreserved: 640 of 1000, of which a sixteenth is there at once. */
static void test_paced_ledger(void **state)
{
	struct shunt_ledger_pool pool = { 0 };
	uint64_t half = SECOND / 2;

	(void)state;
	shunt_ledger_begin(&ledger, 9, 1000, SECOND, 0);
	ledger.paced = true;
	shunt_ledger_grant(&ledger, &clients[0], 360);
	assert_int_equal(shunt_ledger_target(&ledger, 0, true), 40);
	assert_int_equal(shunt_ledger_target(&ledger, half, false), 360);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND, false), 640);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND / 4, true), 200);
	assert_true(shunt_ledger_read(&ledger, &pool, 0));
	shunt_ledger_written(&ledger, &pool, 200);
	assert_true(shunt_ledger_read(&ledger, &pool, shunt_pool_word(9, 100)));
	assert_int_equal(shunt_ledger_target(&ledger, half, false), 260);
	/* Returned tokens are there at once, and where there is a conversion. */
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(9, 100, 200)));
	assert_int_equal(ledger.returned, 60);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 320);
	assert_int_equal(shunt_ledger_target(&ledger, half, false), 260);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND * 8 / 10, true), 100);
	/* More drawn than is released: by conversion, or before the schedule was kept. */
	shunt_ledger_written(&ledger, &pool, 300);
	assert_true(shunt_ledger_read(&ledger, &pool, shunt_pool_word(9, 0)));
	assert_int_equal(ledger.drawn, 400);
	assert_int_equal(shunt_ledger_target(&ledger, SECOND / 4, true), 0);
	assert_int_equal(shunt_ledger_target(&ledger, half, true), 20);
	assert_int_equal(shunt_ledger_target(&ledger, half, false), 0);
}

/* Reports are the peer's word. */
static void test_lies(void **state)
{
	uint64_t seed = 1;

	(void)state;
	shunt_ledger_begin(&ledger, 0x105, 1000, SECOND, 0);
	shunt_ledger_grant(&ledger, &clients[0], 50);
	assert_false(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(4, 10, 5)));
	assert_false(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 51, 0)));
	assert_false(shunt_ledger_heard(&ledger, &clients[1], shunt_report_word(5, 1, 0)));
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 40, 20)));
	assert_int_equal(clients[0].returned, 0);
	assert_true(shunt_ledger_heard(&ledger, &clients[0],
				       shunt_report_word(5, 50, SHUNT_ACCOUNT_MOST)));
	assert_int_equal(clients[0].returned, 0);
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 10, 10)));
	assert_int_equal(clients[0].returned, 30);
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 50, 0)));
	assert_int_equal(clients[0].returned, 30);
	assert_int_equal(ledger.residual, 20);
	for (int i = 0; i < 100000; i++) {
		uint32_t before = clients[0].returned;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		shunt_ledger_heard(&ledger, &clients[0],
				   shunt_report_word(seed & 1 ? 5 : (uint8_t)(seed >> 8),
						     (uint32_t)(seed >> 16) % 60,
						     (uint32_t)(seed >> 36) >> (seed >> 60)));
		assert_true(clients[0].returned >= before && clients[0].returned <= 50);
		assert_true(clients[0].residual + clients[0].returned <= 50);
		assert_int_equal(ledger.returned, clients[0].returned);
		assert_int_equal(ledger.residual, clients[0].residual);
	}
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 0, 0)));
	assert_int_equal(ledger.returned, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_word),
		cmocka_unit_test_setup(test_example_1, fresh),
		cmocka_unit_test_setup(test_backlogged, fresh),
		cmocka_unit_test_setup(test_paced, fresh),
		cmocka_unit_test_setup(test_due, fresh),
		cmocka_unit_test_setup(test_take, fresh),
		cmocka_unit_test_setup(test_late, fresh),
		cmocka_unit_test_setup(test_late_faa, fresh),
		cmocka_unit_test_setup(test_ledger, fresh),
		cmocka_unit_test_setup(test_unheard, fresh),
		cmocka_unit_test_setup(test_paced_ledger, fresh),
		cmocka_unit_test_setup(test_lies, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
