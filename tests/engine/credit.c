/* SPDX-License-Identifier: MIT */
/* Limits of a lane: the window, and the two credits. */
#include "tests/engine/bed.h"
#include <sys/epoll.h>
#include "core/device/soft/soft.h"
#include "core/lane/fault_device.h"
#include "core/stream/ready.h"
#include "core/stream/retire.h"
#include "tests/sim/random.h"

/* --- the window (RB-12…14, XR-23) --- */

/* 16 streams send 64 bytes in turn while the device carries out what it has once in 16 sends. */
static struct tally through_window(uint64_t window, uint64_t wrs)
{
	struct shunt_config config = small_config(HYBRID);
	struct tally tally;

	config.ring_min = 64 << 10;
	config.rq_depth = 4096;
	config.window_bytes = window;
	config.window_wrs = wrs;
	make_bed(&config, 16);
	for (int round = 0; round < 200; round++) {
		stall(true);
		for (int i = 0; i < 16; i++)
			assert_int_equal(put(i, 0, 64, 0), 64);
		soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_NONE);
		assert_int_equal(ibv_poll_cq(engines[0]->group.cqs.of[0], 0, NULL), 0);	/* the device's turn */
		stall(true);
		shunt_group_poll(&engines[0]->group);
	}
	stall(false);
	tally = tally_so_far();
	assert_int_equal(tally.bytes, 200 * 16 * 64);
	if (wrs)
		assert_true(bed.lane[0]->window.most_wrs <= wrs);
	end_bed();
	return tally;
}

void window_shrinks_wrs_grow(void **state)
{
	uint64_t windows[] = { 0, 1024, 512, 256, 128, 64 }, limits[] = { 0, 8, 4, 2, 1 };
	uint64_t before = 0;

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct tally tally = through_window(windows[i], 0);

		print_message("window %lu: %lu WRs\n", windows[i], tally.wr);
		assert_true(!i || tally.wr <= before);
		assert_true(i < 2 || tally.wr < before);
		before = tally.wr;
	}
	for (int i = 0; i < 5; i++) {
		struct tally tally = through_window(0, limits[i]);

		print_message("window of %lu WRs: %lu WRs\n", limits[i], tally.wr);
		assert_true(!i || tally.wr < before);
		before = tally.wr;
	}
}

/* Posted bytes never exceed the window, however many are offered; and all of them arrive. */
void window_is_kept(void **state)
{
	uint64_t windows[] = { 1, 4096, 65536, 1 << 20 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct shunt_config config = small_config(HYBRID);
		uint64_t offered = 0;

		config.ring_min = 4 << 20;
		config.ring_max = 4 << 20;
		config.frag_bytes = 4096;
		config.window_bytes = windows[i];
		make_bed(&config, 4);
		stall(true);
		for (int n = 0; n < 80; n++)
			offered += put(n & 3, 0, 65536, 0);
		assert_true(offered > windows[i]);
		assert_true(shunt_window_most(&bed.lane[0]->window) <= (windows[i] > 4096 ? windows[i] : 4096));
		assert_true(i == 3 || COUNTED(stalls[SHUNT_LIMIT_BYTES]) > 0);
		stall(false);
		assert_true(shunt_window_most(&bed.lane[0]->window) <= (windows[i] > 4096 ? windows[i] : 4096));
		end_bed();
	}
}

/* --- the two credits (XR-16…21) --- */

/* Many senders, one slow reader, small rings and queues: never a message without a receive for it. */
void incast_without_rnr(void **state)
{
	struct shunt_config config = small_config(SINGLE);

	(void)state;
	config.ring_min = config.ring_max = 4096;
	config.rq_depth = config.sq_depth = 64;
	make_bed(&config, 64);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 64; i++)
			put(i, 0, round & 1 ? 1 : 700, 0);
		for (int n = 0; n < 3; n++)
			get(sim_below(64), 0, 300);
	}
	assert_true(COUNTED(stalls[SHUNT_LIMIT_RECEIVES]) > 0);
	assert_true(COUNTED(stalls[SHUNT_LIMIT_RING]) > 0);
	all_arrived();
	assert_int_equal(soft_qp_counters(bed.lane[0]->qp)->rnr, 0);
	assert_int_equal(soft_qp_counters(bed.lane[1]->qp)->rnr, 0);
	print_message("incast: %d sends, %lu WRs, %lu RNR, %lu times for a receive, %lu times for the ring\n",
		      300 * 64, WRS(), soft_qp_counters(bed.lane[0]->qp)->rnr,
		      COUNTED(stalls[SHUNT_LIMIT_RECEIVES]), COUNTED(stalls[SHUNT_LIMIT_RING]));
	end_bed();
}

/* The control experiment: a lane that does not count receives meets their absence. */
void without_credit_there_is_rnr(void **state)
{
	struct shunt_config config = small_config(SINGLE);

	(void)state;
	config.rq_depth = 64;
	make_bed(&config, 1);
	atomic_fetch_add(&bed.lane[0]->allowed, 1000);
	for (int i = 0; i < 200; i++)
		put(0, 0, 1, 0);
	assert_true(soft_qp_counters(bed.lane[0]->qp)->rnr > 0);
	print_message("no credit: %d sends, %lu WRs, %lu RNR\n", 200, WRS(),
		      soft_qp_counters(bed.lane[0]->qp)->rnr);
	atomic_fetch_sub(&bed.lane[0]->allowed, 1000);
	end_bed();
}

/* Both ends send what they can before either looks at what came. */
static void flood_both(uint32_t reserve)
{
	struct shunt_config config = small_config(SINGLE);

	config.rq_depth = 64;
	make_bed(&config, 2);
	for (int side = 0; side < 2; side++) {
		bed.lane[side]->reserve = reserve;
		while (atomic_load(&bed.lane[side]->allowed) > bed.lane[side]->sent + reserve)
			assert_int_equal(put(side, side, 1, 0), 1);
	}
	for (int side = 0; side < 2; side++)
		put(side, side, 1, 0);
}

/* The QP does not take the message that says so: it is offered again, though there is nothing else to say. */
void refused_credit_is_given_later(void **state)
{
	struct shunt_config config = small_config(SINGLE);
	uint64_t before;

	(void)state;
	config.rq_depth = 64;
	make_bed(&config, 1);
	before = atomic_load(&bed.lane[0]->allowed);
	assert_int_equal(shunt_fault_device_set(&engines[1]->group, "post:count=1", NULL, 0), 0);
	for (int i = 0; !atomic_load(&engines[1]->fault.struck); i++) {
		assert_true(i < 64);
		put(0, 0, 1, 0);
		get(0, 0, BUFFER);
	}
	for (int i = 0; i < 10; i++)
		turn();
	assert_true(atomic_load(&bed.lane[0]->allowed) > before);
	end_bed();
}

/* A credit that waits for a receive, while its reader goes on over TCP and the sender has become the kernel's. */
void credit_is_for_the_link(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *sender;
	uint64_t allowed;

	(void)state;
	config.ring_min = config.ring_max = 16 << 10;
	make_bed(&config, 1);
	sender = stream_of(&bed.pair[0].side[0]);
	assert_int_equal(put(0, 0, 9000, 0), 9000);
	allowed = atomic_exchange(&bed.lane[1]->allowed, 0);
	assert_int_equal(get(0, 0, BUFFER), 9000);
	assert_true(atomic_load(&stream_of(&bed.pair[0].side[1])->seat->work) & SHUNT_WORK_CREDIT);
	shunt_retire_begin(engines[0], sender, SHUNT_CAUSE_SPLICE);
	while (stream_state(sender) != SHUNT_PLAIN)
		turn();
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	all_arrived();
	atomic_store(&bed.lane[1]->allowed, allowed);
	shunt_lane_kick(bed.lane[1]);
	end_bed();
}

/* Receives are posted again, but who says so needs one: the LANE message has slots of its own (XR-20). */
void mutual_starvation_ends(void **state)
{
	uint64_t before;

	(void)state;
	flood_both(SHUNT_CONTROL_RESERVE);
	end_bed();
	flood_both(0);	/* the control experiment: without them nothing moves, for ever */
	drain();
	before = bed.lane[0]->sent + bed.lane[1]->sent;
	for (int i = 0; i < 100; i++)
		drain();
	assert_int_equal(bed.lane[0]->sent + bed.lane[1]->sent, before);
	for (int side = 0; side < 2; side++) {
		assert_true(atomic_load(&bed.lane[side]->waiting) > 0);
		assert_true(atomic_load(&bed.lane[side]->lane_due));
		atomic_fetch_add(&bed.lane[side]->allowed, 1);
	}
	end_bed();
}

#define NOP_LOOKS 4	/* of idle.c, each a second after the one before */

/* Time passes for both, and nothing else happens. */
static void stand_still(void)
{
	for (int n = 0; n < NOP_LOOKS; n++) {
		pair_skew += 1000000000;
		for (int i = 0; i < 2; i++)
			shunt_loop_post(&engines[i]->loop, &engines[i]->service->tasks.idle);
		drain();
	}
}

/* A LANE message is lost, which no device does: the sender has used its receives, and the reader owes it none. */
static void lose_credit(void)
{
	uint64_t allowed = atomic_load(&bed.lane[0]->allowed), taken;

	for (int n = 0; atomic_load(&bed.lane[0]->allowed) == allowed; n++) {
		assert_true(n < 64);
		assert_int_equal(put(0, 0, 1, 0), 1);
		drain();
	}
	atomic_store(&bed.lane[0]->allowed, allowed);
	do {
		taken = bed.lane[0]->sent;
		put(0, 0, 1, 0);
		drain();
	} while (bed.lane[0]->sent != taken);
	assert_false(all_is_out());
}

/* A sender that waits for a receive for seconds asks, once for each credit. The reader announces its receives again (XR-20). */
void a_lost_credit_is_asked_for(void **state)
{
	struct shunt_config config = small_config(SINGLE);

	(void)state;
	config.rq_depth = 64;
	make_bed(&config, 1);
	for (uint64_t lost = 1; lost <= 3; lost++) {
		lose_credit();
		assert_int_equal(counted(0, "nops"), lost - 1);
		stand_still();
		assert_true(all_is_out());
		assert_int_equal(counted(0, "nops"), lost);
		assert_int_equal(counted(1, "nops"), 0);
	}
	for (int i = 0; i < 1000; i++) {
		put(0, 0, 1, 0);
		drain();
	}
	stand_still();
	assert_int_equal(counted(0, "nops"), 3);
	end_bed();
}

/* A reader that stands still is asked once, and no answer makes another. */
void a_stopped_reader_is_asked_once(void **state)
{
	struct shunt_config config = small_config(SINGLE);
	uint64_t sent;

	(void)state;
	config.rq_depth = 64;
	make_bed(&config, 1);
	while (atomic_load(&bed.lane[0]->allowed) > bed.lane[0]->sent + bed.lane[0]->reserve)
		assert_int_equal(put(0, 0, 1, 0), 1);
	put(0, 0, 1, 0);
	for (int n = 0; n < 10; n++) {
		pair_skew += 1000000000;
		shunt_loop_post(&engines[0]->loop, &engines[0]->service->tasks.idle);
		shunt_service_step(engines[0], 0);
	}
	assert_int_equal(counted(0, "nops"), 1);
	all_arrived();
	sent = bed.lane[0]->sent + bed.lane[1]->sent;
	for (int n = 0; n < 10; n++)
		drain();
	assert_int_equal(bed.lane[0]->sent + bed.lane[1]->sent, sent);
	end_bed();
}

/*
 * A message of up to a whole ring waits for one credit at most. That holds even if less than half a
 * ring has been read since the last credit (CP-02).
 */
void a_send_waits_once(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t waits = 0;

	(void)state;
	config.ring_min = config.ring_max = 16384;
	for (int percent = 5; percent <= 100; percent += 5) {
		size_t message = config.ring_max * percent / 100;

		make_bed(&config, 1);
		for (int i = 0; i < 60; i++) {
			size_t left = message - put(0, 0, message, 0);

			turn();
			get(0, 0, message * (i % 7) / 7);	/* the reader is seldom where the sender thinks it is */
			if (!left)
				continue;
			waits++;
			drain();
			assert_int_equal(put(0, 0, left, 0), left);
		}
		end_bed();
	}
	assert_true(waits > 100);
	/* A sender that does not wait sends no message. */
	make_bed(&config, 1);
	for (int i = 0; i < 8; i++) {
		put(0, 0, 1000, 0);
		drain();
	}
	assert_int_equal(COUNTED(control), 0);
	end_bed();
}

/*
 * A program that polls and then sends a little must get it away, though its peer reads nothing: the
 * peer may be doing the same. The stage takes bytes that the ring has no room for, up to SO_SNDBUF.
 */
void writable_means_room(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	int sends = 0, refused = 0, small = 4096;

	(void)state;
	config.ring_min = 16 << 10;
	config.ring_max = 4 << 20;
	make_bed(&config, 1);
	stream = stream_of(&bed.pair[0].side[0]);
	assert_int_equal(setsockopt(bed.pair[0].side[0].fd, SOL_SOCKET, SO_SNDBUF, &small,
				    sizeof(small)), 0);
	for (int n = 0; n < 1000; n++) {
		turn();
		if (shunt_ready_user(stream) & EPOLLOUT) {
			sends++;
			refused += put(0, 0, 1000, 0) != 1000;
		}
	}
	assert_in_range(sends, 64, 999);
	assert_int_equal(refused, 0);
	all_arrived();
	assert_true(shunt_ready_user(stream) & EPOLLOUT);	/* the reader has come to the ring: it may grow again */
	end_bed();
}
