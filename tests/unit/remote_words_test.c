/* SPDX-License-Identifier: MIT */
/*
 * The question to another host and its answer, and the channel's seals after them. The two ends
 * have one key, two, one between them, or none. No byte of a word can be another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "core/base/keyfile.h"
#include "core/peer/remote_words.h"

static const uint8_t one[SHUNT_KEY_BYTES] = "one key", another[SHUNT_KEY_BYTES] = "another key";
static const uint8_t *const keys[] = { NULL, one, another };
static const uint8_t chance[SHUNT_REMOTE_CHANCE] = "chance of asker";

static struct remote_question question;
static struct remote_answer answer;
static unsigned int question_bytes, answer_bytes;

static void speak(const uint8_t *key)
{
	question_bytes = shunt_remote_question_make(&question, key, chance);
	answer = (struct remote_answer) { .port = 4711, .cookie = "a cookie of 16", .chance = "another chance" };
	answer_bytes = shunt_remote_answer_make(&answer, key, &question);
}

static enum shunt_remote_sense asked(const uint8_t *key)
{
	struct remote_question read;

	return shunt_remote_question_read(&read, key, &question, question_bytes);
}

static enum shunt_remote_sense answered(const uint8_t *key, const struct remote_question *to)
{
	struct remote_answer read;

	return shunt_remote_answer_read(&read, key, to, &answer, answer_bytes);
}

static void who_understands_whom(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++) {
			speak(keys[i]);
			assert_int_equal(asked(keys[j]),
					 i == j ? SHUNT_REMOTE_SOUND : SHUNT_REMOTE_OTHER_KEY);
			assert_int_equal(answered(keys[j], &question),
					 i == j ? SHUNT_REMOTE_SOUND : SHUNT_REMOTE_OTHER_KEY);
		}
}

/* The connection manager has 52 bytes for a question and 144 for an answer. Without a key the former ones are used. */
static void they_fit(void **state)
{
	(void)state;
	speak(NULL);
	assert_int_equal(question_bytes, 8);
	assert_int_equal(answer_bytes, 28);
	speak(one);
	assert_true(question_bytes <= 52 && answer_bytes <= 144);
}

static void every_byte_counts(void **state)
{
	(void)state;
	speak(one);
	for (unsigned int i = 0; i < question_bytes; i++) {
		((uint8_t *)&question)[i] ^= 1;
		assert_int_not_equal(asked(one), SHUNT_REMOTE_SOUND);
		((uint8_t *)&question)[i] ^= 1;
	}
	for (unsigned int i = 0; i < answer_bytes; i++) {
		((uint8_t *)&answer)[i] ^= 1;
		assert_int_not_equal(answered(one, &question), SHUNT_REMOTE_SOUND);
		((uint8_t *)&answer)[i] ^= 1;
	}
	assert_int_equal(asked(one), SHUNT_REMOTE_SOUND);
	assert_int_equal(answered(one, &question), SHUNT_REMOTE_SOUND);
}

static void an_answer_is_to_its_question(void **state)
{
	static const uint8_t later[SHUNT_REMOTE_CHANCE] = "other chance";
	struct remote_question next;

	(void)state;
	speak(one);
	shunt_remote_question_make(&next, one, later);
	assert_int_equal(answered(one, &next), SHUNT_REMOTE_OTHER_KEY);
}

static void any_length(void **state)
{
	uint8_t given[200] = { 0 };
	struct remote_question read;
	struct remote_answer heard;

	(void)state;
	speak(one);
	memcpy(given, &answer, answer_bytes);
	for (unsigned int i = 0; i < sizeof(given); i++)
		if (i != SHUNT_REMOTE_ANSWER_BARE && i != answer_bytes)
			assert_int_equal(shunt_remote_answer_read(&heard, one, &question, given, i),
					 SHUNT_REMOTE_SENSELESS);
	memcpy(given, &question, question_bytes);
	for (unsigned int i = 0; i < sizeof(given); i++)
		if (i != SHUNT_REMOTE_QUESTION_BARE && i != question_bytes)
			assert_int_equal(shunt_remote_question_read(&read, one, given, i),
					 SHUNT_REMOTE_SENSELESS);
}

/* An answer whose code somebody has cut off is no answer for who has a key. */
static void no_way_back_to_no_key(void **state)
{
	(void)state;
	speak(one);
	question_bytes = SHUNT_REMOTE_QUESTION_BARE;
	answer_bytes = SHUNT_REMOTE_ANSWER_BARE;
	assert_int_equal(asked(one), SHUNT_REMOTE_OTHER_KEY);
	assert_int_equal(answered(one, &question), SHUNT_REMOTE_OTHER_KEY);
}

static void another_version(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		speak(keys[i]);
		question.version++;
		answer.version++;
		assert_int_equal(asked(keys[i]), SHUNT_REMOTE_OTHER_VERSION);
		assert_int_equal(answered(keys[i], &question), SHUNT_REMOTE_OTHER_VERSION);
	}
}

/* Only the first eight bytes of another version's are known. */
static void another_version_of_any_length(void **state)
{
	uint32_t given[32] = { SHUNT_REMOTE_MAGIC, SHUNT_WIRE_VERSION + 1 };
	struct remote_question read;
	struct remote_answer heard;

	(void)state;
	for (unsigned int i = 0; i <= sizeof(given); i++) {
		enum shunt_remote_sense wanted = i < 8 ? SHUNT_REMOTE_SENSELESS :
							 SHUNT_REMOTE_OTHER_VERSION;

		assert_int_equal(shunt_remote_question_read(&read, one, given, i), wanted);
		assert_int_equal(shunt_remote_answer_read(&heard, one, &question, given, i),
				 wanted);
		assert_int_equal(heard.version, i < 8 ? 0 : SHUNT_WIRE_VERSION + 1);
	}
	answer_bytes = shunt_remote_answer_refuse(&answer, SHUNT_REMOTE_WHY_VERSION);
	answer.version--;
	assert_int_equal(answered(one, &question), SHUNT_REMOTE_OTHER_VERSION);
}

static void a_refusal_says_why(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		speak(keys[i]);
		answer_bytes = shunt_remote_answer_refuse(&answer, SHUNT_REMOTE_WHY_KEY);
		assert_int_equal(answered(keys[i], &question), SHUNT_REMOTE_OTHER_KEY);
		answer_bytes = shunt_remote_answer_refuse(&answer, 77);
		assert_int_equal(answered(keys[i], &question), SHUNT_REMOTE_SENSELESS);
	}
}

static bool is_new(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, SHUNT_SEAL_BYTES) != 0;
}

static void the_channel_of_both(void **state)
{
	uint8_t asker_shows[SHUNT_COOKIE_BYTES], gate_wants[SHUNT_COOKIE_BYTES],
		code[SHUNT_SEAL_BYTES];
	struct shunt_seal asker, answerer;

	(void)state;
	speak(one);
	shunt_remote_words_bind(one, &question, &answer, true, &asker, asker_shows);
	shunt_remote_words_bind(one, &question, &answer, false, &answerer, gate_wants);
	assert_memory_equal(asker_shows, gate_wants, SHUNT_COOKIE_BYTES);
	assert_true(is_new(asker_shows, answer.cookie));	/* who reads the answer cannot show it */
	assert_true(asker.on && answerer.on);
	shunt_seal_make(&asker, "a message", 9, code);
	assert_false(shunt_seal_check(&asker, "a message", 9, code));	/* it is not sent back */
	assert_true(shunt_seal_check(&answerer, "a message", 9, code));
	shunt_seal_make(&answerer, "a message", 9, code);
	assert_true(shunt_seal_check(&asker, "a message", 9, code));
}

/* Nothing of a channel is of use for the next. */
static void each_channel_is_new(void **state)
{
	uint8_t shown[3][SHUNT_COOKIE_BYTES];
	struct shunt_seal seal[3];

	(void)state;
	speak(one);
	shunt_remote_words_bind(one, &question, &answer, true, &seal[0], shown[0]);
	shunt_remote_words_bind(another, &question, &answer, true, &seal[1], shown[1]);
	answer.chance[0] ^= 1;
	shunt_remote_words_bind(one, &question, &answer, true, &seal[2], shown[2]);
	for (int i = 0; i < 3; i++) {
		int j = (i + 1) % 3;

		assert_true(is_new(shown[i], shown[j]));
		assert_true(is_new(seal[i].sending.key, seal[j].sending.key));
		assert_true(is_new(seal[i].receiving.key, seal[j].receiving.key));
		assert_true(is_new(seal[i].sending.key, seal[i].receiving.key));
	}
}

static void without_a_key_the_cookie_is_shown(void **state)
{
	uint8_t shown[SHUNT_COOKIE_BYTES];
	struct shunt_seal seal;

	(void)state;
	speak(NULL);
	shunt_remote_words_bind(NULL, &question, &answer, true, &seal, shown);
	assert_false(seal.on);
	assert_memory_equal(shown, answer.cookie, sizeof(shown));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_understands_whom),
		cmocka_unit_test(they_fit),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(an_answer_is_to_its_question),
		cmocka_unit_test(any_length),
		cmocka_unit_test(no_way_back_to_no_key),
		cmocka_unit_test(another_version_of_any_length),
		cmocka_unit_test(another_version),
		cmocka_unit_test(a_refusal_says_why),
		cmocka_unit_test(the_channel_of_both),
		cmocka_unit_test(each_channel_is_new),
		cmocka_unit_test(without_a_key_the_cookie_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
