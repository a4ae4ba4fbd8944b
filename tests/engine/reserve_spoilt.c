/* SPDX-License-Identifier: MIT */
/* Hostile ends, where a node hands out tokens: messages that make no sense, and words that a client may write. */
#include "tests/engine/reserve.h"
#include <unistd.h>
#include "core/peer/hear.h"

/* --- what a peer may not say --- */

#define PERIOD(...) { .type = SHUNT_MSG_QOS_PERIOD, .period = { __VA_ARGS__ } }
#define GOOD_PERIOD .rate = 3051757, .number = 500, .period_ms = 200, .reservation = 100, .batch = 10

static const struct {
	int to; /* 0: the client */
	struct shunt_message message;
} bad[] = {
	{ 0, { .type = SHUNT_MSG_QOS_PERIOD, .stream = 1 } },
	{ 0, PERIOD(GOOD_PERIOD, .zero = 1) },
	{ 0, PERIOD(GOOD_PERIOD, .paced = 2) },
	{ 0, PERIOD(.rate = 3051757, .number = 65536, .period_ms = 200, .batch = 10) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 99, .batch = 10) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 10001, .batch = 10) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 200) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 200, .batch = 1001) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 200, .batch = UINT32_MAX) },
	{ 0, PERIOD(.rate = 3051757, .number = 500, .period_ms = 200, .batch = 10, .reservation = 1u << 28) },
	{ 0, PERIOD(.rate = 0, .number = 500, .period_ms = 200, .batch = 10) },
	{ 0, PERIOD(.rate = UINT64_MAX, .number = 500, .period_ms = 200, .batch = 10) },
	{ 0, PERIOD(.rate = 3051757) },
	{ 0, PERIOD(.number = 1) },
	{ 0, PERIOD(.reservation = 1) },
	{ 0, PERIOD(.batch = 1) },
	{ 0, PERIOD(.paced = 1) },
	{ 0, PERIOD(.zero = 1) },
	/* It has a pool. */
	{ 0, { .type = SHUNT_MSG_QOS_POOL } },
	{ 0, { .type = SHUNT_MSG_QOS_POOL, .pool = { .address = 4096, .rkey = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_POOL, .stream = 1 } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .number = 65536 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .rate = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .period_ms = 200 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .reservation = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .batch = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .paced = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .zero = 1 } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .stream = 1 } },
	{ 1, PERIOD(GOOD_PERIOD) },
	{ 1, { .type = SHUNT_MSG_QOS_PERIOD } },
	{ 1, { .type = SHUNT_MSG_QOS_POOL, .pool = { .address = 4096, .rkey = 1 } } },
	{ 1, { .type = SHUNT_MSG_QOS_REPORT, .qos = { .period_ms = 200 } } },
};

static void end_distrusted(void)
{
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
}

void nonsense_is_distrusted(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=50%");

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make_bed(&config, 1);
		assert_int_equal(atomic_load(&engines[bad[i].to]->links.distrusted), 0);
		role_hear(link_of(0, bad[i].to), &bad[i].message, NULL, 0);
		if (atomic_load(&engines[bad[i].to]->links.distrusted) != 1)
			fail_msg("message %zu is taken", i);
		end_distrusted();
	}
}

/* A page without a descriptor, with another thing's, with too many; at an invalid address; and before a period. */
void a_false_page_is_distrusted(void **state)
{
	struct shunt_config config = reserve_config("class other port=1 limit=1Gbit");
	struct shunt_message period = PERIOD(GOOD_PERIOD);
	struct shunt_message pool = { .type = SHUNT_MSG_QOS_POOL, .pool = { .address = 4096, .rkey = 1 } };
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	for (int way = 0; way < 6; way++) {
		const int fds[] = { way == 5 ? STDOUT_FILENO : ends[0], ends[1] };

		make_bed(&config, 1);
		if (way)
			role_hear(link_of(0, 0), &period, NULL, 0);
		pool.pool.address = way == 2 ? 4097 : 4096;
		pool.pool.zero = way == 3;
		role_hear(link_of(0, 0), &pool, fds, way == 1 ? 0 : way == 4 ? 2 : 1);
		if (atomic_load(&engines[0]->links.distrusted) != 1)
			fail_msg("page %d is taken", way);
		end_distrusted();
	}
	close(ends[0]);
	close(ends[1]);
}

/* A node may say any sound period: the client goes on, also where the numbers jump. */
void any_period_is_obeyed(void **state)
{
	struct shunt_config config = reserve_config("class other port=1 limit=1Gbit");
	struct shunt_message period = PERIOD(GOOD_PERIOD);

	(void)state;
	make(&config, 1);
	for (uint32_t n = 0; n < 500; n++) {
		period.period.number = n % 3 ? n : n * 7919 & UINT16_MAX;
		period.period.reservation = n * 0x9e3779b9u >> (4 + n % 20);
		period.period.batch = 1 + n % 1000;
		period.period.rate = SHUNT_RATE_MIN << n % 20;
		period.period.paced = n & 1;
		role_hear(link_of(0, 0), &period, NULL, 0);
		for (int i = 0; i < 5; i++)
			put(0, 0, 32768, 0);
		pair_skew += n % 50 * MS;
		drain();
	}
	pair_skew += 1000 * MS; /* the node has gone silent */
	let_out();
	assert_int_equal(atomic_load(&engines[0]->links.distrusted), 0);
	end_bed();
	freeze_clock(false);
}

/* --- words that a client may spoil --- */

static uint64_t *report_word(void)
{
	return &((struct shunt_control *)bed.lane[1]->link->arena_base)->word[SHUNT_CONTROL_REPORT];
}

void hostile_reports(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=60%");

	(void)state;
	make(&config, 1);
	for (int period = 1; period <= 20; period++) {
		uint8_t tag = (uint8_t)monitor()->ledger.number;
		const uint64_t words[] = { 0,
					   UINT64_MAX,
					   shunt_report_word(tag, 0, 0),
					   shunt_report_word(tag, SHUNT_ACCOUNT_MOST,
							     SHUNT_ACCOUNT_MOST),
					   shunt_report_word(tag, SHUNT_ACCOUNT_MOST, 0),
					   shunt_report_word(tag, 0, SHUNT_ACCOUNT_MOST),
					   shunt_report_word((uint8_t)(tag + 1), 0, 0),
					   shunt_report_word(tag, throttle_of(1)->granted + 1, 0) };

		for (int ms = 0; ms < 200; ms++) {
			__atomic_store_n(report_word(), words[(ms + period) % 8], __ATOMIC_RELAXED);
			play_ms(0, 32768);
			check_ledger();
		}
	}
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
	end();
}

/* The client fills the pool itself. It is named, and has no more than the ledger allows and a ring. */
void a_pool_that_a_client_fills(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=10%");
	uint64_t begun, periods;

	(void)state;
	config.qos_pace = false;
	make(&config, 1);
	next_period(0, 0);
	begun = bed.received[0][0];
	periods = monitor()->ledger.number;
	for (int ms = 0; ms < 4000; ms++) {
		struct shunt_pool *pool = &monitor()->pools[0];

		atomic_store(&pool->page.words[0],
			     shunt_pool_word(monitor()->ledger.number, 1ll << (ms % 47)));
		play_ms(0, 32768);
		check_ledger();
	}
	periods = monitor()->ledger.number - periods + 1;
	assert_true(monitor()->pools[0].accused);
	assert_true(throttle_of(1)->holding.times > 0);
	assert_true(bed.received[0][0] - begun <=
		    periods * (CAPACITY / 5 + CAPACITY / 5 / 64 + 2 * 1000) * SHUNT_TOKEN_BYTES +
			    2 * config.ring_max);
	/* Words of another period, and of less than nothing, are no tokens. */
	for (int ms = 0; ms < 1000; ms++) {
		struct shunt_pool *pool = &monitor()->pools[0];
		const uint64_t words[] = {
			0, UINT64_MAX, shunt_pool_word(monitor()->ledger.number, -(1ll << 46)),
			shunt_pool_word(monitor()->ledger.number + 2u, 1 << 20)
		};

		atomic_store(&pool->page.words[0], words[ms % 4]);
		play_ms(0, 32768);
		check_ledger();
	}
	end();
}
