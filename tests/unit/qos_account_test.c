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

/* Example 1 of the paper: R = 50, T = 1 s, at 0.6 s. */
static void example(uint32_t demand, uint32_t residual, uint32_t returned)
{
	uint64_t report;

	fresh(NULL);
	shunt_ledger_begin(&ledger, 1, 100, SECOND, 0);
	shunt_ledger_grant(&ledger, &clients[0], 50);
	shunt_account_begin(&account, 1, 50, SECOND, 0);
	for (uint32_t i = 0; i < demand && i < 50; i++)
		assert_true(shunt_account_take(&account, i, 1, &tag));
	report = shunt_account_report(&account, SECOND * 6 / 10);
	assert_int_equal(shunt_report_tag(report), 1);
	assert_int_equal(shunt_report_residual(report), residual);
	assert_int_equal(shunt_report_completed(report), demand < 50 ? demand : 50);
	assert_true(shunt_ledger_heard(&ledger, &clients[0], report));
	assert_int_equal(clients[0].returned, returned);
	assert_int_equal(account.returned, returned);
}

static void test_example_1(void **state)
{
	(void)state;
	example(20, 20, 10);
	example(40, 10, 0);
	example(50, 0, 0);
	example(60, 0, 0);
}

static void test_take_and_give(void **state)
{
	uint64_t word = shunt_pool_word(1, 20);

	(void)state;
	shunt_account_begin(&account, 1, 10, SECOND, 0);
	assert_int_equal(shunt_account_fetched(&account, word, 8), SHUNT_FETCHED_SOME);
	/* Of both, and all or nothing. */
	assert_false(shunt_account_take(&account, 0, 19, &tag));
	assert_true(shunt_account_take(&account, 0, 16, &tag));
	assert_int_equal(shunt_report_residual(shunt_account_report(&account, 0)), 0);
	assert_int_equal(shunt_report_completed(shunt_account_report(&account, 0)), 16);
	shunt_account_give(&account, tag, 16);
	assert_int_equal(shunt_account_report(&account, 0), shunt_report_word(1, 0, 0));
	assert_true(shunt_account_take(&account, 0, 18, &tag));
	/* What is given after the period is lost. */
	shunt_account_begin(&account, 2, 4, SECOND, SECOND);
	shunt_account_give(&account, tag, 18);
	assert_int_equal(shunt_account_report(&account, SECOND), shunt_report_word(2, 4, 0));
	assert_true(shunt_account_take(&account, SECOND, 3, &tag));
	shunt_account_give(&account, tag, 2);
	assert_int_equal(shunt_account_report(&account, SECOND), shunt_report_word(2, 3, 1));
	assert_false(shunt_account_take(&account, SECOND, 4, &tag));
}

/* After T pooled tokens are good until the next period begins; after 2 T the node is silent. */
static void test_late(void **state)
{
	(void)state;
	assert_true(shunt_account_lapsed(&account, 5));
	shunt_account_begin(&account, 7, 10, SECOND, SECOND);
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(7, 3), 8),
			 SHUNT_FETCHED_SOME);
	assert_true(shunt_account_take(&account, 2 * SECOND, 2, &tag));
	assert_false(shunt_account_take(&account, 2 * SECOND, 2, &tag));
	assert_false(shunt_account_lapsed(&account, 3 * SECOND - 1));
	assert_false(shunt_account_take(&account, 3 * SECOND - 1, 2, &tag));
	assert_true(shunt_account_lapsed(&account, 3 * SECOND));
	assert_true(shunt_account_take(&account, 3 * SECOND, 1000000, &tag));
	shunt_account_begin(&account, 8, 10, SECOND, 4 * SECOND);
	shunt_account_begin(&account, 8, 99, SECOND, 4 * SECOND); /* said twice */
	assert_false(shunt_account_take(&account, 4 * SECOND, 11, &tag));
	/* Numbers with the same lowest bit, one after the other. */
	shunt_account_begin(&account, 10, 5, SECOND, 5 * SECOND);
	shunt_account_give(&account, 8, 5);
	assert_false(shunt_account_take(&account, 5 * SECOND, 6, &tag));
	assert_true(shunt_account_take(&account, 5 * SECOND, 5, &tag));
}

/* An FAA that arrives after the pool was written anew, from a client at the old period. */
static void test_late_faa(void **state)
{
	uint64_t word;

	(void)state;
	shunt_account_begin(&account, 65535, 0, SECOND, 0);
	word = shunt_pool_word(0, 100); /* the next period's, which wraps */
	assert_int_equal(shunt_account_fetched(&account, word, 30), SHUNT_FETCHED_AHEAD);
	assert_false(shunt_account_take(&account, 0, 1, &tag));
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(1, 100), 30),
			 SHUNT_FETCHED_STALE);
	shunt_account_begin(&account, 0, 0, SECOND, SECOND);
	assert_true(shunt_account_take(&account, SECOND, 30, &tag));
	assert_false(shunt_account_take(&account, SECOND, 1, &tag));
	/* The answer of an FAA of the period before. */
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(65535, 100), 30),
			 SHUNT_FETCHED_STALE);
	assert_false(shunt_account_take(&account, SECOND, 1, &tag));
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(0, -5), 30),
			 SHUNT_FETCHED_NONE);
	/* Tokens that came ahead of a period that was left out. */
	assert_int_equal(shunt_account_fetched(&account, shunt_pool_word(1, 9), 30),
			 SHUNT_FETCHED_AHEAD);
	shunt_account_begin(&account, 2, 0, SECOND, 2 * SECOND);
	assert_false(shunt_account_take(&account, 2 * SECOND, 1, &tag));
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
	/* What a pool still has of the period before is nothing of this one. */
	shunt_ledger_written(&ledger, &pools[0], 5);
	shunt_ledger_begin(&ledger, 4, 100, SECOND, SECOND);
	assert_false(shunt_ledger_heard(&ledger, &clients[1], shunt_report_word(4, 5, 0)));
	assert_true(shunt_ledger_read(&ledger, &pools[0], shunt_pool_word(3, 2)));
	assert_int_equal(ledger.drawn, 0);
	assert_int_equal(shunt_ledger_most(&ledger, &pools[0], SECOND, true), 100);
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
	assert_true(shunt_ledger_heard(&ledger, &clients[0], shunt_report_word(5, 0, 0)));
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_word),
		cmocka_unit_test_setup(test_example_1, fresh),
		cmocka_unit_test_setup(test_take_and_give, fresh),
		cmocka_unit_test_setup(test_late, fresh),
		cmocka_unit_test_setup(test_late_faa, fresh),
		cmocka_unit_test_setup(test_ledger, fresh),
		cmocka_unit_test_setup(test_lies, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
