/* SPDX-License-Identifier: MIT */
/* The table of descriptors: a sweep finds each slot that is filled, and no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "core/fd/file.h"

#define LIMIT 9001	/* no multiple of a run, nor of a word of runs */

static struct shunt_files *table;

static int set_up(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table) + LIMIT * sizeof(table->slot[0]));
	if (!table)
		return -1;
	table->limit = LIMIT;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(table);
	return 0;
}

/* As a sweep over each slot sees it. */
static void compare(void)
{
	int next = shunt_files_next(table, 0), count = 0;

	for (int fd = 0; fd < LIMIT; fd++) {
		if (!shunt_files_get(table, fd))
			continue;
		assert_int_equal(next, fd);
		next = shunt_files_next(table, fd + 1);
		count++;
	}
	assert_int_equal(next, -1);
	shunt_files_each(table, fd)
		count--;
	assert_int_equal(count, 0);
}

static void nothing_is_found_in_an_empty_table(void **state)
{
	(void)state;
	compare();
	assert_int_equal(shunt_files_next(table, LIMIT), -1);
	assert_int_equal(shunt_files_next(table, -1), -1);
}

static void edges_of_runs_are_found(void **state)
{
	static const int edges[] = { 0,	   1,	 63,   64,   127,  128,	 4031,
				     4032, 4095, 4096, 8191, 8192, 8999, 9000 };
	struct shunt_file file = { SHUNT_FILE_PRIVATE };
	volatile int none = -1;	/* the compiler would see that it is no index */

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		shunt_files_set(table, edges[i], &file);
		compare();
	}
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		shunt_files_set(table, edges[i], NULL);
		compare();
	}
	shunt_files_set(table, LIMIT, &file);	/* has no slot */
	shunt_files_set(table, none, &file);
	assert_int_equal(shunt_files_next(table, 0), -1);
}

static void any_are_found(void **state)
{
	struct shunt_file file = { SHUNT_FILE_PRIVATE };

	(void)state;
	srand(1);
	for (int i = 0; i < 300; i++) {
		int fd = rand() % LIMIT;

		if (rand() % 3 == 0)
			shunt_files_set(table, fd, NULL);
		else if (rand() % 2)
			shunt_files_set(table, fd, &file);
		else
			shunt_files_close(table, fd);
		compare();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_found_in_an_empty_table, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(edges_of_runs_are_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(any_are_found, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
