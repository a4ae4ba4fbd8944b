/* SPDX-License-Identifier: MIT */
/* The modes of polling, in real waits on a scripted device (polling_bed.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/polling_bed.h"

/* --- three loads (RB-E2) --- */

static const struct {
	const char *name;
	int clusters, messages;
	uint64_t spacing;
} loads[] = { { "small", 50, 1, 0 }, { "medium", 50, 40, 1000 }, { "large", 20, 200, 400 } };

static uint64_t events_of(int mode, int l)
{
	make(mode);
	load(loads[l].clusters, 200000, 1, 0, loads[l].messages, loads[l].spacing);
	receive_all();
	return engine.group.events;
}

static void three_loads(void **state)
{
	(void)state;
	for (int l = 0; l < 3; l++) {
		uint64_t event = events_of(EVENT, l), batch = events_of(BATCH, l);
		uint64_t hybrid = events_of(HYBRID, l), adaptive = events_of(ADAPTIVE, l);

		print_message("%s: event %lu batch %lu hybrid %lu adaptive %lu\n", loads[l].name, event, batch,
			      hybrid, adaptive);
		assert_true(adaptive <= hybrid);
		assert_true(hybrid <= batch);
		assert_true(hybrid <= event);
		assert_int_equal(events_of(BUSY, l), 0);
		assert_int_equal(sleeps, 0);
		if (loads[l].messages == 1) {
			assert_int_equal(event, loads[l].clusters);
			assert_int_equal(batch, loads[l].clusters);
		}
	}
}

/* It gives up a core that others want as well, and has it again when they want it no longer. */
static void busy_shares_the_core(void **state)
{
	int shared;

	(void)state;
	make(BUSY);
	load(50, 200000, 1, 0, 1, 0);
	others_ns = 20000;
	receive_all();
	shared = sleeps;
	assert_in_range(shared, 40, 50);	/* a wait spins seldom, and sleeps all the same */
	assert_in_range(engine.group.backoffs, 1, 10);
	others_ns = 0;
	arrival_count = arrived = 0;
	for (int i = 0; i < 200; i++)
		arrive(clock_now - 1000000 + 20000 * (uint64_t)(i + 1), 0, 0);
	for (int i = 0; i < 200; i++) {
		if (i == 100)
			sleeps = 0;
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		stream_take_all(&streams[0]);
	}
	assert_int_equal(sleeps, 0);
}

/* One event a train where its gaps are shorter than the hook, perhaps two (the miss before it skips a spin). */
static void gaps(void **state)
{
	(void)state;
	make(ADAPTIVE);
	load(10, 1000000, 20, 5000, 2, 10);
	receive_all();
	assert_in_range(engine.group.events, 10, 20);
	make(ADAPTIVE);
	load(10, 1000000, 20, 100000, 2, 10);
	receive_all();
	assert_int_equal(engine.group.events, 200);
	assert_true(engine.group.backoffs > 0);
}

/* --- the hook --- */

static void no_retry_is_hybrid(void **state)
{
	uint64_t events, arms, polls;

	(void)state;
	for (int l = 0; l < 3; l++) {
		events_of(HYBRID, l);
		events = engine.group.events, arms = engine.group.arms, polls = engine.group.polls;
		make(ADAPTIVE);
		engine.config.poll_retry = 0;
		load(loads[l].clusters, 200000, 1, 0, loads[l].messages, loads[l].spacing);
		receive_all();
		assert_int_equal(engine.group.events, events);
		assert_int_equal(engine.group.arms, arms);
		assert_int_equal(engine.group.polls, polls);
		assert_int_equal(engine.group.spins + engine.group.spin_hits, 0);
	}
}

static void endless_retry_is_busy(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.config.spin_us = 1000000;
	engine.config.poll_retry = UINT64_MAX;
	load(50, 200000, 1, 0, 3, 10);
	receive_all();
	assert_int_equal(sleeps, 0);
	assert_int_equal(engine.group.arms, 0);
}

/* The polls of a wait whose own message comes after so many others that each comes within the hook. */
static void success_resets_the_hook(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.config.poll_retry = 10;
	for (int i = 1; i <= 9; i++)
		arrive(i * 8 * POLL_NS, 0, i < 9);
	shunt_thread_begin();
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
	assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
	assert_int_equal(sleeps, 0);
	assert_int_equal(engine.group.spin_hits, 1);
	/* And ends after ten fruitless ones. */
	make(ADAPTIVE);
	engine.config.poll_retry = 10;
	arrive(20 * POLL_NS, 0, 0);
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
	assert_int_equal(sleeps, 1);
	assert_int_equal(engine.group.spins, 1);
}

/* How long a fruitless wait polls before it sleeps. */
static uint64_t spin_time(void)
{
	arrive(10000000, 0, 0);
	shunt_spin_begin(&engine.group, &(struct shunt_spin) { 0 }, SHUNT_NEVER);
	memset(&shunt_thread, 0, sizeof(shunt_thread));
	clock_now = 1000000;
	for (struct shunt_spin spin = { 0 }; ; ) {
		int n = 0;

		if (!shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER))
			return 0;
		while (shunt_spin_on(&engine.group, &spin, n))
			n = shunt_group_poll(&engine.group);
		return clock_now - 1000000;
	}
}

static void what_a_sleep_costs_bounds_it(void **state)
{
	(void)state;
	make(ADAPTIVE);
	assert_in_range(spin_time(), 25000, 26000);
	make(ADAPTIVE);
	engine.group.sleep_cost = 4000;
	assert_in_range(spin_time(), 8000, 9000);
	make(ADAPTIVE);
	engine.group.sleep_cost = 40000;
	assert_in_range(spin_time(), 25000, 26000);
	make(ADAPTIVE);
	engine.group.single_core = true;
	assert_int_equal(spin_time(), 0);
	make(BUSY);
	engine.group.single_core = true;
	assert_int_equal(spin_time(), 0);
}

/* The next wait that spins finds what it waits for after so long; how many waits do not spin then. */
static uint32_t skips_after(uint64_t ns)
{
	struct shunt_spin spin;

	shunt_thread.spins.skip = 0;
	assert_true(shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER));
	assert_true(shunt_spin_look(&engine.group, &spin));
	pass(ns);
	assert_false(shunt_spin_end(&engine.group, &spin, true));
	return shunt_thread.spins.skip;
}

/*
 * Somebody else had the core while the thread span: what it found then is no reason to spin again. Once may have been an
 * interrupt, and costs few waits their spin; again and again is a machine with too few cores.
 */
static void displaced(void **state)
{
	const uint32_t skips[] = { 7, 63, 511, 1023, 1023 };
	struct shunt_spin spin;

	(void)state;
	make(ADAPTIVE);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(skips_after(4000000), skips[i]);
		assert_int_equal(engine.group.spin_hits, i + 1);
		assert_int_equal(engine.group.backoffs, i + 1);
		assert_false(shunt_spin_begin(&engine.group, &spin, SHUNT_NEVER));
	}
	assert_int_equal(skips_after(1000), 0);
	assert_int_equal(skips_after(4000000), 7);
}

/* One wait of the program: so long, and its message comes after so long; 0: none does. True: it slept. */
static bool sleeps_in(uint64_t patience, uint64_t comes)
{
	int before = sleeps;

	if (comes)
		arrive(clock_now - 1000000 + comes, 0, 0);
	shunt_thread_begin();
	shunt_wait_stream(&streams[0], EPOLLIN, clock_now + patience);
	stream_take_all(&streams[0]);
	return sleeps > before;
}

/*
 * A program pauses for less than a spin between a request and the next. Its pauses are no reason to
 * sleep in the waits for the answers. One that only pauses, and finds nothing, is.
 */
static void short_pauses(void **state)
{
	int spinning = 0;

	(void)state;
	make(ADAPTIVE);
	for (int i = 0; i < 100; i++) {
		sleeps_in(10000, 0);
		assert_false(sleeps_in(SHUNT_NEVER - clock_now, 5000));
	}
	assert_int_equal(engine.group.backoffs, 0);
	for (int i = 0; i < 1000; i++) {
		uint64_t before = engine.group.spins;

		sleeps_in(10000, 0);
		spinning += engine.group.spins > before;
	}
	assert_in_range(spinning, 16, 40);
	/* One that waits for longer than it may spin is told nothing new. */
	make(ADAPTIVE);
	sleeps_in(100000, 0);
	assert_int_equal(engine.group.backoffs, 1);
}

static void timeouts_hold(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		uint64_t deadline;

		make(mode);
		deadline = clock_now + 300000;
		while (shunt_wait_stream(&streams[0], EPOLLIN, deadline) != -EAGAIN)
			;
		assert_in_range(clock_now, deadline, deadline + 2000);
	}
}

/* A signal ends a wait that polls. */
static void signals_end_it(void **state)
{
	(void)state;
	make(BUSY);
	shunt_thread.signalled = SHUNT_SIGNAL_BREAKS;
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), -EINTR);
}

/* Where polling would not see it, busy sleeps too. */
static void busy_sleeps_for_the_kernel(void **state)
{
	(void)state;
	make(BUSY);
	stream_make(&streams[0], &seats[0], &lane, false);
	arrive(1000000, 0, 0);
	assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, clock_now + 100000), 0);
	assert_int_equal(sleeps, 1);
}

/* --- the race between the empty poll and the arming --- */

static void race_at(int mode, uint64_t moment)
{
	make(mode);
	engine.config.spin_us = 2;
	race_moment = moment;
	while (!stream_offset(&streams[0], STREAM_ARRIVED)) {
		shunt_thread_begin();
		assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN, SHUNT_NEVER), 0);
		assert_int_equal(hang_ups && moments >= race_moment, 0);
		if (hang_ups)
			pass(0);	/* it slept before the moment came */
		hang_ups = 0;
	}
}

static void never_slept_over(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++)
		for (uint64_t moment = 1; moment < 120; moment++)
			race_at(mode, moment);
}

/* Our own is there when the CQ is armed, behind more than one poll takes. */
static void never_slept_over_behind_others(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++)
		for (int before = 0; before < 600; before += 7) {
			make(mode);
			engine.config.poll_retry = 0;
			cqs[0].waiting[1] = before;
			cqs[0].waiting[0] = 1;
			while (!stream_offset(&streams[0], STREAM_ARRIVED)) {
				shunt_thread_begin();
				assert_int_equal(shunt_wait_stream(&streams[0], EPOLLIN,
								   SHUNT_NEVER), 0);
				assert_int_equal(hang_ups, 0);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_loads),
		cmocka_unit_test(busy_shares_the_core),
		cmocka_unit_test(gaps),
		cmocka_unit_test(no_retry_is_hybrid),
		cmocka_unit_test(endless_retry_is_busy),
		cmocka_unit_test(success_resets_the_hook),
		cmocka_unit_test(what_a_sleep_costs_bounds_it),
		cmocka_unit_test(displaced),
		cmocka_unit_test(short_pauses),
		cmocka_unit_test(timeouts_hold),
		cmocka_unit_test(signals_end_it),
		cmocka_unit_test(busy_sleeps_for_the_kernel),
		cmocka_unit_test(never_slept_over),
		cmocka_unit_test(never_slept_over_behind_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
