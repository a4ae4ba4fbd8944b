/* SPDX-License-Identifier: MIT */
/* Capacity by Algorithm 1, and admission. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/qos/admission.h"
#include "core/qos/capacity.h"

static void test_steps(void **state)
{
	struct shunt_capacity capacity;
	uint64_t before;

	(void)state;
	shunt_capacity_begin(&capacity, 10000, 1000);
	for (int i = 0; i < 20; i++)
		shunt_capacity_step(&capacity, 9000);
	/* Down by a fifth, with a history that is full. */
	for (int i = 0; i < 8; i++)
		shunt_capacity_step(&capacity, 7200);
	assert_in_range(capacity.estimate, 7200, 7416);
	before = capacity.estimate;
	assert_int_equal(shunt_capacity_step(&capacity, before), before + before / 100);
	before = capacity.estimate;
	assert_int_equal(shunt_capacity_step(&capacity, before - before / 200),
			 before + before / 100);
	before = capacity.estimate;
	assert_int_equal(shunt_capacity_step(&capacity, 6999), before);
	assert_true(shunt_capacity_step(&capacity, 7000) < before);
}

static void test_profile(void **state)
{
	uint64_t samples[] = { 2, 4, 4, 4, 5, 5, 7, 9 }, mean, sigma;
	uint32_t periods = 0;

	(void)state;
	shunt_capacity_profile(samples, 8, &mean, &sigma);
	assert_int_equal(mean, 5);
	assert_int_equal(sigma, 2);
	for (int i = 1; i < 20; i++)
		assert_int_equal(shunt_capacity_unused(&periods, 9, 10), i == 8);
	assert_false(shunt_capacity_unused(&periods, 10, 10));
	assert_int_equal(periods, 0);
}

/* Example 2 of the paper. */
static void test_admission(void **state)
{
	const uint64_t reservations[] = { 40, 10, 10, 10, 10 };
	uint64_t reserved = 0;

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_true(shunt_admission_aggregate(reserved, reservations[i], 100));
		assert_true(shunt_admission_local(reservations[i], 0, 50, 0, 1000));
		reserved += reservations[i];
		assert_int_equal(shunt_admission_local(reservations[i], 10, 50, 500, 1000), i > 0);
	}
	assert_true(shunt_admission_aggregate(reserved, 20, 100));
	assert_false(shunt_admission_aggregate(reserved, 21, 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_profile),
		cmocka_unit_test(test_admission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
