/* SPDX-License-Identifier: MIT */
/*
 * Rings of a link that shrink when nothing comes, and give their pages back. Time is what the test
 * says.
 */
#include "tests/engine/memory.h"
#include "core/device/soft/device.h"

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
void an_idle_ring_shrinks(void **state)
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
void a_ring_in_use_stays(void **state)
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
void an_idle_ring_has_no_pages(void **state)
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
void a_ring_of_one_way_has_no_pages(void **state)
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
void pages_of_a_closed_stream_are_not_inherited(void **state)
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
void a_ring_that_stays(void **state)
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
void idle_rings_take_little_room(void **state)
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
void a_sender_with_staged_bytes(void **state)
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
void a_send_before_the_offer_is_heard(void **state)
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
void a_send_after_the_offer_is_heard(void **state)
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
void the_end_during_an_offer(void **state)
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
void what_nobody_reads_is_kept(void **state)
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
void offers_that_are_none(void **state)
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
