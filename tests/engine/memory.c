/* SPDX-License-Identifier: MIT */
/*
 * Memory of a link: regions that come with the rings and go without them, and their pages. Time is
 * what the test says.
 */
#include "tests/engine/memory.h"
#include "core/base/guard.h"
#include "core/device/soft/device.h"
#include "tests/vm.h"
#include <sys/mman.h>

/* --- time --- */

void serve_one(int i)
{
	if (engines[i]->service)
		shunt_service_step(engines[i], 0);
}

/* A thread of the process waits for something else, and polls for it. */
void hear_one(int i)
{
	shunt_group_poll_fully(&engines[i]->group);
	serve_one(i);
}

/* No program sends or receives. */
void serve(void)
{
	for (int n = 0; n < 2; n++)
		for (int i = 0; i < 2; i++)
			hear_one(i);
}

/* So many seconds in which nothing is sent or received. */
void pass(int seconds)
{
	while (seconds--) {
		pair_skew += SECOND;
		serve();
	}
}

void close_all(void)
{
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	bed.pairs = 0;
	for (int i = 0; i < 2; i++)
		shunt_group_poll_fully(&engines[i]->group);
	serve();
}

static struct shunt_arena *arena_of(int i)
{
	return &engines[i]->service->links->arena;
}

/* Memory regions beside that of the control lines. */
uint32_t blocks(int i)
{
	struct shunt_arena *arena = arena_of(i);

	assert_int_equal(arena->strays, 0);
	assert_int_equal(arena->registered, arena->memory.reserved +
			 (arena->regions - 1) * shunt_arena_most(arena));
	return arena->regions - 1;
}

/* --- regions (XR-14) --- */

static void regions_follow_the_streams(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 0);
	for (int n = 1; n <= PAIRS; n++) {
		add_pair();
		for (int i = 0; i < 2; i++)
			assert_int_equal(blocks(i), (n * config.ring_min + 4 * M - 1) / (4 * M));
	}
	assert_int_equal(counted(0, "memory_regions"), 8);
	assert_int_equal(counted(0, "memory_registered"),
			 8 * M - shunt_guard_page() + 7 * 4 * M);
	for (int round = 0; round < 20; round++) {	/* the rings wrap */
		for (int i = 0; i < PAIRS; i++)
			for (int side = 0; side < 2; side++)
				assert_int_equal(put(i, side, 30011, 0), 30011);
		all_arrived();
	}
	pass(5);
	assert_int_equal(blocks(0), 7);
	close_all();
	pair_skew += SECOND / 2;
	serve();
	assert_int_equal(blocks(0), 7);
	pass(2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(blocks(i), 0);
	assert_int_equal(counted(1, "memory_regions"), 1);
	add_pair();	/* and it begins anew */
	assert_int_equal(blocks(0), 1);
	all_arrived();
	close_all();
	pass(3);
}

/* Half of them go, every other one: those that stay keep their blocks. */
static void blocks_in_use_stay(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	config.mr_bytes = 1 * M;
	config.ring_max = 1 * M;
	make_bed(&config, 0);
	for (int n = 0; n < 8; n++)
		add_pair();
	assert_int_equal(blocks(0), 2);
	for (int n = 4; n < 8; n++) {
		close_side(&bed.pair[n].side[0]);
		close_side(&bed.pair[n].side[1]);
	}
	bed.pairs = 4;
	for (int i = 0; i < 2; i++)
		shunt_group_poll_fully(&engines[i]->group);
	pass(4);
	assert_int_equal(blocks(0), 1);
	assert_int_equal(put(2, 0, 1000, 0), 1000);
	all_arrived();
	close_all();
	pass(3);
	assert_int_equal(blocks(0), 0);
}

/* Without a region for its ring a connection stays on TCP; the others do not notice. */
static void no_more_regions(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.arena_bytes = 16 * M;
	config.ring_min = config.ring_max = 4 * M;
	make_bed(&config, 0);
	add_pair();
	add_pair();
	assert_int_equal(blocks(0), 2);
	connect_pair(&bed.pair[2]);
	bed.pairs++;
	for (int n = 0; n < 100; n++)
		for (int side = 0; side < 2; side++) {
			put(2, side, 100, 0);
			serve();
			get(2, side, BUFFER);
		}
	assert_false(on_link(&bed.pair[2].side[0]));
	for (int i = 0; i < 3; i++)
		put(i, 0, 50000, 0);
	all_arrived();
	close_all();
	pass(3);
}

/* The engine believes the peer's keys; the device does not. */
static void a_wrong_key_ends_the_link(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 0);
	add_pair();
	add_pair();
	stream = stream_of(&bed.pair[0].side[0]);
	stream_spoil_key(stream);
	put(0, 0, 100, 0);
	for (int n = 0; n < 10; n++) {
		shunt_group_poll_fully(&engines[0]->group);
		shunt_group_poll_fully(&engines[1]->group);
		serve();
	}
	for (int i = 0; i < 2; i++)
		assert_false(stream_sends_on_link(stream_of(&bed.pair[1].side[i])));
	assert_int_equal(put(1, 0, 100, 0), 100);
	while (bed.received[1][0] < bed.sent[1][0])
		get(1, 0, BUFFER);
	close_all();
}

/* --- pages that nobody may touch (XR-36) --- */

/* The kernel says it without a fault. */
static bool may_read(const void *at)
{
	int ends[2];
	ssize_t taken;

	assert_int_equal(pipe(ends), 0);
	taken = write(ends[1], at, 1);
	close(ends[0]);
	close(ends[1]);
	return taken == 1;
}

/* Of a mapping, and the bytes on both sides. */
static void is_alone(const void *at, uint64_t bytes)
{
	const char *from = at;

	assert_true(may_read(from));
	assert_true(may_read(from + bytes - 1));
	assert_false(may_read(from - 1));
	assert_false(may_read(from + bytes));
}

static void nothing_lies_beside_a_segment(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	for (int i = 0; i < 2; i++) {
		const struct shunt_arena_memory *memory = &arena_of(i)->memory;
		struct soft_qp *qp = container_of(bed.lane[i]->qp, struct soft_qp, ibv);

		is_alone(memory->base, memory->reserved);	/* queues, control lines, rings */
		is_alone(qp->pd->segment, qp->pd->arena_offset - shunt_guard_page());
		assert_false(may_read(qp->pd->segment + qp->pd->bytes));
		is_alone(qp->peer->base, qp->peer->bytes);
	}
	put(0, 0, 1000, 0);
	all_arrived();
	close_all();
}

/* --- transparent huge pages (RB-28, XR-41) --- */

/* Pages of rings that are backed by memory. */
size_t resident(int i)
{
	struct shunt_arena *arena = arena_of(i);
	size_t page = sysconf(_SC_PAGESIZE), pages = (arena->memory.bytes - arena->memory.reserved) / page, n = 0;
	unsigned char *map = malloc(pages);

	assert_int_equal(mincore(arena->memory.base + arena->memory.reserved, pages * page, map), 0);
	for (size_t k = 0; k < pages; k++)
		n += map[k] & 1;
	free(map);
	return n;
}

static struct soft_pd *segment_of(int i)
{
	return container_of(bed.lane[i]->qp->pd, struct soft_pd, ibv);
}

/* KiB of the segment's file that are memory. */
static long backed(int i)
{
	struct stat stat;

	assert_int_equal(fstat(segment_of(i)->fd, &stat), 0);
	return (long)stat.st_blocks / 2;
}

/*
 * Both mappings of a segment ask for them, at one place of a huge page, and what is given back is whole ones. With
 * ordinary pages neither asks.
 */
static void segments_ask_for_huge_pages(void **state)
{
	(void)state;
	for (int pages = SHUNT_PAGES_ORDINARY; pages <= SHUNT_PAGES_HUGE; pages++) {
		struct shunt_config config = small_config(HYBRID);
		bool large = pages != SHUNT_PAGES_ORDINARY;
		long before;

		config.pages = pages;
		config.ring_min = 256 << 10;
		make_bed(&config, 1);
		before = backed(1);
		add_pair();
		for (int i = 0; i < 2; i++) {
			const uint8_t *arena = arena_of(i)->memory.base;
			const char *peer =
				container_of(bed.lane[i]->qp, struct soft_qp, ibv)->peer->base;

			assert_int_equal(vm_has(arena, "hg"), large);
			assert_int_equal(vm_has(peer, "hg"), large);
			assert_false(vm_has(arena, "ht") || vm_has(peer, "ht"));
			assert_true(!large || !((uintptr_t)arena % SHUNT_GUARD_LARGE));
			assert_true(!large || !((uintptr_t)peer % SHUNT_GUARD_LARGE));
			assert_true(!large || !(segment_of(i)->arena_offset % SHUNT_GUARD_LARGE));
		}
		for (int round = 0; round < 20; round++) {
			assert_int_equal(put(0, 0, 30011, 0), 30011);
			assert_int_equal(put(1, 1, 30011, 0), 30011);
			all_arrived();
		}
		if (large && vm_gives_transparent("shmem_enabled"))
			assert_true(vm_huge(arena_of(1)->memory.base + 8 * M, "ShmemPmdMapped:") >
				    0);
		close_all();
		pass(3);
		for (int i = 0; i < 2; i++)
			assert_int_equal(blocks(i), 0);
		assert_int_equal(resident(1), 0);
		assert_true(backed(1) <= before);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_follow_the_streams),
		cmocka_unit_test(blocks_in_use_stay),
		cmocka_unit_test(no_more_regions),
		cmocka_unit_test(a_wrong_key_ends_the_link),
		cmocka_unit_test(nothing_lies_beside_a_segment),
		cmocka_unit_test(segments_ask_for_huge_pages),
		cmocka_unit_test(an_idle_ring_shrinks),
		cmocka_unit_test(a_ring_in_use_stays),
		cmocka_unit_test(an_idle_ring_has_no_pages),
		cmocka_unit_test(a_ring_of_one_way_has_no_pages),
		cmocka_unit_test(pages_of_a_closed_stream_are_not_inherited),
		cmocka_unit_test(a_ring_that_stays),
		cmocka_unit_test(idle_rings_take_little_room),
		cmocka_unit_test(a_sender_with_staged_bytes),
		cmocka_unit_test(a_send_before_the_offer_is_heard),
		cmocka_unit_test(a_send_after_the_offer_is_heard),
		cmocka_unit_test(the_end_during_an_offer),
		cmocka_unit_test(what_nobody_reads_is_kept),
		cmocka_unit_test(offers_that_are_none),
		cmocka_unit_test(an_end_leaves_behind_what_is_not_heard),
		cmocka_unit_test(an_end_that_cannot_leave_keeps_its_bytes),
		cmocka_unit_test(an_end_that_is_not_posted_was_not_announced),
		cmocka_unit_test(an_exit_awaits_the_call_of_another),
		cmocka_unit_test(a_repeat_without_room_does_not_count),
		cmocka_unit_test(a_repeat_at_exit_lets_its_rest_wait),
		cmocka_unit_test(a_hand_over_is_not_given_back),
		cmocka_unit_test(a_retirement_does_not_wait_for_the_reader),
		cmocka_unit_test(a_retirement_sleeps_while_there_is_no_room),
		cmocka_unit_test(room_that_was_told_of_is_there),
		cmocka_unit_test(a_held_lane_does_not_close_a_wide_stage),
		cmocka_unit_test(a_reset_drops_the_rest),
		cmocka_unit_test(an_end_behind_what_was_overtaken_is_an_edge),
		cmocka_unit_test(an_end_that_kills_its_queue_pair_repeats_nothing),
		cmocka_unit_test(an_end_that_stalls_repeats_nothing),
		cmocka_unit_test(a_sender_that_resets_drops_the_rest),
		cmocka_unit_test(the_wait_for_a_fetch_ends),
		cmocka_unit_test(without_memory_a_sender_waits),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_log_set_level(SHUNT_LOG_NONE);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
