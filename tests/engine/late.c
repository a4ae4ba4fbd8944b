/* SPDX-License-Identifier: MIT */
/*
 * Gaps between polls and slow steps (core/poll/gap.h, core/trace/slow.h): two engines in one thread,
 * and a clock that the tests move.
 */
#include "tests/engine/bed.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "core/admin/command.h"
#include "core/base/answer.h"
#include "core/device/soft/soft.h"
#include "core/poll/sleeper.h"
#include "core/trace/slow.h"

#define MS 1000000ull
#define WARN_MS 2
#define LONG_MS 5

/* Each work request asks for a completion, and the clock stands. */
static void make(uint64_t warn_us, uint64_t slow_us)
{
	struct shunt_config config = small_config(HYBRID);
	int on = 1;

	config.signal_every = 1;
	freeze_clock(false);
	make_bed(&config, 1);
	for (int side = 0; side < 2; side++)
		setsockopt(bed.pair[0].side[side].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	drain();
	freeze_clock(true);
	/* Now, because a busy machine is slow for itself before. */
	for (int i = 0; i < 2; i++) {
		engines[i]->config.poll_warn_us = warn_us;
		engines[i]->config.slow_us = slow_us;
	}
	turn();
}

static void pass(uint64_t ms)
{
	pair_skew += ms * MS;
}

static uint64_t count(int i, enum shunt_step step)
{
	return shunt_slow_count(&engines[i]->steps.log, step);
}

static uint64_t gaps(int i)
{
	return count(i, SHUNT_STEP_POLL);
}

static struct shunt_slow_event newest(int i)
{
	struct shunt_slow_event event = { .number = 0 };
	uint64_t number = 0;

	while (shunt_slow_get(&engines[i]->steps.log, number + 1, &event))
		number++;
	assert_int_not_equal(number, 0);
	return event;
}

static void finish(void)
{
	freeze_clock(false);
	end_bed();
}

/* --- gaps --- */

static void arrived_bytes_wait(void **state)
{
	struct shunt_stream *stream;
	struct shunt_slow_event event;
	uint64_t before;

	(void)state;
	make(WARN_MS * 1000, 0);
	stream = stream_of(&bed.pair[0].side[1]);
	before = gaps(1);
	put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), before + 1);
	event = newest(1);
	assert_int_equal(event.step, SHUNT_STEP_POLL);
	assert_int_equal(event.duration, LONG_MS * MS);
	assert_int_equal(event.fd, bed.pair[0].side[1].fd);
	assert_true(event.addressed);
	assert_memory_equal(&event.tuple, &stream->tuple, sizeof(event.tuple));
	assert_int_equal(event.extra, 1);
	assert_int_equal(counted(1, "poll_gaps"), before + 1);
	assert_int_equal(counted(1, "slow_steps"), 0);
	finish();
}

/* One event for a poll, whatever it finds; none for a short gap. */
static void a_gap_is_told_once(void **state)
{
	uint64_t before;

	(void)state;
	make(WARN_MS * 1000, 0);
	before = gaps(1);
	for (int n = 0; n < 10; n++)
		put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_int_equal(gaps(1), before + 1);
	put(0, 0, 100, 0);
	pass(WARN_MS - 1);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), before + 1);
	finish();
}

/* A process that polls nothing for long has no gap as long as nothing has arrived. */
static void idleness_is_no_gap(void **state)
{
	uint64_t before[2];

	(void)state;
	make(WARN_MS * 1000, 0);
	for (int i = 0; i < 2; i++)
		before[i] = gaps(i);
	pass(1000);
	turn();
	put(0, 0, 100, 0);
	get(0, 0, BUFFER);
	/* Completions of sends and credit are nothing that a program reads. */
	for (int n = 0; n < 100; n++) {
		put(0, 0, 4000, 0);
		get(0, 0, BUFFER);
	}
	pass(LONG_MS);
	shunt_group_poll_fully(&engines[0]->group);
	for (int i = 0; i < 2; i++)
		assert_int_equal(gaps(i), before[i]);
	finish();
}

/* An arrival would have woken it. */
static void a_sleeping_thread_is_no_gap(void **state)
{
	struct shunt_sleeper sleeper = { .kick_fd = -1 };
	struct shunt_group *group;
	uint64_t before;

	(void)state;
	make(WARN_MS * 1000, 0);
	group = &engines[1]->group;
	before = gaps(1);
	shunt_lock_take(&group->lock);
	shunt_sleeper_enter(&engines[1]->group, &sleeper);
	shunt_lock_leave(&group->lock);
	pass(LONG_MS);
	put(0, 0, 100, 0);
	shunt_lock_take(&group->lock);
	shunt_sleeper_leave(&engines[1]->group, &sleeper);
	shunt_lock_leave(&group->lock);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), before);
	/* The program is awake again. */
	put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), before + 1);
	finish();
}

static void say(int i, const char *line)
{
	struct shunt_answer answer = { .length = 0 };

	assert_int_equal(shunt_command_run(engines[i], line, strlen(line), &answer), 0);
	shunt_answer_end(&answer);
}

/* Polls between were not timed, so nothing is known of them. */
static void it_is_switched_while_it_runs(void **state)
{
	(void)state;
	make(0, 0);
	put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), 0);
	put(0, 0, 100, 0);
	pass(LONG_MS);
	say(1, "set poll_warn_us 2000");
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), 0);
	put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), 1);
	say(1, "set poll_warn_us 0");
	put(0, 0, 100, 0);
	pass(LONG_MS);
	assert_int_equal(get(0, 0, BUFFER), 100);
	say(1, "set poll_warn_us 2000");
	put(0, 0, 100, 0);
	assert_int_equal(get(0, 0, BUFFER), 100);
	assert_int_equal(gaps(1), 1);
	finish();
}

/* --- steps --- */

static void a_device_that_carries_nothing_out(void **state)
{
	struct shunt_slow_event event;

	(void)state;
	make(0, 1000);
	assert_int_equal(count(0, SHUNT_STEP_COMPLETION), 0);
	stall(true);
	put(0, 0, 100, 0);
	pass(LONG_MS);
	turn();
	pass(1);
	stall(false);
	all_arrived();
	assert_int_equal(count(0, SHUNT_STEP_COMPLETION), 1);
	event = newest(0);
	assert_int_equal(event.step, SHUNT_STEP_COMPLETION);
	assert_int_equal(event.duration, LONG_MS * MS);	/* and not the last one, when nothing polled */
	assert_int_equal(event.extra, bed.lane[0]->link->peer_pid);
	assert_int_equal(event.fd, -1);
	assert_false(event.addressed);
	finish();
}

/* The device was quick: nothing has polled. */
static void a_completion_that_waits_is_not_slow(void **state)
{
	(void)state;
	make(0, 1000);
	turn();
	put(0, 0, 100, 0);
	pass(LONG_MS);
	all_arrived();
	assert_int_equal(count(0, SHUNT_STEP_COMPLETION), 0);
	finish();
}

static void a_claim_takes_long(void **state)
{
	struct shunt_slow_event event;
	uint64_t before;

	(void)state;
	make(0, 1000);
	before = count(0, SHUNT_STEP_CLAIM);
	connect_pair(&bed.pair[1]);
	put(1, 0, 1, 0);
	shunt_service_step(engines[0], 0);
	pass(LONG_MS);
	warm(1);
	bed.pairs = 2;
	assert_int_equal(count(0, SHUNT_STEP_CLAIM), before + 1);
	for (uint64_t number = 1; shunt_slow_get(&engines[0]->steps.log, number, &event); number++)
		if (event.step == SHUNT_STEP_CLAIM && event.fd == bed.pair[1].side[0].fd)
			break;
	assert_int_equal(event.fd, bed.pair[1].side[0].fd);
	assert_int_equal(event.duration, LONG_MS * MS);
	finish();
}

static void dawdle(struct shunt_task *task)
{
	(void)task;
	pass(LONG_MS);
}

static void a_handler_takes_long(void **state)
{
	static struct shunt_task task;
	char *text, line[32];
	struct shunt_answer answer = { .length = 0 };
	uint64_t before;

	(void)state;
	make(0, 1000);
	before = count(0, SHUNT_STEP_SERVICE);
	shunt_loop_enlist(&engines[0]->loop, "dawdle", &task, dawdle, false);
	shunt_loop_post(&engines[0]->loop, &task);
	turn();
	assert_int_equal(count(0, SHUNT_STEP_SERVICE), before + 1);
	assert_int_equal(newest(0).duration, LONG_MS * MS);
	assert_int_equal(shunt_command_run(engines[0], "log", 3, &answer), 0);
	text = answer.more;
	assert_non_null(text);
	assert_non_null(strstr(text, "\"duration_ns\":5000000,\"handler\":\"dawdle\"}"));
	assert_non_null(strstr(text, "\"slow_us\":1000"));
	shunt_answer_end(&answer);
	snprintf(line, sizeof(line), "log %d", (int)newest(0).number);
	assert_int_equal(shunt_command_run(engines[0], line, strlen(line), &answer), 0);
	assert_non_null(strstr(answer.more, "\"events\":[]"));
	shunt_answer_end(&answer);
	assert_int_not_equal(shunt_command_run(engines[0], "log x", 5, &answer), 0);
	shunt_answer_end(&answer);
	task.run = NULL;
	finish();
}

static void a_failover_takes_long(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.retain = 1;
	config.return_ms = 0;
	config.slow_us = 1000;
	freeze_clock(false);
	make_bed(&config, 1);
	freeze_clock(true);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_KILL);
	put(0, 0, 10, 0);
	for (int n = 0; n < 100 && !count(0, SHUNT_STEP_FAILOVER); n++) {
		shunt_service_step(engines[0], 0);
		shunt_group_poll_fully(&engines[0]->group);
		pass(1);
		shunt_service_step(engines[1], 0);
	}
	assert_int_equal(count(0, SHUNT_STEP_FAILOVER), 1);
	freeze_clock(false);
	all_arrived();
	leave_bed();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrived_bytes_wait),
		cmocka_unit_test(a_gap_is_told_once),
		cmocka_unit_test(idleness_is_no_gap),
		cmocka_unit_test(a_sleeping_thread_is_no_gap),
		cmocka_unit_test(it_is_switched_while_it_runs),
		cmocka_unit_test(a_device_that_carries_nothing_out),
		cmocka_unit_test(a_completion_that_waits_is_not_slow),
		cmocka_unit_test(a_claim_takes_long),
		cmocka_unit_test(a_handler_takes_long),
		cmocka_unit_test(a_failover_takes_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
