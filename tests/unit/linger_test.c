/* SPDX-License-Identifier: MIT */
/* The last look before a sleep, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "core/base/config.h"
#include "core/base/sys.h"
#include "core/fd/thread.h"
#include "core/poll/group.h"
#include "core/poll/linger.h"
#include "core/poll/polling.h"

#define SPIN 50000	/* ns: spin_us here */
#define MOST (3 * SPIN)
#define LOOK 500	/* what a look takes */

static struct shunt_group group;
static struct shunt_config config;
static uint64_t clock_now, away;	/* ns: how long a yield takes */
static int yields;

static uint64_t now(void)
{
	return clock_now;
}

static int yield(void)
{
	yields++;
	clock_now += away;
	return 0;
}

static const struct shunt_sys sys = { .now = now, .yield = yield };

static int setup(void **state)
{
	(void)state;
	memset(&group, 0, sizeof(group));
	memset(&shunt_thread, 0, sizeof(shunt_thread));
	shunt_config_defaults(&config);
	config.spin_us = SPIN / 1000;
	group.config = &config;
	group.sys = &sys;
	clock_now = 1000000;
	away = 300;
	yields = 0;
	return 0;
}

/* Looks until one finds something, or it is over. How many there were; 0: it does not go on. */
static int linger(int found_at)
{
	struct shunt_linger linger;
	bool yielded;
	int looks = 0;

	if (!shunt_linger_begin(&group, &linger))
		return 0;
	while (shunt_linger_on(&group, &linger, &yielded)) {
		clock_now += LOOK;
		if (++looks == found_at) {
			shunt_linger_found(&group);
			break;
		}
	}
	return looks;
}

static void it_is_as_long_as_a_spin(void **state)
{
	uint64_t begun = clock_now;

	(void)state;
	assert_true(linger(-1) > 10);
	assert_in_range(clock_now - begun, MOST, MOST + LOOK + away);
	assert_in_range(yields, 10, MOST / 2000);
	assert_int_equal(group.spins, 1);
	setup(state);
	atomic_store(&group.sleep_cost, 5000);
	begun = clock_now;
	linger(-1);
	assert_in_range(clock_now - begun, 3 * 10000, 3 * 10000 + LOOK + away);
}

/* The core is another's: one look more. */
static void a_long_yield_ends_it(void **state)
{
	(void)state;
	away = SHUNT_YIELD_SHARED + 1;
	assert_in_range(linger(-1), 2, 2000 / LOOK + 2);
	assert_int_equal(yields, 1);
	assert_int_equal(group.spins, 0);	/* and says nothing of whether it pays */
	assert_true(linger(1) == 1);
}

static void in_vain_it_is_rare(void **state)
{
	int went_on = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		went_on += linger(-1) > 0;
		clock_now += 1000000;
		if (shunt_thread.vain_at)
			shunt_linger_slept(&group);
	}
	assert_in_range(went_on, 1000 / 16, 1000 / 16 + 5);
	while (!linger(1))
		;
	assert_int_equal(linger(1), 1);	/* one that has found something is followed by others */
	assert_int_equal(group.spin_hits, 2);
}

/* A sleep that was hardly worth it does not speak against it. */
static void a_short_sleep_is_none(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_true(linger(-1) > 0);
		clock_now += MOST - 2 * LOOK;
		shunt_linger_slept(&group);
	}
}

static void only_where_waits_spin(void **state)
{
	static const bool goes_on[] = { false, false, false, true, true };	/* event, batch, hybrid, busy, adaptive */

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		config.poll = i;
		assert_int_equal(linger(1), goes_on[i]);
	}
	group.single_core = true;
	assert_int_equal(linger(1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(it_is_as_long_as_a_spin, setup),
		cmocka_unit_test_setup(a_long_yield_ends_it, setup),
		cmocka_unit_test_setup(in_vain_it_is_rare, setup),
		cmocka_unit_test_setup(a_short_sleep_is_none, setup),
		cmocka_unit_test_setup(only_where_waits_spin, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
