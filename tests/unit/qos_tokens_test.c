/* SPDX-License-Identifier: MIT */
/* Tokens, with a clock of the test's own: what a bucket gives in any interval, and how a limit is shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/qos/portions.h"
#include "core/qos/tokens.h"

#define SECOND 1000000000ull
#define GBIT2 61035156ull /* 2 Gbit/s */

static struct shunt_bucket bucket;

static void test_cost(void **state)
{
	(void)state;
	assert_int_equal(shunt_tokens_of(1), 1);
	assert_int_equal(shunt_tokens_of(4096), 1);
	assert_int_equal(shunt_tokens_of(4097), 2);
	assert_int_equal(shunt_tokens_of(65536), 16);
	assert_int_equal(shunt_tokens_piece(GBIT2, 65536), 65536);
	assert_int_equal(shunt_tokens_piece(GBIT2 / 10, 65536), 6 * 4096);
	assert_int_equal(shunt_tokens_piece(1000, 65536), 4096);
	assert_int_equal(shunt_tokens_piece(SHUNT_RATE_MAX, 5000), 5000);
}

/* Takes all that there is, every `step` ns up to `end`. */
static uint64_t take_all(uint64_t from, uint64_t end, uint64_t step, uint32_t tokens, bool waits)
{
	uint64_t taken = 0;

	for (uint64_t now = from; now < end; now += step)
		while (shunt_bucket_take(&bucket, now, tokens, waits))
			taken += tokens;
	return taken;
}

/* The limit holds in each tenth of a second within 2 %, and in the long run exactly. */
static void test_rate(void **state)
{
	uint64_t sum = 0, begin = 5 * SECOND;

	(void)state;
	shunt_bucket_begin(&bucket, GBIT2, begin);
	sum = take_all(begin, begin + SECOND / 10, 1000000, 16, true);
	for (int i = 1; i < 100; i++) {
		uint64_t from = begin + (uint64_t)i * SECOND / 10,
			 taken = take_all(from, from + SECOND / 10, 1000000, 16, true);

		assert_in_range(taken, 6103 * 98 / 100, 6104 * 102 / 100);
		sum += taken;
	}
	assert_in_range(sum, 610351 - 16 - 62, 610351 + 2 * 62);
}

/* An idle bucket's savings are bounded, also while a sender waits. */
static void test_depth(void **state)
{
	(void)state;
	shunt_bucket_begin(&bucket, 1000000000, 0); /* a million a second */
	assert_int_equal(take_all(0, 1, 1, 1, false), 2000);
	assert_int_equal(take_all(10 * SECOND, 10 * SECOND + 1, 1, 1, false), 2000);
	assert_int_equal(take_all(20 * SECOND, 20 * SECOND + 1, 1, 1, true), 20000);
	/* At a low rate one request fits all the same, and no more. */
	shunt_bucket_begin(&bucket, 1000, 0); /* one a second */
	assert_true(shunt_bucket_take(&bucket, 0, 2, false));
	assert_false(shunt_bucket_take(&bucket, 0, 1, false));
	assert_false(shunt_bucket_take(&bucket, SECOND - 1, 1, false));
	assert_true(shunt_bucket_take(&bucket, SECOND + 1, 1, false));
	assert_true(shunt_bucket_take(&bucket, 100 * SECOND, 16, false));
}

static void test_due(void **state)
{
	uint64_t now = 7, due;

	(void)state;
	shunt_bucket_begin(&bucket, GBIT2, now);
	for (int i = 0; i < 1000; i++) {
		uint32_t tokens = (uint32_t)i % 16 + 1;

		while (shunt_bucket_take(&bucket, now, tokens, true))
			;
		due = shunt_bucket_due(&bucket, now, tokens);
		assert_true(due > now && due <= now + 16 * 16385);
		assert_false(shunt_bucket_take(&bucket, due - 2, tokens, true));
		assert_true(shunt_bucket_take(&bucket, due, tokens, true));
		now = due;
	}
}

static void test_give_and_change(void **state)
{
	(void)state;
	shunt_bucket_begin(&bucket, 1000, 0);
	assert_true(shunt_bucket_take(&bucket, 0, 2, false));
	shunt_bucket_give(&bucket, 1);
	assert_true(shunt_bucket_take(&bucket, 0, 1, false));
	assert_false(shunt_bucket_take(&bucket, 0, 1, false));
	/* The debt is in time: it does not shrink with another rate, and later tokens cost what they do then. */
	shunt_bucket_change(&bucket, 1000000);
	assert_int_equal(take_all(SECOND, 2 * SECOND, SECOND / 1000, 1, true), 1000 + 19);
}

/* --- portions --- */

#define LIMIT 1600000ull

static struct shunt_portion parts[4];

static void begin(int count, uint64_t now)
{
	for (int i = 0; i < count; i++) {
		shunt_portion_begin(&parts[i], 0, 0, now);
		parts[i].next = i + 1 < count ? &parts[i + 1] : NULL;
	}
}

static void test_equal(void **state)
{
	(void)state;
	shunt_portion_split(NULL, LIMIT);
	begin(4, 0);
	shunt_portion_split(parts, LIMIT);
	for (int i = 0; i < 4; i++)
		assert_int_equal(parts[i].rate, LIMIT / 4);
}

/* Two are short, one uses little, one nothing. */
static void test_uneven(void **state)
{
	(void)state;
	begin(4, 0);
	shunt_portion_used(&parts[0], 400, 5, SECOND);
	shunt_portion_used(&parts[1], 400, 1, SECOND);
	shunt_portion_used(&parts[2], 160, 0, SECOND); /* 160,000, and a quarter */
	shunt_portion_used(&parts[3], 0, 0, SECOND);
	shunt_portion_split(parts, LIMIT);
	assert_int_equal(parts[2].rate, 200000);
	assert_int_equal(parts[3].rate, LIMIT / 4 / 16);
	assert_int_equal(parts[0].rate, (LIMIT - 200000 - LIMIT / 64) / 2);
	assert_int_equal(parts[1].rate, parts[0].rate);
	assert_int_equal(parts[0].used, 400000);
}

static void test_nobody_short(void **state)
{
	uint64_t sum = 0;

	(void)state;
	begin(3, 0);
	shunt_portion_used(&parts[0], 100, 0, SECOND);
	shunt_portion_used(&parts[1], 200, 0, SECOND);
	shunt_portion_used(&parts[2], 0, 0, SECOND);
	shunt_portion_split(parts, LIMIT);
	for (int i = 0; i < 3; i++)
		sum += parts[i].rate;
	assert_in_range(sum, LIMIT - 4, LIMIT);
	assert_true(parts[1].rate > parts[0].rate && parts[0].rate > parts[2].rate);
}

/* Counts are the peer's word: nothing that it says makes the sum more than the limit. */
static void test_lies(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint64_t sum = 0, now = 0;

		begin(4, 0);
		for (int i = 0; i < 12; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			now += seed >> (20 + seed % 40);
			shunt_portion_used(&parts[i % 4], seed >> (seed >> 58),
					   seed << (seed >> 59), now);
		}
		shunt_portion_split(parts, LIMIT + round);
		for (int i = 0; i < 4; i++) {
			assert_true(parts[i].rate >= LIMIT / 4 / 16);
			sum += parts[i].rate;
		}
		assert_true(sum <= LIMIT + (uint64_t)round);
	}
}

static void test_pace(void **state)
{
	struct shunt_pace pace = { 0 };

	(void)state;
	assert_int_equal(shunt_pace_look(&pace, 1000, SECOND, 2 * SECOND), 1000000);
	assert_int_equal(shunt_pace_look(&pace, 5000, SECOND, 2 * SECOND + 1),
			 1000000); /* too soon */
	assert_int_equal(shunt_pace_look(&pace, 2000, SECOND, 4 * SECOND), 500000);
	assert_int_equal(shunt_pace_look(&pace, 0, SECOND, 5 * SECOND), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_due),
		cmocka_unit_test(test_give_and_change),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_nobody_short),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_pace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
