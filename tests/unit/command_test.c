/* SPDX-License-Identifier: MIT */
/* The lines of the control socket: what is taken, what is refused, and that a refusal changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/admin/command.h"
#include "core/base/answer.h"
#include "core/engine.h"

static struct shunt_answer answer;

static void none_is_young(struct shunt_engine *engine, bool counted)
{
	(void)engine;
	(void)counted;
}

static struct shunt_engine *make(void)
{
	struct shunt_engine *engine = aligned_alloc(64, (sizeof(*engine) + 63) & ~(size_t)63);

	assert_non_null(engine);
	memset(engine, 0, sizeof(*engine));
	shunt_config_defaults(&engine->config);
	engine->grow_young = none_is_young;
	return engine;
}

static int say(struct shunt_engine *engine, const char *line)
{
	return shunt_command_run(engine, line, strlen(line), &answer);
}

static void test_words(void **state)
{
	static const char *const wrong[] = {
		"",
		" ",
		" help",
		"help ",
		"set  spin_us 1",
		"help\n",
		"help\t",
		"h\xc3\xa9lp",
		"help\x7f",
		"a b c d e f g h i",
		"helP",
		"helpme",
		"help me",
		"set",
		"set spin_us",
		"set spin_us 1 2",
	};
	struct shunt_engine *engine = make();

	(void)state;
	assert_int_equal(say(engine, "help"), 0);
	assert_non_null(strstr(answer.text, "set NAME VALUE\n"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(say(engine, wrong[i]), -1);
		assert_true(answer.length > 1 && answer.text[answer.length - 1] == '\n');
	}
	assert_int_equal(shunt_command_run(engine, "help\0", 5, &answer), -1);
	free(engine);
}

static void test_length(void **state)
{
	struct shunt_engine *engine = make();
	char line[2 * SHUNT_COMMAND_MAX];

	(void)state;
	memset(line, 'x', sizeof(line));
	for (size_t bytes = 1; bytes < sizeof(line); bytes++) {
		assert_int_equal(shunt_command_run(engine, line, bytes, &answer), -1);
		assert_non_null(strstr(answer.text, bytes > SHUNT_COMMAND_MAX ? "at most" : "no command"));
	}
	free(engine);
}

static void test_set(void **state)
{
	static const char *const wrong[] = {
		"set spin_us 1001",   "set spin_us -1",	  "set spin_us 1x",
		"set spin_us +1",     "set SHUNT_SPIN 1", "set SPIN_US 1",
		"set SHUNT_LOG loud", "set rq 64",	  "set SHUNT_STATS /tmp/x",
		"set SHUNT_ENABLE 0",
	};
	struct shunt_engine *engine = make();
	struct shunt_config before = engine->config;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(say(engine, wrong[i]), -1);
	assert_memory_equal(&before, &engine->config, sizeof(before));
	assert_int_equal(say(engine, "set spin_us 1000"), 0);
	assert_string_equal(answer.text, "spin_us=1000\n");
	assert_int_equal(engine->config.spin_us, 1000);
	assert_int_equal(say(engine, "set SHUNT_LOG debug"), 0);
	assert_true(shunt_log_wants(SHUNT_LOG_DEBUG));
	assert_int_equal(say(engine, "set SHUNT_LOG warn"), 0);
	assert_false(shunt_log_wants(SHUNT_LOG_DEBUG));
	free(engine);
}

static void test_number(void **state)
{
	(void)state;
	assert_int_equal(shunt_answer_number("0", 10), 0);
	assert_int_equal(shunt_answer_number("10", 10), 10);
	assert_int_equal(shunt_answer_number("11", 10), -1);
	assert_int_equal(shunt_answer_number("2147483647", INT32_MAX), INT32_MAX);
	assert_int_equal(shunt_answer_number("2147483648", INT32_MAX), -1);
	assert_int_equal(shunt_answer_number("99999999999999999999999", INT32_MAX), -1);
	assert_int_equal(shunt_answer_number("", 10), -1);
	assert_int_equal(shunt_answer_number("-1", 10), -1);
	assert_int_equal(shunt_answer_number("1 ", 10), -1);
	assert_int_equal(shunt_answer_number("0x1", 10), -1);
}

static void test_answer(void **state)
{
	(void)state;
	answer.length = 0;
	for (int i = 0; i < 1000; i++)
		shunt_answer_put(&answer, "%s\n", "more than there is room for");
	assert_int_equal(answer.length, SHUNT_ANSWER_MAX - 1);
	assert_int_equal(strlen(answer.text), answer.length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words), cmocka_unit_test(test_length), cmocka_unit_test(test_set),
		cmocka_unit_test(test_number), cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
