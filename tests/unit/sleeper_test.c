/* SPDX-License-Identifier: MIT */
/* Sleepers and their leader, several CQs, devices that close, and what is counted, on a scripted device (polling_bed.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/poll/devices.h"
#include "core/poll/sleeper.h"
#include "tests/unit/polling_bed.h"

/* --- two sleepers (PF-35) --- */

static void fall_asleep(struct shunt_sleeper *sleeper, int fd)
{
	struct shunt_group *group = &engine.group;

	*sleeper = (struct shunt_sleeper) { .kick_fd = fd };
	shunt_lock_take(&group->lock);
	shunt_sleeper_enter(&engine.group, sleeper);
	if (sleeper->leader)
		shunt_group_arm(&engine.group);
	shunt_group_poll_locked(&engine.group);
	shunt_sleeper_begin(&engine.group, sleeper, false);
	shunt_lock_leave(&group->lock);
}

/* The leader is woken, or will be by the next completion, or by one that is there. */
static void leader_is_safe(const struct shunt_sleeper *leader)
{
	bool armed = cqs[0].armed || event_waits();

	assert_true(!leader->asleep || (armed && (!left_in_cqs() || event_waits())));
}

static void event_taken_by_another(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		for (int there = 1; there < 700; there += 13) {
			for (uint64_t moment = 0; moment < 30; moment++) {
				struct shunt_sleeper leader, other;

				make(mode);
				fall_asleep(&leader, 1);
				fall_asleep(&other, 2);
				assert_true(leader.leader && leader.asleep && other.asleep);
				for (int i = 0; i < there; i++)
					put(0, 1);
				race_moment = moment ? moments + moment : 0;
				shunt_group_hear(&engine.group);	/* by a third thread */
				leader_is_safe(&leader);
				race_moment = 0;
				put(0, 0);
				assert_true(!leader.asleep || event_waits());
			}
		}
	}
}

/* --- several CQs (RB-18, PF-34) --- */

static void all_are_armed(void **state)
{
	struct shunt_sleeper leader;

	(void)state;
	make(HYBRID);
	engine.group.cqs.count = 5;
	fall_asleep(&leader, 1);
	for (int i = 0; i < 5; i++)
		assert_true(cqs[i].armed);
	assert_int_equal(engine.group.arms, 1);
	put(3, 0);
	put(4, 1);
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.events, 2);
	assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
	assert_int_equal(stream_offset(&streams[1], STREAM_ARRIVED), 1);
}

/* A CQ that is never empty does not keep the others waiting. */
static void none_starves(void **state)
{
	(void)state;
	for (int mode = EVENT; mode <= ADAPTIVE; mode++) {
		for (int quiet = 1; quiet < 4; quiet++) {
			make(mode);
			engine.group.cqs.count = 4;
			cqs[0].waiting[1] = 100000;
			cqs[quiet].waiting[0] = 1;
			for (int i = 0; i < 4; i++)
				shunt_group_poll(&engine.group);
			assert_int_equal(stream_offset(&streams[0], STREAM_ARRIVED), 1);
		}
	}
}

static void lanes_take_turns(void **state)
{
	(void)state;
	make(ADAPTIVE);
	engine.group.cqs.count = 3;
	for (int i = 0; i < SHUNT_CQS_MAX; i++)
		engine.group.cqs.room[i] = 3;
	for (int i = 0; i < 9; i++) {
		assert_ptr_equal(shunt_devices_cq(&engine.group, &engine.group.devices[SHUNT_SOFT]),
				 &cqs[i % 3].ibv);
		engine.group.cqs.lanes[i % 3]++;
	}
	/* No more than they have room for, and no CQ is to be had beside them. */
	engine.group.cqs.count = SHUNT_CQS_MAX;
	for (int i = 3; i < SHUNT_CQS_MAX; i++)
		engine.group.cqs.lanes[i] = 3;
	assert_null(shunt_devices_cq(&engine.group, &engine.group.devices[SHUNT_SOFT]));
}

/* --- the devices close, and open again --- */

static int destroyed, closed;

static int destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	destroyed++;
	return 0;
}

static void free_channel(struct shunt_device *device)
{
	(void)device;
}

static void close_device(struct shunt_device *device)
{
	(void)device;
	closed++;
}

static bool is_zero(const void *memory, size_t bytes)
{
	const uint8_t *byte = memory;

	while (bytes && !*byte)
		byte++, bytes--;
	return !bytes;
}

/* The next device may have fewer CQs than the turn, and none of its lanes has a place in a list of before. */
static void a_closed_device_leaves_nothing(void **state)
{
	const struct shunt_device_kind kind = { .free_channel = free_channel, .close = close_device };
	struct shunt_device *device = &engine.group.devices[SHUNT_SOFT];
	struct shunt_verbs closing = verbs;

	(void)state;
	make(HYBRID);
	closing.destroy_cq = destroy_cq;
	device->verbs = &closing;
	device->kind = &kind;
	device->closed_until = 7;
	engine.group.cqs.count = 5;
	for (int i = 0; i < 5; i++)
		engine.group.cqs.lanes[i] = 3;
	cqs[0].waiting[1] = 1000;
	engine.config.poll_batch = 1;
	shunt_group_poll(&engine.group);
	assert_true(engine.group.polled.turn && engine.group.polled.more);
	destroyed = closed = 0;
	shunt_devices_close(&engine.group);
	assert_int_equal(destroyed, 5);
	assert_int_equal(closed, 1);
	assert_false(engine.group.open || device->open);
	assert_true(is_zero(&engine.group.cqs, sizeof(engine.group.cqs)));
	assert_true(is_zero(&engine.group.polled, sizeof(engine.group.polled)));
	assert_int_equal(device->closed_until, 7);
	device->closed_until = 0;
	assert_true(is_zero(device, sizeof(*device)));
	/* Counters go on. */
	assert_true(engine.group.polls && engine.group.completions);
}

/* --- what is counted --- */

static void counters_are_exact(void **state)
{
	(void)state;
	make(EVENT);
	load(20, 200000, 1, 0, 1, 0);
	receive_all();
	assert_int_equal(engine.group.completions, 20);
	assert_int_equal(engine.group.events, 20);
	assert_int_equal(engine.group.arms, 20);
	assert_int_equal(engine.group.sleeps, sleeps);
	assert_int_equal(engine.group.polls, 40);	/* after each arming, after each event */
	assert_int_equal(engine.group.empty_polls, 20);
	assert_int_equal(engine.group.spins + engine.group.spin_hits, 0);
}

static void one_wake_up_is_bounded(void **state)
{
	(void)state;
	make(BATCH);
	engine.config.poll_batch = 8;
	cqs[0].waiting[1] = 20;
	cqs[0].fired = true;
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.completions, 8);
	make(EVENT);
	cqs[0].waiting[1] = 200;	/* of the 256 that it holds */
	cqs[0].fired = true;
	shunt_group_hear(&engine.group);
	assert_int_equal(engine.group.completions, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_taken_by_another),
		cmocka_unit_test(all_are_armed),
		cmocka_unit_test(none_starves),
		cmocka_unit_test(lanes_take_turns),
		cmocka_unit_test(a_closed_device_leaves_nothing),
		cmocka_unit_test(counters_are_exact),
		cmocka_unit_test(one_wake_up_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
