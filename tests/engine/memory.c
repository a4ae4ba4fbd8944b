/* SPDX-License-Identifier: MIT */
/*
 * Memory of a link: regions that come with the rings and go without them, and rings that shrink
 * when nothing comes. Time is what the test says.
 */
#include "tests/engine/bed.h"
#include "core/base/guard.h"
#include "core/device/soft/device.h"
#include "core/service.h"
#include "core/stream/rings.h"
#include "tests/vm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define M (1 << 20)
#define SECOND 1000000000ull

/* --- time --- */

static void serve_one(int i)
{
	if (engines[i]->service)
		shunt_service_step(engines[i], 0);
}

/* A thread of the process waits for something else, and polls for it. */
static void hear_one(int i)
{
	shunt_group_poll_fully(&engines[i]->group);
	serve_one(i);
}

/* No program sends or receives. */
static void serve(void)
{
	for (int n = 0; n < 2; n++)
		for (int i = 0; i < 2; i++)
			hear_one(i);
}

/* So many seconds in which nothing is sent or received. */
static void pass(int seconds)
{
	while (seconds--) {
		pair_skew += SECOND;
		serve();
	}
}

static void close_all(void)
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
static uint32_t blocks(int i)
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
static size_t resident(int i)
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

/* --- rings that are idle --- */

static struct shunt_stream *sender(void)
{
	return stream_of(&bed.pair[0].side[0]);
}

static struct shunt_stream *reader(void)
{
	return stream_of(&bed.pair[0].side[1]);
}

/* Sends more than the reader takes until the ring is as large as that. */
static void grow_to(uint32_t bytes)
{
	for (int n = 0; stream_memory(reader(), STREAM_RING) < bytes; n++) {
		assert_true(n < 1000);
		while (!stream_has_offer(sender()) && !stream_waits_for_room(sender()) && put(0, 0, BUFFER, 0))
			;
		serve();
		put(0, 0, 1, 0);
		all_arrived();
	}
	assert_int_equal(stream_memory(reader(), STREAM_RING), bytes);
	assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), bytes);
}

static void make_pair_of(uint32_t ring_bytes)
{
	struct shunt_config config = small_config(HYBRID);

	make_bed(&config, 0);
	add_pair();
	grow_to(ring_bytes);
}

static void transfer(uint64_t bytes)
{
	uint64_t end = bed.sent[0][0] + bytes;

	while (bed.sent[0][0] < end) {
		uint64_t left = end - bed.sent[0][0];

		if (!put(0, 0, left < BUFFER ? left : BUFFER, 0)) {
			serve();
			get(0, 0, BUFFER);
		}
	}
	all_arrived();
}

static void end_pair(void)
{
	all_arrived();
	close_all();
	pass(3);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(blocks(i), 0);
		assert_int_equal(resident(i), 0);
	}
	assert_int_equal(atomic_load(&engines[0]->links.distrusted) +
				 atomic_load(&engines[1]->links.distrusted),
			 0);
}

/* Neither program sends or receives meanwhile. */
static void an_idle_ring_shrinks(void **state)
{
	(void)state;
	make_pair_of(4 * M);
	for (int round = 1; round <= 3; round++) {
		assert_in_range(blocks(1), 1, 2);	/* a busy machine has let the former ring's go */
		transfer(5 * M);
		assert_true(resident(1) >= 1024);
		pass(4);
		assert_int_equal(stream_memory(reader(), STREAM_RING), 4 * M);
		pass(6);
		assert_int_equal(stream_memory(reader(), STREAM_RING), 16 << 10);
		assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), 16 << 10);
		assert_int_equal(blocks(1), 1);
		assert_true(resident(1) <= 8);
		assert_int_equal(counted(1, "rings_shrunk"), round);
		assert_false(shunt_task_waits(&engines[1]->loop.requests.reclaim));
		assert_int_equal(put(0, 0, 1000, 0), 1000);
		all_arrived();
		transfer(20 * M);
		grow_to(4 * M);
	}
	end_pair();
}

/* A ring stays for bytes that come, or that have not been read. */
static void a_ring_in_use_stays(void **state)
{
	(void)state;
	make_pair_of(256 << 10);
	for (int n = 0; n < 20; n++) {
		pass(1);
		put(0, 0, 1, 0);
		get(0, 0, 1);
	}
	put(0, 0, 1, 0);
	pass(20);
	assert_int_equal(stream_memory(reader(), STREAM_RING), 256 << 10);
	assert_int_equal(counted(1, "rings_shrunk"), 0);
	get(0, 0, 1);
	pass(10);
	assert_int_equal(stream_memory(reader(), STREAM_RING), 16 << 10);
	end_pair();
}

/* --- small rings that are idle --- */

static bool has_taken(int i)
{
	return stream_memory(stream_of(&bed.pair[0].side[i]), STREAM_OFFERED_RING);
}

/* As the service threads of two processes do; each side looks now, and as often as it finds right. */
static void make_idle_pair(void)
{
	struct shunt_config config = small_config(HYBRID);

	make_bed(&config, 0);
	add_pair();
	for (int i = 0; i < 2; i++) {
		engines[i]->service->idle_every = SECOND;
		shunt_loop_post(&engines[i]->loop, &engines[i]->service->tasks.idle);
	}
}

static void talk(int rounds)
{
	while (rounds--)
		for (int side = 0; side < 2; side++)
			assert_int_equal(put(0, side, 100, 0), 100);
	all_arrived();
}

/*
 * A pair that is idle has no page of a ring, each time, and nobody looks at its rings any more. Nobody is told that it may
 * write, because it could before.
 */
static void an_idle_ring_has_no_pages(void **state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET };
	int set = epoll_create1(EPOLL_CLOEXEC), fd;

	(void)state;
	make_idle_pair();
	shunt_file_epoll(engines[0], set);
	fd = bed.pair[0].side[0].fd;
	talk(1);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, fd, &event), 0);
	assert_int_equal(reported(set), EPOLLOUT);
	for (int round = 1; round <= 3; round++) {
		talk(round * 50);	/* the last one fills the ring: a larger one is offered, which nothing is sent to */
		reported(set);
		shunt_seat_unquicken(&sender()->seat->out);	/* such a send may find no room, and what is said of room then counts */
		put(0, 0, 1, 0);
		all_arrived();
		pass(3);
		for (int i = 0; i < 2; i++)
			assert_true(resident(i) >= 1);
		pass(40);	/* before, idle.c has looked once in 32 seconds */
		for (int i = 0; i < 2; i++) {
			assert_int_equal(resident(i), 0);
			assert_int_equal(counted(i, "rings_shrunk"), round);
			assert_int_equal(counted(i, "rings_grown"), round / 3);
			assert_int_equal(blocks(i), 1);
			assert_false(has_taken(i));
			assert_false(shunt_task_waits(&engines[i]->loop.requests.reclaim));
		}
		pass(100);
		for (int i = 0; i < 2; i++)
			assert_int_equal(counted(i, "rings_shrunk"), round);
		assert_int_equal(reported(set), 0);
	}
	talk(500);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_DEL, fd, NULL), 0);
	close(set);
	end_pair();
}

/* The process that sends calls nothing: its service thread takes the ring, also where nothing has come for it. */
static void a_ring_of_one_way_has_no_pages(void **state)
{
	(void)state;
	make_idle_pair();
	talk(1);
	pass(20);
	assert_int_equal(put(0, 0, 100, 0), 100);
	all_arrived();
	assert_true(resident(1) >= 1);
	for (int n = 0; n < 60; n++) {
		pair_skew += SECOND;
		serve_one(0);
		serve_one(1);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(resident(i), 0);
	assert_int_equal(counted(0, "rings_shrunk"), 1);
	assert_int_equal(counted(1, "rings_shrunk"), 2);
	end_pair();
}

/* The ring that is offered is another stream's, which is closed: its pages are not kept for an idle one. */
static void pages_of_a_closed_stream_are_not_inherited(void **state)
{
	(void)state;
	make_idle_pair();
	add_pair();
	assert_int_equal(put(1, 0, 16000, 0), 16000);
	all_arrived();
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	bed.pairs = 1;
	serve();
	assert_true(resident(1) >= 3);
	talk(1);
	pass(20);
	assert_true(resident(1) <= 1);	/* a page of the other one's beginning */
	end_pair();
}

/* Of memory that a stranger reaches no page goes back: another ring would take more. A ring with unread bytes stays, too. */
static void a_ring_that_stays(void **state)
{
	(void)state;
	for (int strange = 0; strange < 2; strange++) {
		make_idle_pair();
		talk(1);
		if (strange)
			container_of(stream_link(reader())->pd, struct soft_pd, ibv)->apart = true;
		else
			assert_int_equal(put(0, 0, 1, 0), 1);
		pass(100);
		assert_int_equal(counted(0, "rings_shrunk"), 1);
		assert_int_equal(counted(1, "rings_shrunk"), 0);
		assert_true(resident(1) >= 1);
		assert_false(shunt_task_waits(&engines[1]->loop.requests.reclaim));
		container_of(stream_link(reader())->pd, struct soft_pd, ibv)->apart = false;
		end_pair();
	}
}

/* Where the arena has room for few, rings are exchanged one after the other. */
static void idle_rings_take_little_room(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	int most = 0;

	(void)state;
	config.ring_min = 256 << 10;
	config.arena_bytes = 32 * M;
	config.mr_bytes = 1 * M;
	make_bed(&config, 0);
	for (int n = 0; n < 20; n++) {
		add_pair();
		assert_int_equal(put(n, 0, 100, 0), 100);
		all_arrived();
	}
	for (int i = 0; i < 2; i++)
		shunt_loop_post(&engines[i]->loop, &engines[i]->service->tasks.idle);
	for (int n = 0; n < 60; n++) {
		uint64_t before = counted(1, "rings_shrunk");

		pass(1);
		if (counted(1, "rings_shrunk") - before > (uint64_t)most)
			most = (int)(counted(1, "rings_shrunk") - before);
	}
	assert_int_equal(counted(1, "rings_shrunk"), 20);
	assert_true(most <= 9);	/* a sixteenth of the arena, and one */
	assert_int_equal(resident(1), 0);
	close_all();
	pass(3);
}

/* --- rings that were offered --- */

/* The reader has offered a small ring; the sender has not heard of it. */
static void offer_small(void)
{
	uint64_t before = counted(1, "rings_shrunk");

	for (int n = 0; counted(1, "rings_shrunk") == before; n++) {
		assert_true(n < 20);
		pair_skew += SECOND;
		serve_one(1);
	}
	assert_int_equal(stream_memory(reader(), STREAM_OFFERED_RING), 16 << 10);
	assert_false(stream_has_offer(sender()));
}

/* Bytes that are staged go where their place is; the ring is changed behind them, by a send or without one. */
static void a_sender_with_staged_bytes(void **state)
{
	(void)state;
	for (int sends = 0; sends < 2; sends++) {
		make_pair_of(4 * M);
		offer_small();
		assert_int_equal(put(0, 0, 100, MSG_MORE), 100);
		hear_one(0);
		assert_true(stream_has_offer(sender()));
		assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), 4 * M);
		if (sends)
			put(0, 0, 5000, 0);	/* goes behind what is staged */
		if (sends)
			assert_int_equal(put(0, 0, 5000, 0), 5000);
		pass(3);
		assert_false(stream_has_offer(sender()));
		assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), 16 << 10);
		all_arrived();
		assert_int_equal(stream_memory(reader(), STREAM_RING), 16 << 10);
		transfer(8 * M);
		end_pair();
	}
}

/* A send that takes more than the ring has room for uses the small one for the rest. */
static void a_send_before_the_offer_is_heard(void **state)
{
	(void)state;
	make_pair_of(256 << 10);
	offer_small();
	while (!stream_waits_for_room(sender()))
		put(0, 0, BUFFER, 0);
	assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), 16 << 10);
	assert_int_equal(stream_memory(reader(), STREAM_RING), 256 << 10);
	all_arrived();
	assert_true(stream_memory(reader(), STREAM_RING) >= 16 << 10);
	transfer(20 * M);
	grow_to(4 * M);
	end_pair();
}

/* A send takes the small ring itself; what was sent before it is read from the large one. */
static void a_send_after_the_offer_is_heard(void **state)
{
	(void)state;
	make_pair_of(4 * M);
	offer_small();
	for (int n = 0; n < 30; n++)
		assert_int_equal(put(0, 0, BUFFER, 0), BUFFER);
	hear_one(0);
	while (put(0, 0, 1000, 0))
		;
	assert_int_equal(stream_memory(sender(), STREAM_PEER_RING), 16 << 10);
	assert_int_equal(stream_memory(reader(), STREAM_RING), 4 * M);
	assert_true(bed.sent[0][0] - bed.received[0][0] > 30 * BUFFER);
	all_arrived();
	transfer(20 * M);
	end_pair();
}

/* Either end closes while the offer is under way, or has been used and not been seen. */
static void the_end_during_an_offer(void **state)
{
	(void)state;
	for (int heard = 0; heard < 2; heard++) {
		for (int first = 0; first < 2; first++) {
			make_pair_of(4 * M);
			offer_small();
			if (heard)
				hear_one(0);
			all_arrived();
			close_side(&bed.pair[0].side[first]);
			if (first)
				shunt_group_poll_fully(&engines[0]->group);
			serve_one(!first);
			close_side(&bed.pair[0].side[!first]);
			bed.pairs = 0;
			for (int i = 0; i < 2; i++)
				shunt_group_poll_fully(&engines[i]->group);
			pass(3);
			end_pair();
		}
	}
}

/* Bytes beyond the ring take memory of the sender as long as the reader leaves them unread. */
static void what_nobody_reads_is_kept(void **state)
{
	const uint64_t all = 6 * M;

	(void)state;
	make_pair_of(256 << 10);
	for (int round = 0; round < 2; round++) {
		uint64_t from = bed.sent[0][0];

		while (bed.sent[0][0] < from + all && put(0, 0, 50000, 0) > 0)
			;
		assert_true(bed.sent[0][0] - from >= all);
		assert_true(stream_memory(sender(), STREAM_STAGE) >= all - 4 * M);
		pass(2);
		assert_int_not_equal(stream_memory(sender(), STREAM_STAGE), 0);	/* it is in use */
		all_arrived();
		pass(2);
		assert_int_equal(stream_memory(sender(), STREAM_STAGE), 0);
		pass(20);
	}
	assert_false(shunt_task_waits(&engines[0]->loop.requests.reclaim));
	end_pair();
}

/* The reader's engine says that in its stead. */
static void offer(uint64_t offset, uint64_t bytes)
{
	struct shunt_seat *seat = reader()->seat;

	atomic_store(&seat->in.ring.offered, shunt_ring_make(0, offset, bytes));
	shunt_lane_request(seat->lane, seat, SHUNT_WORK_RING);
	shunt_group_poll_fully(&engines[0]->group);
}

/* A peer that offers what it does not have, or again before the first was used. */
static void offers_that_are_none(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		uint64_t offset = 8 * M, bytes = what == 1 ? 2 << 10 : 16 << 10;

		make_pair_of(256 << 10);
		if (what == 0)
			offset = stream_link(sender())->peer_arena_bytes;
		if (what == 2)
			offset += 4096;	/* not aligned to its size */
		if (what == 3) {
			put(0, 0, 1, MSG_MORE);
			offer(offset, bytes);
			assert_int_equal(engines[0]->links.distrusted, 0);
		}
		offer(offset, bytes);
		assert_int_equal(engines[0]->links.distrusted, 1);
		serve();
		close_all();
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
