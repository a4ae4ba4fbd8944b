/* SPDX-License-Identifier: MIT */
/* The ring of slow steps: what it keeps, what it counts, many writers at once, and its JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/address.h"
#include "core/base/json.h"
#include "core/base/lsan.h"
#include "core/base/config.h"
#include "core/trace/slow_step.h"

#define THREADS 4
#define EACH 20000

static shunt_slow_log ring;

static int clear(void **state)
{
	struct shunt_slow_ring *old = atomic_exchange(&ring, NULL);

	(void)state;
	if (old)
		shunt_lsan_unmap(old, sizeof(*old));
	return 0;
}

static struct shunt_slow_event event_of(enum shunt_step step, uint64_t value)
{
	return (struct shunt_slow_event){ .at = value, .duration = 2 * value, .extra = 3 * value,
					  .step = step, .fd = (int)(value % 100) };
}

static void note(enum shunt_step step, uint64_t value)
{
	struct shunt_slow_event event = event_of(step, value);

	shunt_slow_note(&ring, &event);
}

static json_t *as_json(uint64_t after)
{
	struct shunt_json json;
	json_t *root;
	size_t bytes;
	char *text;

	shunt_json_begin(&json);
	shunt_json_put(&json, "{");
	shunt_slow_json(&ring, after, &json);
	shunt_json_put(&json, "}");
	text = shunt_json_end(&json, &bytes);
	assert_non_null(text);
	root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

static uint64_t number(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void nothing_is_there(void **state)
{
	struct shunt_slow_event event;
	json_t *root = as_json(0);

	(void)state;
	assert_null(atomic_load(&ring));
	assert_false(shunt_slow_get(&ring, 1, &event));
	assert_int_equal(shunt_slow_steps(&ring), 0);
	assert_int_equal(json_array_size(json_object_get(root, "steps")), SHUNT_STEPS);
	assert_int_equal(json_array_size(json_object_get(root, "events")), 0);
	json_decref(root);
}

static void the_last_are_kept(void **state)
{
	struct shunt_slow_event event;
	json_t *root, *events;

	(void)state;
	for (uint64_t i = 1; i <= SHUNT_SLOW_KEPT + 10; i++)
		note(SHUNT_STEP_ROOM, i);
	assert_false(shunt_slow_get(&ring, 0, &event));
	assert_false(shunt_slow_get(&ring, 10, &event));
	assert_true(shunt_slow_get(&ring, 11, &event));
	assert_int_equal(event.number, 11);
	assert_int_equal(event.at, 11);
	assert_int_equal(event.duration, 22);
	assert_int_equal(event.extra, 33);
	assert_int_equal(event.fd, 11);
	assert_false(event.addressed);
	assert_false(shunt_slow_get(&ring, SHUNT_SLOW_KEPT + 11, &event));
	root = as_json(0);
	events = json_object_get(root, "events");
	assert_int_equal(json_array_size(events), SHUNT_SLOW_KEPT);
	assert_int_equal(number(json_array_get(events, 0), "number"), 11);
	assert_int_equal(number(root, "last"), SHUNT_SLOW_KEPT + 10);
	assert_int_equal(number(root, "lost"), 0);
	json_decref(root);
	root = as_json(SHUNT_SLOW_KEPT + 8);
	assert_int_equal(json_array_size(json_object_get(root, "events")), 2);
	json_decref(root);
}

static void an_event_says_its_stream(void **state)
{
	struct shunt_slow_event event = event_of(SHUNT_STEP_POLL, 7);
	json_t *root, *only;

	(void)state;
	memcpy(event.tuple.local, (const uint8_t[]){ SHUNT_ADDRESS_V4, 127, 0, 0, 1 }, 16);
	event.tuple.peer[15] = 1;
	event.tuple.local_port = htons(80);
	event.tuple.peer_port = htons(4000);
	event.addressed = true;
	shunt_slow_note(&ring, &event);
	event.step = SHUNT_STEP_FAILOVER;
	event.fd = -1;
	event.addressed = false;
	shunt_slow_note(&ring, &event);
	root = as_json(0);
	only = json_array_get(json_object_get(root, "events"), 0);
	assert_string_equal(json_string_value(json_object_get(only, "kind")), "poll_gap");
	assert_string_equal(json_string_value(json_object_get(only, "local")), "127.0.0.1:80");
	assert_string_equal(json_string_value(json_object_get(only, "peer")), "[::1]:4000");
	assert_int_equal(number(only, "fd"), 7);
	only = json_array_get(json_object_get(root, "events"), 1);
	assert_string_equal(json_string_value(json_object_get(only, "kind")), "slow_step");
	assert_string_equal(json_string_value(json_object_get(only, "step")), "failover");
	assert_null(json_object_get(only, "fd"));
	assert_null(json_object_get(only, "local"));
	json_decref(root);
	assert_int_equal(shunt_slow_count(&ring, SHUNT_STEP_POLL), 1);
	assert_int_equal(shunt_slow_steps(&ring), 1);
}

static void the_longest_is_known(void **state)
{
	json_t *root, *room;

	(void)state;
	note(SHUNT_STEP_ROOM, 5);
	note(SHUNT_STEP_ROOM, 9);
	note(SHUNT_STEP_ROOM, 7);
	root = as_json(0);
	room = json_array_get(json_object_get(root, "steps"), SHUNT_STEP_ROOM);
	assert_string_equal(json_string_value(json_object_get(room, "step")), "room");
	assert_int_equal(number(room, "count"), 3);
	assert_int_equal(number(room, "longest_ns"), 18);
	json_decref(root);
}

/* A writer that was overtaken keeps its slot: the other event is counted, and lost. */
static void a_slot_in_use_is_left_alone(void **state)
{
	struct shunt_slow_event event;
	json_t *root;

	(void)state;
	note(SHUNT_STEP_ROOM, 1);
	atomic_store(&atomic_load(&ring)->slot[2].state, UINT64_MAX);
	note(SHUNT_STEP_ROOM, 2);
	note(SHUNT_STEP_ROOM, 3);
	assert_false(shunt_slow_get(&ring, 2, &event));
	assert_true(shunt_slow_get(&ring, 3, &event));
	root = as_json(0);
	assert_int_equal(number(root, "lost"), 1);
	assert_int_equal(json_array_size(json_object_get(root, "events")), 2);
	json_decref(root);
	assert_int_equal(shunt_slow_count(&ring, SHUNT_STEP_ROOM), 3);
}

static void *write_many(void *arg)
{
	for (uint64_t i = 0; i < EACH; i++)
		note(SHUNT_STEP_CLAIM, (uint64_t)(uintptr_t)arg + THREADS * i);
	return NULL;
}

/* No event is a mixture of two. */
static void many_write_at_once(void **state)
{
	pthread_t threads[THREADS];
	struct shunt_slow_event event;
	uint64_t seen = 0;

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
	for (uint64_t n = 0; n < 2 * EACH; n++)
		if (shunt_slow_get(&ring, n, &event)) {
			assert_int_equal(event.duration, 2 * event.at);
			assert_int_equal(event.extra, 3 * event.at);
			assert_int_equal(event.fd, event.at % 100);
		}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t n = 1; n <= THREADS * EACH; n++)
		if (shunt_slow_get(&ring, n, &event)) {
			assert_int_equal(event.duration, 2 * event.at);
			assert_int_equal(event.extra, 3 * event.at);
			seen++;
		}
	assert_int_equal(shunt_slow_count(&ring, SHUNT_STEP_CLAIM), THREADS * EACH);
	assert_in_range(seen, 1, SHUNT_SLOW_KEPT);
}

/* --- timing --- */

static uint64_t time_now;
static struct shunt_steps steps;	/* LeakSanitizer shall find its ring */

static uint64_t now(void)
{
	return time_now;
}

static void only_long_steps_are_noted(void **state)
{
	static const struct shunt_sys sys = { .now = now };
	struct shunt_config config;
	uint64_t begun;

	(void)state;
	shunt_config_defaults(&config);
	time_now = 1000000;
	steps = (struct shunt_steps){ .sys = &sys, .config = &config };
	assert_int_equal(shunt_slow_begin(&steps), 0);
	config.slow_us = 10;
	for (int step = 0; step < 3; step++) {
		begun = shunt_slow_begin(&steps);
		time_now += 9999 + step;
		shunt_slow_end(&steps, begun, .step = SHUNT_STEP_REGISTER, .fd = -1, .extra = 4);
	}
	assert_int_equal(shunt_slow_count(&steps.log, SHUNT_STEP_REGISTER), 2);
	begun = shunt_slow_begin(&steps);
	time_now += 1000000;
	config.slow_us = 0;	/* switched off meanwhile */
	shunt_slow_end(&steps, begun, .step = SHUNT_STEP_REGISTER, .fd = -1);
	assert_int_equal(shunt_slow_count(&steps.log, SHUNT_STEP_REGISTER), 2);
}

#define TEST(function) cmocka_unit_test_setup(function, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_there),
		TEST(the_last_are_kept),
		TEST(an_event_says_its_stream),
		TEST(the_longest_is_known),
		TEST(a_slot_in_use_is_left_alone),
		TEST(many_write_at_once),
		TEST(only_long_steps_are_noted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
