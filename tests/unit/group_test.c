/* SPDX-License-Identifier: MIT */
/* The leader of the sleeping threads, and the waiter of a completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/engine.h"
#include "core/lane/lane.h"
#include "core/lane/roster.h"
#include "core/poll/sleeper.h"

static int kicked[8];

static ssize_t note_kick(int fd, const void *buffer, size_t bytes)
{
	(void)buffer;
	kicked[fd]++;
	return bytes;
}

static uint64_t no_time(void)
{
	return 1;
}

static const struct shunt_sys sys = { .write = note_kick, .now = no_time };

struct bed {	/* an engine with a device, and three sleepers; the last to come is the first in the list */
	struct shunt_engine engine;
	struct shunt_sleeper sleeper[3];
};

static int set_up(void **state)
{
	static struct bed bed;

	memset(&bed, 0, sizeof(bed));
	memset(kicked, 0, sizeof(kicked));
	shunt_engine_surround(&bed.engine, &sys);
	shunt_lock_rank(&bed.engine.group.lock, SHUNT_RANK_GROUP);
	shunt_lock_take(&bed.engine.group.lock); /* until the test ends */
	bed.engine.group.open = true;
	for (int i = 0; i < 3; i++) {
		bed.sleeper[i].kick_fd = i;
		shunt_sleeper_enter(&bed.engine.group, &bed.sleeper[i]);
		bed.sleeper[i].asleep = true;
	}
	*state = &bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	shunt_lock_leave(&bed->engine.group.lock);
	return 0;
}

static void first_leads(void **state)
{
	struct bed *bed = *state;

	assert_true(bed->sleeper[0].leader);
	assert_false(bed->sleeper[1].leader);
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[1]);
	assert_int_equal(kicked[2], 0);
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[0]);
	assert_int_equal(kicked[2], 1);
}

/* The leader goes while the next has been woken for its own stream: when that one goes too, the third is told. */
static void somebody_always_leads(void **state)
{
	struct bed *bed = *state;

	shunt_sleeper_kick(&bed->engine.group, &bed->sleeper[2]);
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[0]);
	assert_int_equal(kicked[1], 0);
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[2]);
	assert_int_equal(kicked[1], 1);
	assert_true(shunt_sleeper_lead(&bed->engine.group, &bed->sleeper[1]));
}

static void one_leader(void **state)
{
	struct bed *bed = *state;

	assert_false(shunt_sleeper_lead(&bed->engine.group, &bed->sleeper[1]));
}

/* A thread that no completion concerns never leads, and is not woken to. */
static void one_apart_is_left_alone(void **state)
{
	struct bed *bed = *state;

	bed->sleeper[2].apart = true;
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[0]);
	assert_int_equal(kicked[2], 0);
	assert_int_equal(kicked[1], 1);
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[1]);
	assert_int_equal(kicked[2], 0);
	assert_false(shunt_sleeper_lead(&bed->engine.group, &bed->sleeper[2]));
	assert_null(bed->engine.group.leader);
}

/* Without a device there is nothing to lead: nobody is woken for it. */
static void no_device(void **state)
{
	struct bed *bed = *state;

	bed->engine.group.open = false;
	bed->engine.group.leader = NULL;
	shunt_sleeper_leave(&bed->engine.group, &bed->sleeper[0]);
	assert_int_equal(kicked[1] + kicked[2], 0);
	assert_false(shunt_sleeper_lead(&bed->engine.group, &bed->sleeper[1]));
}

/* --- the lanes --- */

/* The test holds group.lock, which these two take. */
static void add(struct bed *bed, struct shunt_lane *lane)
{
	shunt_lock_leave(&bed->engine.group.lock);
	shunt_roster_add(&bed->engine.group, lane);
	shunt_lock_take(&bed->engine.group.lock);
}

static void remove_lane(struct bed *bed, struct shunt_lane *lane)
{
	shunt_lock_leave(&bed->engine.group.lock);
	shunt_roster_remove(&bed->engine.group, lane);
	shunt_lock_take(&bed->engine.group.lock);
}

/* Two devices that number their queue pairs alike. */
static void each_device_numbers_its_own(void **state)
{
	struct bed *bed = *state;
	struct ibv_cq cqs[2];
	struct ibv_qp qps[2] = { { .qp_num = 17, .send_cq = &cqs[0] }, { .qp_num = 17, .send_cq = &cqs[1] } };
	struct shunt_lane lanes[2] = { { .qp = &qps[0] }, { .qp = &qps[1] } };

	for (int i = 0; i < 2; i++)
		add(bed, &lanes[i]);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(shunt_roster_find(&bed->engine.group, &cqs[i], 17), &lanes[i]);
	assert_null(shunt_roster_find(&bed->engine.group, &cqs[0], 18));
	for (int i = 0; i < 2; i++)
		remove_lane(bed, &lanes[i]);
	assert_null(bed->engine.group.lanes);
}

#define MANY 1024

/* One of a thousand lanes, in memory of its own. */
struct lone {
	struct shunt_lane lane;
	struct ibv_qp qp;
};

static size_t lone_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (sizeof(struct lone) + page - 1) / page * page;
}

static void hide(char *memory, int i, bool hidden)
{
	assert_int_equal(mprotect(memory + (size_t)i * lone_bytes(), lone_bytes(),
				  hidden ? PROT_NONE : PROT_READ | PROT_WRITE), 0);
}

/* A lane is found, and leaves the roster beside its neighbours, while the memory of all other lanes is out of reach. */
static void a_lane_is_found_without_a_walk(void **state)
{
	struct bed *bed = *state;
	struct ibv_cq cq;
	size_t bytes = lone_bytes();
	char *memory = mmap(NULL, MANY * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (int i = 0; i < MANY; i++) {
		struct lone *lone = (struct lone *)(memory + (size_t)i * bytes);

		lone->qp = (struct ibv_qp) { .qp_num = (uint32_t)i + 1, .send_cq = &cq };
		lone->lane.qp = &lone->qp;
		add(bed, &lone->lane);
	}
	for (int i = 0; i < MANY; i++)
		hide(memory, i, true);
	for (int i = 0; i < MANY; i++) {
		hide(memory, i, false);
		assert_ptr_equal(shunt_roster_find(&bed->engine.group, &cq, (uint32_t)i + 1),
				 memory + (size_t)i * bytes);
		if (i)	/* the lane that came before, which is the next in the list, takes note of what points to it */
			hide(memory, i - 1, false);
		if (i + 1 < MANY)
			hide(memory, i + 1, false);
		remove_lane(bed, (struct shunt_lane *)(memory + (size_t)i * bytes));
		for (int j = i ? i - 1 : 0; j <= i + 1 && j < MANY; j++)
			hide(memory, j, true);
	}
	assert_null(bed->engine.group.lanes);
	munmap(memory, MANY * bytes);
}

/* --- loops that take all there is --- */

#define CQE 4096

/* A peer that posts as fast as it is polled; much later it has had enough, so that the test ends. */
static int flood_left;

static int flooded(struct ibv_cq *cq, int room, struct ibv_wc *wc)
{
	(void)cq;
	memset(wc, 0, (size_t)room * sizeof(*wc));
	if (room > flood_left)
		room = flood_left;
	flood_left -= room;
	return room;
}

static uint32_t applied, reposted;

static void note_completion(struct shunt_group *group, const struct ibv_cq *cq,
			    const struct ibv_wc *wc)
{
	static struct shunt_lane taken;

	(void)cq, (void)wc;
	applied++;
	group->polled.repost_lanes = &taken;
}

static void note_repost(struct shunt_group *group)
{
	group->polled.repost_lanes = NULL;
	reposted++;
}

static const struct shunt_hooks flood_hooks = { .apply = note_completion, .repost = note_repost };

static void flood(struct bed *bed, struct ibv_context *context, struct ibv_cq *cq)
{
	context->ops.poll_cq = flooded;
	*cq = (struct ibv_cq) { .context = context, .cqe = CQE };
	bed->engine.group.hooks = &flood_hooks;
	bed->engine.group.cqs.count = 1;
	bed->engine.group.cqs.of[0] = cq;
	shunt_config_defaults(&bed->engine.config);
	flood_left = 1 << 20;
	applied = reposted = 0;
}

/* They take no more than can have been there when they began. */
static void a_flood_does_not_hold_a_poll(void **state)
{
	struct bed *bed = *state;
	struct shunt_engine *engine = &bed->engine;
	struct ibv_context context = { 0 };
	struct ibv_cq cq;

	flood(bed, &context, &cq);
	shunt_lock_leave(&engine->group.lock);
	shunt_group_poll_fully(&engine->group);
	assert_in_range(applied, CQE, 2 * CQE);
	assert_int_equal(reposted, 1);	/* nobody floods for long without receives of ours */
	applied = 0;
	shunt_group_hear(&engine->group);
	assert_in_range(applied, CQE, 2 * CQE);
	applied = 0;
	shunt_lock_take(&engine->group.lock);
	shunt_group_hear_locked(&engine->group);
	assert_in_range(applied, CQE, 2 * CQE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_leads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(somebody_always_leads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_leader, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_apart_is_left_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_device, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_device_numbers_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lane_is_found_without_a_walk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_flood_does_not_hold_a_poll, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
