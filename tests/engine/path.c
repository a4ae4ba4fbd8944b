/* SPDX-License-Identifier: MIT */
/*
 * How much a stream keeps under way (core/lane/send_queue.h) over paths of a given rate and delay, which the soft
 * device's cost model has. Time is what the test says.
 */
#include "tests/engine/bed.h"
#include <stdio.h>
#include <string.h>
#include "core/device/soft/soft.h"
#include "core/lane/lane.h"
#include "core/lane/send_queue.h"

#define MS 1000000ull
#define MEGABIT 125000ull /* bytes a second */
#define STEP (MS / 10)

/* Bytes are kept until they have arrived, as between hosts. */
static struct shunt_config path(unsigned int ms, unsigned int gbit)
{
	struct shunt_config config = small_config(HYBRID);

	config.retain = 1;
	config.inline_bytes = 256;
	config.ring_min = config.ring_max = 4 << 20;
	config.slow_ms = 0;
	config.dead_ms = 60000;
	snprintf(config.soft_model, sizeof(config.soft_model), "delay=%u,gbit=%u", ms * 1000000,
		 gbit);
	return config;
}

static void make(const struct shunt_config *config)
{
	freeze_clock(true);
	make_bed(config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	for (int n = 0; !on_link(&bed.pair[0].side[0]); n++) {
		assert_true(n < 10000);
		put(0, 0, 1, 0);
		pair_skew += MS;
		turn();
		drain();
	}
	for (int side = 0; side < 2; side++)
		bed.lane[side] = stream_lane(stream_of(&bed.pair[0].side[side]));
}

/* The sender sends all the time. Bytes that have arrived meanwhile. */
static uint64_t send_for(uint64_t ns)
{
	uint64_t before = bed.received[0][0];

	for (uint64_t end = pair_skew + ns; pair_skew < end; pair_skew += STEP) {
		while (put(0, 0, BUFFER, 0))
			;
		turn();
		while (get(0, 0, BUFFER))
			;
	}
	return bed.received[0][0] - before;
}

static void let_arrive(void)
{
	for (int n = 0; !all_is_out(); n++) {
		assert_true(n < 1000);
		pair_skew += 10 * MS;
		drain();
	}
}

static uint32_t window(void)
{
	return shunt_send_queue_limit(stream_of(&bed.pair[0].side[0])->seat);
}

static void leave(void)
{
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int n = 0; n < 20; n++) {
		pair_skew += 10 * MS;
		turn();
	}
	assert_int_equal(atomic_load(&engines[0]->lanes.wide_windows), 0);
	assert_int_equal(bed.lane[0]->link->seated, 0);
	bed.pairs = 0;
	freeze_clock(false);
}

/* A round trip of 5 ms and 1 Gbit/s: 625 KB are under way. A stage of 64 KiB would bear a tenth of that. */
void a_window_is_as_large_as_the_path(void **state)
{
	struct shunt_config config = path(5, 1);

	(void)state;
	make(&config);
	assert_int_equal(window(), SHUNT_SEND_QUEUE_BYTES);
	send_for(1000 * MS);
	assert_true(send_for(500 * MS) > 500 * MEGABIT * 95 / 100);
	assert_in_range(window(), 1 << 20, 4 << 20);
	let_arrive();
	leave();
}

/* A sender that fills it need not sleep for each message of 64 KiB. On a short path a larger one would only fill queues. */
void a_short_path_keeps_a_small_window(void **state)
{
	struct shunt_config config = path(0, 1);

	(void)state;
	make(&config);
	send_for(3 * MS);
	assert_int_equal(window(), 4 * SHUNT_SEND_QUEUE_BYTES);
	send_for(200 * MS);
	assert_true(window() <= 8 * SHUNT_SEND_QUEUE_BYTES);
	let_arrive();
	leave();
}

void a_window_has_its_limit(void **state)
{
	struct shunt_config config = path(10, 1);

	(void)state;
	config.stage_max = 256 << 10;
	make(&config);
	send_for(1000 * MS);
	assert_int_equal(window(), 256 << 10);
	assert_int_equal(atomic_load(&engines[0]->lanes.wide_windows),
			 (256 << 10) - SHUNT_SEND_QUEUE_BYTES);
	let_arrive();
	leave();

	make(&config);
	/* Other streams have it all. */
	atomic_fetch_add(&engines[0]->lanes.wide_windows, 64 * config.stage_max);
	send_for(1000 * MS);
	assert_int_equal(window(), SHUNT_SEND_QUEUE_BYTES);
	let_arrive();
	atomic_fetch_sub(&engines[0]->lanes.wide_windows, 64 * config.stage_max);
	leave();
}

/* Memory goes back when nothing has been sent for some seconds, and what comes then is right. */
void a_quiet_window_becomes_small(void **state)
{
	struct shunt_config config = path(10, 1);
	struct shunt_stream *stream;

	(void)state;
	make(&config);
	stream = stream_of(&bed.pair[0].side[0]);
	send_for(500 * MS);
	let_arrive();
	assert_true(stream_memory(stream, STREAM_STAGE) > SHUNT_SEND_QUEUE_BYTES);
	for (int seconds = 0; seconds < 10; seconds++) {
		pair_skew += 1000 * MS;
		turn();
	}
	assert_true(stream_memory(stream, STREAM_STAGE) <= SHUNT_SEND_QUEUE_BYTES);
	assert_int_equal(window(), SHUNT_SEND_QUEUE_BYTES);
	send_for(500 * MS);
	assert_true(window() > SHUNT_SEND_QUEUE_BYTES);
	let_arrive();
	leave();
}

/* While windows grow the device fetches from two stages, and what a queue pair's death costs comes over TCP. */
void a_queue_pair_dies_while_windows_grow(void **state)
{
	struct shunt_config config = path(10, 1);

	(void)state;
	for (int at = 5; at < 300; at += 7) {
		uint32_t widest;

		make(&config);
		send_for(at * MS);
		widest = window();
		soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_KILL);
		for (int n = 0; !all_is_out(); n++) {
			assert_true(n < 2000);
			put(0, 0, 100, 0);
			pair_skew += 10 * MS;
			drain();
		}
		assert_true(at < 200 || widest > SHUNT_SEND_QUEUE_BYTES);
		assert_int_equal(counted(0, "failovers"), 1);
		leave_bed();
		freeze_clock(false);
	}
}
