/* SPDX-License-Identifier: MIT */
/* The rule about slow completions (core/peer/mock.h): when it moves streams to TCP, when it lets them return, when not. */
#include "tests/engine/bed.h"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "core/peer/mock.h"
#include "core/service.h"

#define MS 1000000ull

static struct shunt_config slow_config(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.slow_ms = 100;
	config.slow_times = 3;
	config.return_ms = 1000;
	config.return_max_ms = 4000;
	return config;
}

/* The clock runs ahead of the kernel's, so nothing may wait for an acknowledgement. */
static void make(const struct shunt_config *config)
{
	int on = 1;

	make_bed(config, 1);
	setsockopt(bed.pair[0].side[0].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* So many looks of the service thread, and as much time for each. */
static void looks(int count, uint64_t ms)
{
	for (int n = 0; n < count; n++) {
		pair_skew += (ms + 1) * MS;
		turn();
	}
}

static uint8_t held(int side)
{
	return stream_held(stream_of(&bed.pair[0].side[side]));
}

/* A device that carries nothing out, until the streams are held. How many looks that took. */
static int until_held(void)
{
	int n = 0;

	stall(true);
	put(0, 0, 100, 0);
	put(0, 0, 100, 0);
	for (; !held(0); n++) {
		assert_true(n < 20);
		looks(1, 100);
	}
	stall(false);
	return n;
}

static void until_back(void)
{
	for (int n = 0; held(0) || !on_link(&bed.pair[0].side[0]); n++) {
		assert_true(n < 1000);
		put(0, 0, 10, 0);
		looks(1, 10);
		drain();
	}
}

void slow_completions_move_streams(void **state)
{
	struct shunt_config config = slow_config();
	uint64_t start;

	(void)state;
	make(&config);
	assert_in_range(until_held(), 3, 5);	/* the first look only notes what is under way */
	assert_int_equal(counted(0, "slow_lanes"), 1);
	assert_int_equal(held(0), SHUNT_HELD_SLOW);
	assert_int_equal(held(1), 0);		/* the other direction's completions come */
	put(0, 0, 1000, 0);
	turn();
	put(0, 0, 1000, 0);
	assert_false(stream_sends_on_link(stream_of(&bed.pair[0].side[0])));
	assert_int_equal(counted(0, "slow completions"), 1);
	assert_int_equal(counted(1, "slow completions"), 0);
	start = shunt_now(engines[0]);
	until_back();
	assert_true(shunt_now(engines[0]) - start >= 500 * MS);
	until_held();	/* soon again: twice as long */
	assert_int_equal(bed.lane[0]->slow.hold, 2000 * MS);
	until_back();
	assert_int_equal(counted(0, "slow_lanes"), 2);
	end_bed();
}

static int lines;

static ssize_t count_line(int fd, const void *text, size_t bytes)
{
	(void)fd;
	lines += memmem(text, bytes, "no completion for", 17) != NULL;
	return (ssize_t)bytes;
}

/* The longest hold is said once. So a link that stays slow costs no line for each. */
void a_link_that_stays_slow_is_said_no_more(void **state)
{
	static const struct shunt_log_calls counting = { .write = count_line };
	struct shunt_config config = slow_config();

	(void)state;
	make(&config);
	lines = 0;
	shunt_log_setup(SHUNT_LOG_WARN, NULL, &counting);
	for (int n = 0; n < 6; n++) {
		until_held();
		until_back();
	}
	shunt_log_setup(SHUNT_LOG_WARN, NULL, NULL);
	assert_int_equal(counted(0, "slow_lanes"), 6);
	assert_int_equal(lines, 3);	/* 1, 2 and 4 s */
	end_bed();
}

static void stays_though_slow(const struct shunt_config *config)
{
	make(config);
	stall(true);
	put(0, 0, 100, 0);
	put(0, 0, 100, 0);
	looks(20, 100);
	assert_int_equal(held(0), 0);
	assert_int_equal(counted(0, "slow_lanes"), 0);
	stall(false);
	end_bed();
}

void rdma_stays_though_slow(void **state)
{
	struct shunt_config config = slow_config();

	(void)state;
	config.mock = SHUNT_MOCK_RDMA;
	stays_though_slow(&config);
}

void who_needs_tokens_stays_though_slow(void **state)
{
	struct shunt_config config = slow_config();

	(void)state;
	strcpy(config.qos_rules, "capacity 1Mops");
	stays_though_slow(&config);
}

/* Not twice in a row; a reader that does not read; nothing to do: none of these is slow. */
void ordinary_use_is_not_slow(void **state)
{
	struct shunt_config config = slow_config();

	(void)state;
	make(&config);
	for (int n = 0; n < 10; n++) {
		stall(true);
		put(0, 0, 100, 0);
		put(0, 0, 100, 0);
		looks(2, 100);
		stall(false);
		looks(2, 100);
	}
	while (put(0, 0, BUFFER, 0))
		turn();
	looks(20, 100);
	drain();
	looks(20, 100);
	assert_int_equal(counted(0, "slow_lanes"), 0);
	assert_false(shunt_task_waits(&engines[0]->loop.requests.mock));	/* and nothing is looked at */
	end_bed();
}

/* So many WRs are under way that they take several looks, and some of them are carried out between any two. */
void a_full_lane_is_not_slow(void **state)
{
	struct shunt_config config = slow_config();
	uint64_t retired, posted = 0;

	(void)state;
	snprintf(config.soft_model, sizeof(config.soft_model), "wqe=%llu", 30 * MS);
	config.batch = SINGLE;
	config.signal_every = 1;
	config.dead_ms = 60000;
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	for (int n = 0; !on_link(&bed.pair[0].side[0]); n++) {
		assert_true(n < 1000);
		put(0, 0, 1, 0);
		looks(1, 50);
		drain();
	}
	bed.lane[0] = stream_lane(stream_of(&bed.pair[0].side[0]));
	bed.lane[1] = stream_lane(stream_of(&bed.pair[0].side[1]));
	retired = atomic_load(&bed.lane[0]->retired);
	for (int n = 0; n < 40; n++) {
		for (int i = 0; i < 12 && posted < 12 + atomic_load(&bed.lane[0]->retired) - retired; i++)
			posted += put(0, 0, 100, 0) == 100;
		looks(1, 100);
		get(0, 1, BUFFER);
	}
	assert_in_range(atomic_load(&bed.lane[0]->retired) - retired, 80, 200);
	assert_int_equal(counted(0, "slow_lanes"), 0);
	for (int n = 0; n < 40; n++) {
		looks(1, 100);
		drain();
	}
	all_arrived();
	leave_bed();
	looks(40, 100);
	assert_int_equal(bed.lane[0]->link->seated, 0);
}
