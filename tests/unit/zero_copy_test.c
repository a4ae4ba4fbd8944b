/* SPDX-License-Identifier: MIT */
/* From which size on a registration costs less than a copy: on a clock by which every copy takes 1000 ns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/lane/zero_copy.h"

#define COPY_NS 1000

static uint64_t clock_ns;
static size_t cheap_from;	/* registering so much, or more, is cheaper */
static bool refuses;
static int registered;

static uint64_t now(void)
{
	return clock_ns += COPY_NS;
}

static struct ibv_mr *register_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	static struct ibv_mr mr;

	assert_null(pd);
	assert_non_null(addr);
	assert_int_equal(access, 0);
	if (refuses)
		return NULL;
	registered++;
	clock_ns += length >= cheap_from ? -1 : 1;
	return &mr;
}

static int deregister_mr(struct ibv_mr *mr)
{
	(void)mr;
	registered--;
	return 0;
}

static const struct shunt_verbs verbs = { .register_mr = register_mr, .deregister_mr = deregister_mr };

static uint64_t measured(size_t from)
{
	cheap_from = from;
	return shunt_zero_copy_measure(&verbs, NULL, now);
}

static void crossover_is_found(void **state)
{
	(void)state;
	assert_int_equal(measured(0), 64 << 10);
	assert_int_equal(measured((256 << 10) + 1), 512 << 10);
	assert_int_equal(measured(4 << 20), 4 << 20);
	assert_int_equal(registered, 0);
}

static void never_is_an_answer(void **state)
{
	(void)state;
	assert_int_equal(measured((4 << 20) + 1), UINT64_MAX);
	refuses = true;
	assert_int_equal(measured(0), UINT64_MAX);
	refuses = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crossover_is_found),
		cmocka_unit_test(never_is_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
