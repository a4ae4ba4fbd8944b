/* SPDX-License-Identifier: MIT */
/* Lines of the log: the time, the stream, and JSON that stays valid whatever the text is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "core/base/address.h"
#include "core/base/log_line.h"
#include "shunt/wire.h"

static char line[SHUNT_LOG_LINE_MAX + 1];

static size_t make(enum shunt_log_format format, const struct shunt_log_line *said)
{
	size_t length = shunt_log_line(format, said, line);

	assert_in_range(length, 1, SHUNT_LOG_LINE_MAX);
	assert_int_equal(line[length - 1], '\n');
	line[length] = '\0';
	assert_ptr_equal(strchr(line, '\n'), line + length - 1);
	return length;
}

static json_t *as_json(const struct shunt_log_line *said)
{
	size_t length = make(SHUNT_LOG_JSON, said);
	json_error_t error;
	json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);

	if (!root)
		fail_msg("%s: %s", error.text, line);
	return root;
}

static const char *member(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/* Every day of four centuries and more, as the C library has it. */
static void the_calendar(void **state)
{
	char text[SHUNT_LOG_TIME_ROOM], expected[64];

	(void)state;
	for (int64_t day = 0; day < 366 * 500; day++) {
		struct timespec time = { .tv_sec = day * 86400 + day % 86400,
					 .tv_nsec = day % 1000000 * 1000 + 999 };
		struct tm tm;

		assert_non_null(gmtime_r(&time.tv_sec, &tm));
		strftime(expected, sizeof(expected), "%FT%T", &tm);
		shunt_log_time(&time, text);
		assert_memory_equal(text, expected, strlen(expected));
		snprintf(expected, sizeof(expected), ".%06uZ", (unsigned int)(day % 1000000));
		assert_string_equal(text + 19, expected);
	}
}

/* A clock that is wrong makes no line longer. */
static void senseless_times(void **state)
{
	static const int64_t seconds[] = { -1, INT64_MIN, INT64_MAX, 253402300800 };
	char text[SHUNT_LOG_TIME_ROOM];

	(void)state;
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		struct timespec time = { .tv_sec = seconds[i], .tv_nsec = 999999999 };

		shunt_log_time(&time, text);
		assert_int_equal(strlen(text), 27);
	}
}

static struct shunt_tuple loopback(void)
{
	struct shunt_tuple tuple = { .local_port = htons(80), .peer_port = htons(4000) };

	memcpy(tuple.local, (const uint8_t[]){ SHUNT_ADDRESS_V4, 127, 0, 0, 1 }, 16);
	tuple.peer[15] = 1;
	return tuple;
}

static void the_stream(void **state)
{
	struct shunt_tuple tuple = loopback();
	struct shunt_log_about about = { .fd = 7, .tuple = &tuple };
	struct shunt_log_line said = { .level = SHUNT_LOG_INFO, .about = &about, .text = "here" };
	char expected[128];
	json_t *root, *stream;

	(void)state;
	make(SHUNT_LOG_TEXT, &said);
	snprintf(expected, sizeof(expected), "shunt[%d]: info: %s", (int)getpid(),
		 "descriptor 7, 127.0.0.1:80 to [::1]:4000: here\n");
	assert_string_equal(line, expected);
	about.accepted = true;
	make(SHUNT_LOG_TEXT, &said);
	assert_non_null(strstr(line, "descriptor 7, [::1]:4000 to 127.0.0.1:80: here\n"));
	root = as_json(&said);
	stream = json_object_get(root, "stream");
	assert_int_equal(json_integer_value(json_object_get(stream, "fd")), 7);
	assert_string_equal(member(stream, "local"), "127.0.0.1:80");
	assert_string_equal(member(stream, "peer"), "[::1]:4000");
	assert_string_equal(member(root, "text"), "here");
	assert_string_equal(member(root, "level"), "info");
	assert_string_equal(member(root, "program"), program_invocation_short_name);
	assert_string_equal(member(root, "time"), "1970-01-01T00:00:00.000000Z");
	assert_int_equal(json_integer_value(json_object_get(root, "pid")), getpid());
	assert_null(json_object_get(root, "left_out"));
	json_decref(root);
	about.fd = -1;	/* the text names it */
	make(SHUNT_LOG_TEXT, &said);
	assert_non_null(strstr(line, "info: here\n"));
	root = as_json(&said);
	assert_null(json_object_get(json_object_get(root, "stream"), "fd"));
	json_decref(root);
	about = (struct shunt_log_about){ .fd = 3 };
	make(SHUNT_LOG_TEXT, &said);
	assert_non_null(strstr(line, "info: descriptor 3: here\n"));
	json_decref(as_json(&said));
	said.about = NULL;
	said.left_out = 5;
	root = as_json(&said);
	assert_null(json_object_get(root, "stream"));
	assert_int_equal(json_integer_value(json_object_get(root, "left_out")), 5);
	json_decref(root);
}

/* Every byte, and every length about the end of the line: the text is cut, and no escape is. */
static void hostile_text(void **state)
{
	struct shunt_tuple tuple = loopback();
	const struct shunt_log_about about = { .fd = INT32_MAX, .tuple = &tuple };
	char text[2 * SHUNT_LOG_LINE_MAX];
	struct shunt_log_line said = { .level = SHUNT_LOG_ERROR, .left_out = UINT32_MAX,
				       .about = &about, .text = text };

	(void)state;
	for (int c = 1; c < 256; c++) {
		json_t *root;

		memset(text, c, 40);
		text[40] = '\0';
		root = as_json(&said);
		assert_int_equal(strlen(member(root, "text")), 40);
		assert_int_equal(member(root, "text")[39], c < ' ' || c > '~' ? '?' : c);
		json_decref(root);
		make(SHUNT_LOG_TEXT, &said);
	}
	for (int shift = 0; shift < 2; shift++)
		for (size_t length = 300; length < sizeof(text); length++) {
			memset(text, '"', length);
			text[length] = '\0';
			memset(text, 'x', (size_t)shift);
			json_decref(as_json(&said));
		}
	memset(text, '\\', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	json_decref(as_json(&said));
	make(SHUNT_LOG_TEXT, &said);
	assert_int_equal(strlen(line), SHUNT_LOG_LINE_MAX);
}

/* A program may give itself any name. */
static void hostile_name(void **state)
{
	char *kept = program_invocation_short_name, name[500];
	struct shunt_log_line said = { .level = SHUNT_LOG_WARN, .text = "text" };
	json_t *root;

	(void)state;
	program_invocation_short_name = name;
	for (size_t length = 0; length < sizeof(name); length++) {
		for (size_t i = 0; i < length; i++)
			name[i] = "\"\\\n\xffx"[i % 5];
		name[length] = '\0';
		root = as_json(&said);
		assert_string_equal(member(root, "text"), "text");
		json_decref(root);
	}
	program_invocation_short_name = kept;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_calendar), cmocka_unit_test(senseless_times),
		cmocka_unit_test(the_stream),	cmocka_unit_test(hostile_text),
		cmocka_unit_test(hostile_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
