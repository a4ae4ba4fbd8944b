/* SPDX-License-Identifier: MIT */
/*
 * The connection manager as a rendezvous, between the two devices of the lab (guest/cm.sh). Each end is a
 * struct cm of its own, in this process or in a child.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/lab/cm/cm.h"

/* guest/cm.sh has hidden the library. */
static void without_the_library(void **state)
{
	int result = cm_open(&asker, &callbacks, NULL);

	(void)state;
	print_message("# %s\n", asker.error);
	assert_int_equal(result, -ENOENT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int count, char **words)
{
	const struct CMUnitTest hidden[] = { cmocka_unit_test(without_the_library) };
	const struct CMUnitTest tests[] = {
		TEST(question_and_answer),
		TEST(by_ipv6),
		TEST(lengths),
		TEST(wildcards),
		TEST(mapped_addresses),
		TEST(callbacks_call),
		TEST(cancelled),
		TEST(nobody_listens),
		TEST(black_holes),
		TEST(no_way),
		TEST(a_stopped_listener),
		TEST(another_process_listens),
		TEST(a_forks_child),
		TEST(garbage_questions),
		TEST(garbage_answers),
		TEST(somebody_accepts),
		TEST(asked_again),
		TEST(a_thousand_in_a_row),
		TEST(many_at_once),
		cmocka_unit_test(nothing_is_left),
		TEST(a_device_goes),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (count > 1 && !strcmp(words[1], "hidden"))
		return cmocka_run_group_tests(hidden, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
