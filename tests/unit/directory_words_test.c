/* SPDX-License-Identifier: MIT */
/* The frames of a directory, whole and in parts. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/base/address.h"
#include "core/peer/directory_words.h"

#define WORDS "a question" /* which the frames only carry */

static const uint8_t loopback[16] = { SHUNT_ADDRESS_V4, 127, 0, 0, 1 };

static void questions_are_read(void **state)
{
	struct shunt_directory_question right, wrong;

	(void)state;
	shunt_directory_question_make(&right, loopback, htons(80), WORDS, sizeof(WORDS));
	for (size_t got = 0; got <= sizeof(right); got++)
		assert_int_equal(shunt_directory_question_read(&right, got), got == sizeof(right));
	wrong = right;
	wrong.magic = __builtin_bswap32(wrong.magic);
	assert_int_equal(shunt_directory_question_read(&wrong, 3), 0);
	assert_int_equal(shunt_directory_question_read(&wrong, 4), -EPROTO);
	wrong = right;
	wrong.version++;
	assert_int_equal(shunt_directory_question_read(&wrong, 7), 0);
	assert_int_equal(shunt_directory_question_read(&wrong, 8), -EPROTONOSUPPORT);
	for (int i = 0; i < 2; i++) {
		wrong = right;
		wrong.bytes = i ? sizeof(wrong.words) + 1 : 0;
		assert_int_equal(shunt_directory_question_read(&wrong, sizeof(wrong)), -EPROTO);
	}
}

static void answers_are_read(void **state)
{
	struct shunt_directory_answer right, wrong;

	(void)state;
	shunt_directory_answer_make(&right, WORDS, sizeof(WORDS));
	for (size_t got = 0; got <= sizeof(right); got++)
		assert_int_equal(shunt_directory_answer_read(&right, got, false),
				 got == sizeof(right) ? (int)sizeof(WORDS) : 0);
	for (size_t got = 0; got <= sizeof(right); got++)
		assert_int_equal(shunt_directory_answer_read(&right, got, true),
				 got >= 8 + sizeof(WORDS) ? (int)sizeof(WORDS) : -EPROTO);
	wrong = right;
	wrong.bytes = 1u << 31; /* of another version, perhaps */
	assert_int_equal(shunt_directory_answer_read(&wrong, sizeof(wrong), false),
			 sizeof(wrong.words));
	wrong.bytes = 0;
	assert_int_equal(shunt_directory_answer_read(&wrong, sizeof(wrong), false), -EPROTO);
	wrong = right;
	wrong.magic++;
	assert_int_equal(shunt_directory_answer_read(&wrong, 4, false), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_are_read),
		cmocka_unit_test(answers_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
