/* SPDX-License-Identifier: MIT */
/*
 * The engine over the soft device's cost model, in virtual time: the same each time, however fast the machine is. Streams
 * are the papers' IO threads (RB-E1), and a send is late by what the modelled device and the engine's modes make of it
 * (RB-E6). The lines with figures are what rb_e1.sh and rb_e6.sh of tests/bench/paper show.
 */
#include "tests/engine/bed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/device/soft/soft.h"
#include "core/lane/lane.h"

enum { STATIC, NONE = 2 };	/* words of `admit` */

#define MESSAGE 64
#define THREADS 12
#define BLOCK 4096
#define BLOCKS 2000	/* written by all threads of a run */
#define THINK 3000	/* ns between a thread's writes, as in tests/soft/iops.h */
#define RING (32 * BLOCK)	/* so a thread has 32 writes outstanding at most */
#define STEP 250	/* ns */

static void pass(uint64_t ns)
{
	pair_skew += ns;
	turn();
}

static void settle(void)
{
	for (int n = 0; !all_is_out(); n++) {
		assert_true(n < 1000);
		pass(1000000);
		drain();
	}
}

/* Streams that have nothing on TCP any more, whose time is not the test's. */
static void begin(const struct shunt_config *config, int streams)
{
	freeze_clock(true);
	make_bed(config, 0);
	for (int i = 0; i < streams; i++) {
		connect_pair(&bed.pair[i]);
		bed.pairs++;
		for (int n = 0; !on_link(&bed.pair[i].side[0]) ||
				!stream_sends_on_link(stream_of(&bed.pair[i].side[0]));
		     n++) {
			assert_true(n < 10000);
			put(i, 0, MESSAGE, 0);
			pass(1000000);
			drain();
		}
	}
	settle();
	for (int n = 0; n < 3; n++) {
		for (int i = 0; i < streams; i++)
			assert_int_equal(put(i, 0, MESSAGE, 0), MESSAGE);
		settle();
	}
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_lane(stream_of(&bed.pair[0].side[side]));
}

static void end(void)
{
	for (int i = 0; i < bed.pairs; i++)
		for (int side = 0; side < 2; side++)
			close_side(&bed.pair[i].side[side]);
	for (int n = 0; n < 20; n++)
		pass(10000000);
	assert_int_equal(bed.lane[0]->link->seated, 0);
	bed.pairs = 0;
	freeze_clock(false);
}

/* --- the NIC as the bottleneck (RB-E1) --- */

struct rates {
	uint64_t per_second[THREADS + 1];
	uint64_t outstanding[THREADS + 1];	/* work requests at most */
};

static uint64_t received_by_all(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i < bed.pairs; i++)
		bytes += bed.received[i][0];
	return bytes;
}

/* Each thread writes when it has thought, and sooner or later has no room. */
static uint64_t write_all(int threads)
{
	uint64_t began = pair_skew, ready[THREADS], before = received_by_all();

	for (int i = 0; i < threads; i++)	/* not all in step */
		ready[i] = began + (uint64_t)i * THINK / (uint64_t)threads;
	while (received_by_all() - before < (uint64_t)BLOCKS * BLOCK) {
		for (int i = 0; i < threads; i++)
			if (ready[i] <= pair_skew && put(i, 0, BLOCK, 0))
				ready[i] = pair_skew + THINK;
		pass(STEP);
		for (int i = 0; i < threads; i++)
			while (get(i, 0, BUFFER))
				;
	}
	return pair_skew - began;
}

static void sweep(const char *model, int admit, uint64_t window, struct rates *rates)
{
	for (int threads = 1; threads <= THREADS; threads++) {
		struct shunt_config config = small_config(SINGLE);
		struct soft_gauges gauges;

		config.ring_min = config.ring_max = RING;
		config.slow_ms = 0;
		config.admit = admit;
		config.window_bytes = window;
		strcpy(config.soft_model, model);
		begin(&config, threads);
		rates->per_second[threads] = (uint64_t)BLOCKS * 1000000000 / write_all(threads);
		soft_read_gauges(bed.lane[0]->qp->context, &gauges);
		rates->outstanding[threads] = gauges.wr_max;
		print_message("# engine %s %d %.1f %lu\n", admit == NONE ? model : "window",
			      threads, (double)rates->per_second[threads] / 1e3, gauges.wr_max);
		settle();
		end();
	}
}

static int peak_of(const struct rates *rates)
{
	int peak = 1;

	for (int n = 2; n <= THREADS; n++)
		if (rates->per_second[n] > rates->per_second[peak])
			peak = n;
	return peak;
}

/* Without a window more streams are worse than a few. The window keeps the peak, and so does a NIC without a cache. */
static void more_streams_are_worse_without_a_window(void **state)
{
	struct rates open, plateau, kept;
	int peak;

	(void)state;
	sweep("connectx3", NONE, 0, &open);
	sweep("connectx3,cache=0", NONE, 0, &plateau);
	peak = peak_of(&open);
	sweep("connectx3", STATIC, open.outstanding[peak] * BLOCK, &kept);
	assert_in_range(peak, 3, 5);
	assert_true(open.per_second[THREADS] * 10 < open.per_second[peak] * 9);
	assert_true(open.outstanding[THREADS] > 2 * open.outstanding[peak]);
	assert_true(plateau.per_second[THREADS] * 100 >=
		    plateau.per_second[peak_of(&plateau)] * 97);
	assert_true(kept.per_second[THREADS] * 100 >= open.per_second[peak] * 95);
}

/* --- the 99th percentile by mode (RB-E6) --- */

#define STREAMS 8
#define BURSTS 500
#define LATENCIES 16384

struct late {
	uint64_t ns[LATENCIES];
	int count;
	uint64_t sent_at[STREAMS][LATENCIES];	/* by the message's number of its stream */
};

/* All of a message have arrived. */
static void note_arrivals(struct late *late)
{
	for (int i = 0; i < STREAMS; i++) {
		uint64_t before = bed.received[i][0] / MESSAGE;

		while (get(i, 0, BUFFER))
			;
		for (; before < bed.received[i][0] / MESSAGE; before++)
			late->ns[late->count++] = pair_skew - late->sent_at[i][before];
	}
}

static void burst(struct late *late, int messages)
{
	if (messages > 1)	/* threads that meet at the merge queue */
		busy();
	for (int n = 0; n < messages; n++) {
		int i = (late->count + n * 5) % STREAMS;

		late->sent_at[i][bed.sent[i][0] / MESSAGE] = pair_skew;
		assert_int_equal(put(i, 0, MESSAGE, 0), MESSAGE);
	}
	if (messages > 1)
		free_again();
}

static int by_length(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Bursts come at times that do not depend on what has arrived: each mode has the same load. The 99th percentile, ns. */
static uint64_t latency(enum batch batch, int messages, uint64_t every)
{
	static const char *const words[] = { "single", "merge", "chain", "hybrid" };
	static struct late late;
	struct shunt_config config = small_config(batch);
	struct tally before, after;
	uint64_t next, p99;

	memset(&late, 0, sizeof(late));
	config.ring_min = config.ring_max = 256 << 10;
	config.slow_ms = 0;
	strcpy(config.soft_model, "connectx3");
	begin(&config, STREAMS);
	before = tally_so_far();
	next = pair_skew;
	for (int n = 0; n < BURSTS; n++, next += every) {
		for (; pair_skew < next; pass(10))
			note_arrivals(&late);
		burst(&late, messages);
	}
	for (; late.count < BURSTS * messages; pass(10)) {
		assert_true(pair_skew < next + 1000000);
		note_arrivals(&late);
	}
	after = tally_so_far();
	end();
	qsort(late.ns, (size_t)late.count, sizeof(*late.ns), by_length);
	p99 = late.ns[late.count * 99 / 100];
	print_message("# p99 %d %lu %s %lu %lu %lu\n", messages, every, words[batch], p99,
		      after.wr - before.wr, after.doorbells - before.doorbells);
	return p99;
}

/* Merging and chaining do not worsen the tail: alone, and where sends meet below and above what single posts bear. */
static void hybrid_has_no_longer_tail_than_single(void **state)
{
	static const struct {
		int messages;
		uint64_t every;
	} loads[] = { { 1, 2000 }, { 4, 2000 }, { 16, 4000 }, { 16, 2200 } };
	uint64_t p99[HYBRID + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		for (enum batch batch = SINGLE; batch <= HYBRID; batch++) {
			p99[batch] = latency(batch, loads[i].messages, loads[i].every);
			assert_true(p99[batch] * 10 <= p99[SINGLE] * 11);
		}
	/* The last load is more than single posts bear, and both halves of hybrid help. */
	assert_true(p99[HYBRID] * 4 < p99[SINGLE]);
	assert_true(p99[HYBRID] < p99[MERGE] && p99[HYBRID] < p99[CHAIN]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hybrid_has_no_longer_tail_than_single),
		cmocka_unit_test(more_streams_are_worse_without_a_window),
	};

	shunt_log_set_level(SHUNT_LOG_NONE);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
