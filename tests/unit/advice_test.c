/* SPDX-License-Identifier: MIT */
/* Each reason for TCP has a remedy, and its text finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tools/common/advice.h"

static void test_each_reason_has_advice(void **state)
{
	(void)state;
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++) {
		const char *text = shunt_reason_text((enum shunt_reason)i);

		if (!shunt_advice((enum shunt_reason)i))
			fail_msg("core/base/reason_table.h has no remedy for: %s", text);
		assert_ptr_equal(shunt_advice_for(text), shunt_advice((enum shunt_reason)i));
	}
}

static void test_each_cause_has_a_reason(void **state)
{
	char said[SHUNT_CAUSE_ROOM], other[SHUNT_CAUSE_ROOM];
	bool used[SHUNT_REASONS] = { true };

	(void)state;
	for (int i = SHUNT_CAUSE_NONE + 1; i < SHUNT_CAUSES; i++) {
		used[shunt_reason_of((enum shunt_cause)i)] = true;
		shunt_cause_say((enum shunt_cause)i, said);
		assert_true(strlen(said) < SHUNT_CAUSE_ROOM - 1);
		for (int j = SHUNT_CAUSE_NONE; j < i; j++)
			assert_string_not_equal(shunt_cause_say((enum shunt_cause)j, other), said);
	}
	for (int i = SHUNT_REASON_NONE; i < SHUNT_REASONS; i++)
		assert_true(used[i]);
	assert_string_equal(shunt_cause_say(SHUNT_CAUSE_NONE, said), "");
	assert_string_equal(shunt_cause_say(SHUNT_CAUSE_RESTLESS, said),
			    "the process has changed its user or its rights: again and again");
}

static void test_other_texts_have_none(void **state)
{
	(void)state;
	assert_null(shunt_advice(SHUNT_REASON_NONE));
	assert_null(shunt_advice(SHUNT_REASONS));
	assert_null(shunt_advice_for(""));
	assert_null(shunt_advice_for("no reason at all"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_reason_has_advice),
		cmocka_unit_test(test_each_cause_has_a_reason),
		cmocka_unit_test(test_other_texts_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
