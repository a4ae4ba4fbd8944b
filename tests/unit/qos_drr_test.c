/* SPDX-License-Identifier: MIT */
/* Deficit round robin: shares by weight, whatever the requests' sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/qos/drr.h"

static void test_shares(void **state)
{
	const uint32_t weights[] = { 1, 2, 1, 1000 }, wanted[] = { 16, 1, 5, 0 };
	uint32_t all[4] = { 16, 1, 5, 1 }, tokens, class;
	uint64_t got[4] = { 0 }, sum = 0;
	struct shunt_drr drr;

	(void)state;
	shunt_drr_begin(&drr, weights, 4);
	while (sum < 400000) {
		class = shunt_drr_next(&drr, wanted, 16, &tokens);
		assert_true(class < 3 && tokens == wanted[class]);
		got[class] += tokens;
		sum += tokens;
	}
	assert_in_range(got[0], 99000, 101000);
	assert_in_range(got[1], 199000, 201000);
	/* The idle class has saved nothing: it gets its turn, and the others are served. */
	for (int i = 0; i < 20000; i++) {
		class = shunt_drr_next(&drr, all, 16, &tokens);
		got[3] += class == 3 ? tokens : 0;
	}
	assert_true(got[3] > 18000 && got[3] < 20000);
}

static void test_waits(void **state)
{
	const uint32_t weights[] = { 1, 1 }, idle[] = { 0, 0 }, wanted[] = { 1, 16 };
	uint32_t tokens, class = 0;
	struct shunt_drr drr;

	(void)state;
	shunt_drr_begin(&drr, weights, 2);
	assert_int_equal(shunt_drr_next(&drr, idle, 16, &tokens), SHUNT_DRR_NONE);
	assert_int_equal(tokens, 0);
	/* With few tokens at a time the large request gets its turn. */
	for (int i = 0; i < 40 && class != SHUNT_DRR_NONE; i++)
		class = shunt_drr_next(&drr, wanted, 3, &tokens);
	assert_int_equal(class, SHUNT_DRR_NONE);
	assert_int_equal(tokens, 16);
	assert_int_equal(shunt_drr_next(&drr, wanted, 16, &tokens), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
