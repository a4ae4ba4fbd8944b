/* SPDX-License-Identifier: MIT */
/* Each reason for TCP has a remedy, and its text finds it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "tools/advice.h"

static void test_each_reason_has_advice(void **state)
{
	(void)state;
	for (int i = SHUNT_REASON_NONE + 1; i < SHUNT_REASONS; i++) {
		const char *text = shunt_reason_text((enum shunt_reason)i);

		if (!shunt_advice((enum shunt_reason)i))
			fail_msg("tools/advice.c has nothing for: %s", text);
		assert_ptr_equal(shunt_advice_for(text), shunt_advice((enum shunt_reason)i));
	}
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
		cmocka_unit_test(test_other_texts_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
