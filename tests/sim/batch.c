/*
 * What lanes post, counted exactly: merging, chaining, the window, credit, and the interleavings of the merge
 * queue. Two engines in one thread, so nothing here depends on time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/soft/soft.h"
#include "tests/sim/pair.h"
#include "tests/sim/random.h"

#define PAIRS 64
#define BUFFER 65536

enum batch { SINGLE, MERGE, CHAIN, HYBRID };

static struct {
	struct pair pair[PAIRS];
	int pairs;
	uint64_t sent[PAIRS][2], received[PAIRS][2];	/* by sending side */
	struct shunt_lane *lane[2];	/* of the connecting engine, and of the other */
	struct shunt_lane_counters before;
	uint64_t wrs_before, bytes_before;
} bed;

uint64_t sim_random_state;

/* LeakSanitizer shall find what is still alive. */
static struct shunt_engine *former[256][2];
static int formers;

static uint8_t byte_at(uint64_t offset, int salt)
{
	return offset * 131 + (offset >> 8) + salt;
}

static struct shunt_config small_config(enum batch batch)
{
	struct shunt_config config;

	shunt_config_defaults(&config);
	config.log_level = 0;
	config.spin_us = 0;
	config.arena_bytes = 64 << 20;
	config.batch = batch;
	return config;
}

/* --- moving bytes; the pattern is checked --- */

/* One send. Returns how much was taken. */
static size_t put(int i, int side, size_t bytes, int flags)
{
	uint8_t buffer[BUFFER];
	uint64_t *sent = &bed.sent[i][side];
	ssize_t taken;

	assert_true(bytes <= sizeof(buffer));
	for (size_t k = 0; k < bytes; k++)
		buffer[k] = byte_at(*sent + k, 2 * i + side);
	taken = send_some(&bed.pair[i].side[side], buffer, bytes, flags | MSG_DONTWAIT);
	if (taken == -EAGAIN || (taken < 0 && errno == EAGAIN))
		taken = 0;
	assert_true(taken >= 0);
	*sent += taken;
	return taken;
}

/* Reads at most `most` of what `side` has sent. */
static size_t get(int i, int side, size_t most)
{
	static uint8_t buffer[BUFFER];
	uint64_t *received = &bed.received[i][side];
	ssize_t got = receive_some(&bed.pair[i].side[!side], buffer, most < BUFFER ? most : BUFFER, MSG_DONTWAIT);

	if (got == -EAGAIN || (got < 0 && errno == EAGAIN))
		return 0;
	assert_true(got >= 0);
	for (ssize_t k = 0; k < got; k++)
		assert_int_equal(buffer[k], byte_at(*received + k, 2 * i + side));
	*received += got;
	return got;
}

static void turn(void)
{
	for (int i = 0; i < 2; i++) {
		if (engines[i]->service)
			shunt_service_step(engines[i], 0);
		shunt_group_poll_fully(engines[i]);
	}
}

/* Until nothing comes any more. */
static void drain(void)
{
	size_t moved;

	do {
		moved = 0;
		turn();
		for (int i = 0; i < bed.pairs; i++)
			for (int side = 0; side < 2; side++)
				moved += get(i, side, BUFFER);
	} while (moved);
}

static void all_arrived(void)
{
	drain();
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			assert_int_equal(bed.received[i][side], bed.sent[i][side]);
	assert_int_equal(atomic_load(&engines[0]->distrusted) + atomic_load(&engines[1]->distrusted), 0);
}

/* --- the bed --- */

static bool on_link(struct side *side)
{
	struct shunt_stream *stream = stream_of(side);

	return stream->tx.track == SHUNT_LINK && stream->rx.track == SHUNT_LINK && !atomic_load(&stream->tx.unpassed);
}

static void warm(int i)
{
	for (int n = 0; !on_link(&bed.pair[i].side[0]) || !on_link(&bed.pair[i].side[1]); n++) {
		assert_true(n < 10000);
		for (int side = 0; side < 2; side++) {
			put(i, side, 1, 0);
			turn();
			get(i, side, BUFFER);
		}
	}
}

static void count_from_here(void)
{
	bed.before = bed.lane[0]->counters;
	bed.wrs_before = bed.lane[0]->sent;
	bed.bytes_before = bed.lane[0]->window.posted;
}

static void make_bed(const struct shunt_config *config, int pairs)
{
	if (engines[0]) {
		former[formers][0] = engines[0];
		former[formers++][1] = engines[1];
	}
	memset(&bed, 0, sizeof(bed));
	make_engines(config, true);
	listen_here();
	while (bed.pairs < pairs) {
		connect_pair(&bed.pair[bed.pairs]);
		warm(bed.pairs++);
	}
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_of(&bed.pair[0].side[side])->lane;
	all_arrived();
	count_from_here();
}

/* Everything is closed, and nobody was told anything wrong. */
static void end_bed(void)
{
	all_arrived();
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	turn();
	turn();
	for (int side = 0; side < 2; side++) {
		assert_int_equal(bed.lane[side]->link->seated, 0);
		assert_int_equal(shunt_window_inflight(&bed.lane[side]->window) > bed.lane[side]->window.posted, 0);
	}
}

#define COUNTED(field) (bed.lane[0]->counters.field - bed.before.field)
#define WRS() (bed.lane[0]->sent - bed.wrs_before)
#define BYTES() (bed.lane[0]->window.posted - bed.bytes_before)
#define DATA_WRS() (COUNTED(direct) + COUNTED(merged))

/* Somebody else is using the lane. */
static void busy(void)
{
	shunt_lock_take(&bed.lane[0]->lock);
}

static void free_again(void)
{
	shunt_lock_leave(&bed.lane[0]->lock);
	shunt_lane_kick(bed.lane[0]);
}

/* --- merging and chaining (RB-02…05, RB-08) --- */

struct tally {
	uint64_t wr, doorbells, bytes;
};

/* The same sends in every mode: some alone, some while the lane is busy. */
static struct tally play(enum batch batch)
{
	struct shunt_config config = small_config(batch);
	struct tally tally;
	int sends = 0;

	config.ring_min = 256 << 10;
	make_bed(&config, 8);
	sim_random_state = 42;
	for (int round = 0; round < 200; round++) {
		bool stalled = sim_one_in(2);
		int burst = sim_between(1, 40);

		if (stalled)
			busy();
		for (int n = 0; n < burst; n++, sends++) {
			size_t bytes = sim_between(1, 1500);

			assert_int_equal(put(sim_below(8), 0, bytes, 0), bytes);
		}
		if (stalled)
			free_again();
		drain();
	}
	tally = (struct tally) { WRS(), COUNTED(doorbells), BYTES() };
	assert_true(batch == HYBRID || batch == MERGE || DATA_WRS() >= (uint64_t)sends);
	end_bed();
	return tally;
}

static void modes_relate(void **state)
{
	struct tally single = play(SINGLE), merge = play(MERGE), chain = play(CHAIN), hybrid = play(HYBRID);

	(void)state;
	assert_int_equal(single.wr, chain.wr);
	assert_int_equal(merge.wr, hybrid.wr);
	assert_true(single.wr > merge.wr);
	assert_int_equal(single.doorbells, single.wr);
	assert_int_equal(merge.doorbells, merge.wr);
	assert_true(single.doorbells > chain.doorbells);
	assert_true(hybrid.doorbells < merge.doorbells);
	assert_true(hybrid.doorbells <= chain.doorbells);
	assert_int_equal(single.bytes, hybrid.bytes);
	assert_int_equal(single.bytes, merge.bytes);
	assert_int_equal(single.bytes, chain.bytes);
	print_message("wr/doorbells: single %lu/%lu merge %lu/%lu chain %lu/%lu hybrid %lu/%lu\n", single.wr,
		      single.doorbells, merge.wr, merge.doorbells, chain.wr, chain.doorbells, hybrid.wr,
		      hybrid.doorbells);
}

static uint64_t thousand_sends(enum batch batch)
{
	struct shunt_config config = small_config(batch);
	uint64_t wrs;

	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	busy();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(put(0, 0, 64, 0), 64);
	assert_int_equal(WRS(), 0);
	free_again();
	assert_int_equal(BYTES(), 64000);
	wrs = WRS();
	end_bed();
	return wrs;
}

static void thousand_sends_one_wr(void **state)
{
	(void)state;
	assert_int_equal(thousand_sends(HYBRID), 1);
	assert_int_equal(thousand_sends(MERGE), 1);
	assert_int_equal(thousand_sends(SINGLE), 1000);
	assert_int_equal(thousand_sends(CHAIN), 1000);
}

/* Doorbells for one pending send on each of so many streams. */
static uint64_t doorbells_for(enum batch batch, int streams, int chain_max)
{
	struct shunt_config config = small_config(batch);
	uint64_t doorbells;

	config.chain_max = chain_max;
	make_bed(&config, streams);
	busy();
	for (int i = 0; i < streams; i++)
		put(i, 0, 100, 0);
	free_again();
	assert_int_equal(WRS(), streams);
	doorbells = COUNTED(doorbells);
	end_bed();
	return doorbells;
}

static void eight_streams_one_doorbell(void **state)
{
	(void)state;
	assert_int_equal(doorbells_for(HYBRID, 8, 16), 1);
	assert_int_equal(doorbells_for(CHAIN, 8, 16), 1);
	assert_int_equal(doorbells_for(MERGE, 8, 16), 8);
	assert_int_equal(doorbells_for(SINGLE, 8, 16), 8);
}

static void chain_has_a_limit(void **state)
{
	(void)state;
	assert_int_equal(doorbells_for(HYBRID, 10, 4), 3);
	assert_int_equal(doorbells_for(HYBRID, 10, 1), 10);
}

static void lone_request_is_not_delayed(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 64 << 10;	/* does not wrap */
	make_bed(&config, 2);
	for (int i = 0; i < 500; i++) {
		put(0, 0, 64, 0);
		assert_int_equal(DATA_WRS(), i + 1);	/* posted when the call returns */
		assert_int_equal(get(0, 0, 64), 64);
		put(0, 1, 64, 0);
		assert_int_equal(get(0, 1, 64), 64);
	}
	assert_int_equal(COUNTED(doorbells), WRS());
	assert_int_equal(COUNTED(direct), 500);
	assert_int_equal(COUNTED(staged_sends), 0);
	assert_int_equal(COUNTED(held), 0);
	end_bed();
}

/* --- the queue's interleavings (RB-06, PF-07) --- */

static int (*real_post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static void (*meanwhile)(void);
static int refusals;	/* posts that fail altogether */

/* "Meanwhile" another thread comes; it finds the lane taken. */
static int hooked_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	void (*then)(void) = meanwhile;

	meanwhile = NULL;
	if (then && qp == bed.lane[0]->qp)
		then();
	if (refusals && refusals--) {
		*bad = wr;
		return ENOMEM;
	}
	return real_post(qp, wr, bad);
}

static void hook(void (*then)(void))
{
	struct ibv_context *context = bed.lane[0]->qp->context;

	if (context->ops.post_send != hooked_post)
		real_post = context->ops.post_send;
	context->ops.post_send = hooked_post;
	meanwhile = then;
}

static void unhook(void)
{
	bed.lane[0]->qp->context->ops.post_send = real_post;
}

static void another_send(void)
{
	put(1, 0, 70, 0);
	assert_true(atomic_load(&bed.lane[0]->dirty));
}

/* The holder is already posting when another stream's bytes come: they go when it leaves. */
static void no_flush_is_lost(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 3);
	hook(another_send);
	put(0, 0, 64, 0);
	assert_int_equal(WRS(), 2);
	assert_int_equal(COUNTED(doorbells), 2);
	hook(another_send);	/* the same while it serves the queue */
	busy();
	put(2, 0, 10, 0);
	free_again();
	assert_int_equal(WRS(), 4);
	unhook();
	end_bed();
}

static void more_of_the_same(void)
{
	put(0, 0, 70, 0);
}

/* A stream comes back to the queue while its WRs are in a chain that has overflowed. */
static void queued_again_while_served(void **state)
{
	(void)state;
	for (int batch = SINGLE; batch <= HYBRID; batch++) {
		struct shunt_config config = small_config(batch);

		config.frag_bytes = 4096;
		config.chain_max = 2;
		config.ring_min = 64 << 10;
		make_bed(&config, 2);
		busy();
		for (int i = 0; i < 5; i++)
			put(0, 0, 3000, 0);
		hook(more_of_the_same);
		free_again();
		unhook();
		assert_int_equal(BYTES(), 15070);
		end_bed();
	}
}

static void four_more(void)
{
	for (int i = 1; i <= 4; i++)	/* threads 1 to 4: adjacent, of one stream */
		put(1, 0, 100, 0);
}

static void two_more(void)
{
	put(2, 0, 50, 0);	/* threads 5 and 6: of two streams */
	put(3, 0, 60, 0);
}

/* Figure 4: thread 0 drains what 1 to 4 left, merged; 5 and 6 share a doorbell; 7 goes alone. */
static void figure_4(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 5);
	hook(four_more);
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 2);
	assert_int_equal(COUNTED(doorbells), 2);
	assert_int_equal(BYTES(), 410);
	hook(two_more);
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 5);
	assert_int_equal(COUNTED(doorbells), 4);
	unhook();
	put(4, 0, 10, 0);
	assert_int_equal(WRS(), 6);
	assert_int_equal(COUNTED(doorbells), 5);
	end_bed();
}

/* --- MSG_MORE, TCP_CORK (PF-06) --- */

static void more_is_gathered(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	stream = stream_of(&bed.pair[0].side[0]);
	for (int i = 0; i < 10; i++)
		assert_int_equal(put(0, 0, 100, MSG_MORE), 100);
	assert_int_equal(WRS(), 0);
	put(0, 0, 100, 0);
	assert_int_equal(WRS(), 1);
	assert_int_equal(BYTES(), 1100);
	shunt_stream_corked(stream, true);
	put(0, 0, 100, 0);
	put(0, 0, 100, 0);
	drain();
	assert_int_equal(WRS(), 1);
	shunt_stream_corked(stream, false);
	assert_int_equal(WRS(), 2);
	put(0, 0, 50, MSG_MORE);	/* 200 ms is the most that it waits */
	turn();
	assert_int_equal(WRS(), 2);
	pair_skew += 100000000;
	turn();
	assert_int_equal(WRS(), 2);
	pair_skew += 250000000;
	turn();
	assert_int_equal(WRS(), 3);
	put(0, 0, 50, MSG_MORE);	/* nor does it wait beyond the end */
	shunt_stream_shutdown(engines[0], bed.pair[0].side[0].fd, stream, SHUT_WR);
	all_arrived();
	end_bed();
}

/* A full buffer or a full ring is not kept back for more. */
static void more_than_room_is_sent(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 60000, MSG_MORE), 60000);
	assert_int_equal(WRS(), 0);
	assert_int_equal(put(0, 0, 10000, MSG_MORE), 10000);
	assert_true(BYTES() >= 65536);
	put(0, 0, 1, 0);
	all_arrived();
	config.ring_min = config.ring_max = 4096;
	make_bed(&config, 1);
	while (put(0, 0, 1000, MSG_MORE))
		;
	assert_int_equal(BYTES(), bed.sent[0][0] - bed.received[0][0]);
	shunt_stream_corked(stream_of(&bed.pair[0].side[0]), false);
	end_bed();
}

/* --- a device that takes its time: autocork (CP-01) --- */

static void stall(bool on)
{
	soft_qp_fault(bed.lane[0]->qp, on ? SOFT_FAULT_STALL : SOFT_FAULT_NONE);
	if (!on)
		drain();
}

static void bytes_under_way_gather_more(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 2);
	stall(true);
	put(0, 0, 10, 0);	/* unsignaled: nobody could say when it is done, so it is not waited for */
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 2);
	for (int i = 0; i < 1000; i++)
		put(0, 0, 64, 0);
	assert_int_equal(WRS(), 2);
	put(1, 0, 10, 0);	/* another stream does not wait for this one's */
	assert_int_equal(WRS(), 3);
	stall(false);
	assert_int_equal(WRS(), 4);
	assert_true(COUNTED(held) > 0);
	end_bed();
}

/* The WR that would have told was refused: nobody waits for its completion. */
static void refused_wr_holds_nothing(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	hook(NULL);
	stall(true);
	put(0, 0, 10, 0);
	refusals = 2;	/* on the short way, and from the queue */
	put(0, 0, 10, 0);
	assert_int_equal(BYTES(), 10);
	put(0, 0, 10, 0);
	assert_int_equal(BYTES(), 20);	/* the last is held behind the second, which is signaled */
	unhook();
	stall(false);
	end_bed();
}

/* More than a fragment is not held; nor is the end. */
static void much_is_not_held(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	config.frag_bytes = 4096;
	make_bed(&config, 1);
	stall(true);
	put(0, 0, 10, 0);
	put(0, 0, 10, 0);
	put(0, 0, 3000, 0);
	assert_int_equal(WRS(), 2);
	put(0, 0, 3000, 0);
	assert_int_equal(WRS(), 4);
	put(0, 0, 10, 0);
	shunt_stream_shutdown(engines[0], bed.pair[0].side[0].fd, stream_of(&bed.pair[0].side[0]), SHUT_WR);
	assert_int_equal(WRS(), 6);
	stall(false);
	end_bed();
}

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
		assert_int_equal(ibv_poll_cq(engines[0]->group.cqs[0], 0, NULL), 0);	/* the device's turn */
		stall(true);
		shunt_group_poll(engines[0]);
	}
	stall(false);
	tally = (struct tally) { WRS(), COUNTED(doorbells), BYTES() };
	assert_int_equal(tally.bytes, 200 * 16 * 64);
	if (wrs)
		assert_true(bed.lane[0]->window.most_wrs <= wrs);
	end_bed();
	return tally;
}

static void window_shrinks_wrs_grow(void **state)
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

/* What is posted never exceeds the window, however much is offered; and all of it arrives. */
static void window_is_kept(void **state)
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
static void incast_without_rnr(void **state)
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
static void without_credit_there_is_rnr(void **state)
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

/* Receives are posted again, but who says so needs one: the LANE message has slots of its own (XR-20). */
static void mutual_starvation_ends(void **state)
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

/* --- the end of a link --- */

/* What a read says once the reader's link has died; `accepted`: the sender had bytes that it could not post. */
static ssize_t read_after_death(bool accepted)
{
	struct shunt_config config = small_config(HYBRID);
	uint8_t byte[200];
	ssize_t got;

	make_bed(&config, 1);
	put(0, 0, 100, 0);
	if (accepted) {
		busy();
		put(0, 0, 50, 0);
		shunt_lock_leave(&bed.lane[0]->lock);
	}
	shunt_link_kill(bed.lane[1]->link, "the test");
	assert_int_equal(receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT), 100);
	got = receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT);
	close_side(&bed.pair[0].side[1]);
	close_side(&bed.pair[0].side[0]);
	for (int i = 0; i < 10; i++)	/* the other engine hears of it, and lets its stream go */
		turn();
	return got;
}

/* Bytes that were accepted are lost with the link, and the kernel does not know of them. */
static void accepted_bytes_are_missed(void **state)
{
	(void)state;
	assert_int_equal(read_after_death(false), -EAGAIN);
	assert_int_equal(read_after_death(true), -ECONNRESET);
}

/* --- what the QP refuses (PF-10, PF-11) --- */

static void bad_wr_at_every_position(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 12; nth++) {
		struct shunt_config config = small_config(HYBRID);

		make_bed(&config, 10);
		busy();
		for (int i = 0; i < 10; i++)
			put(i, 0, 100 + i, 0);
		soft_qp_fail_post(bed.lane[0]->qp, nth);
		free_again();
		assert_int_equal(COUNTED(post_failures), nth <= 10);
		assert_int_equal(WRS(), nth <= 10 ? nth - 1 : 10);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 10);
		assert_int_equal(BYTES(), 1045);
		soft_qp_fail_post(bed.lane[0]->qp, 0);
		soft_qp_fail_post(bed.lane[0]->qp, 1);	/* and on the short way */
		put(0, 0, 64, 0);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 11);
		end_bed();
	}
}

static void unsignaled_chains_do_not_fill_the_queue(void **state)
{
	static const int every[] = { 1, 2, 31, 32, 63, 64, 1024 };

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct shunt_config config = small_config(SINGLE);

		config.sq_depth = 64;
		config.signal_every = every[i];
		config.window_wrs = config.window_bytes = 0;
		make_bed(&config, 2);
		for (int n = 0; n < 1000; n++) {
			assert_int_equal(put(n & 1, 0, 16, 0), 16);
			get(n & 1, 0, 16);
		}
		assert_int_equal(DATA_WRS(), 1000);
		assert_true(COUNTED(signaled) >= WRS() / (every[i] < 32 ? every[i] : 32) - 1);
		end_bed();
	}
}

/* --- statistics --- */

static uint64_t counted(const char *name)
{
	char wanted[32], *json, *found;
	uint64_t number;
	size_t bytes;

	snprintf(wanted, sizeof(wanted), "\"%s\":", name);
	json = shunt_stats_json(engines[0], &bytes);
	assert_non_null(json);
	found = strstr(json, wanted);
	assert_non_null(found);
	number = strtoull(found + strlen(wanted), NULL, 10);
	free(json);
	return number;
}

/* What a link's lane has counted stays in the statistics when the link is gone. */
static void ended_lanes_are_counted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t wrs, doorbells;

	(void)state;
	make_bed(&config, 2);
	for (int i = 0; i < 100; i++)
		put(i & 1, 0, 64, 0);
	end_bed();
	wrs = counted("wr");
	doorbells = counted("doorbells");
	assert_in_range(wrs, 100, 10000);
	shunt_group_remove_lane(engines[0], bed.lane[0]);
	assert_int_equal(counted("wr"), wrs);
	assert_int_equal(counted("doorbells"), doorbells);
	shunt_group_remove_lane(engines[0], bed.lane[0]);	/* it is not there any more */
	assert_int_equal(counted("wr"), wrs);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_relate),
		cmocka_unit_test(thousand_sends_one_wr),
		cmocka_unit_test(eight_streams_one_doorbell),
		cmocka_unit_test(chain_has_a_limit),
		cmocka_unit_test(lone_request_is_not_delayed),
		cmocka_unit_test(no_flush_is_lost),
		cmocka_unit_test(queued_again_while_served),
		cmocka_unit_test(figure_4),
		cmocka_unit_test(more_is_gathered),
		cmocka_unit_test(more_than_room_is_sent),
		cmocka_unit_test(bytes_under_way_gather_more),
		cmocka_unit_test(refused_wr_holds_nothing),
		cmocka_unit_test(much_is_not_held),
		cmocka_unit_test(window_shrinks_wrs_grow),
		cmocka_unit_test(window_is_kept),
		cmocka_unit_test(incast_without_rnr),
		cmocka_unit_test(without_credit_there_is_rnr),
		cmocka_unit_test(mutual_starvation_ends),
		cmocka_unit_test(accepted_bytes_are_missed),
		cmocka_unit_test(bad_wr_at_every_position),
		cmocka_unit_test(unsignaled_chains_do_not_fill_the_queue),
		cmocka_unit_test(ended_lanes_are_counted),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
