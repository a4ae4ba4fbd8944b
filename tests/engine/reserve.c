/* SPDX-License-Identifier: MIT */
/*
 * Reservations, with a clock of the test's own. A client's posts have tokens; its fetches and reports are counted.
 * The node is silent or late, rules come and go, and the node sends bytes itself.
 */
#include "tests/engine/reserve.h"
#include <stdio.h>
#include <string.h>
#include "core/device/soft/soft.h"

#define AHEAD 64 /* tokens that a new period begins with; as a test looks they may have been taken */

struct shunt_config reserve_config(const char *rules)
{
	struct shunt_config config = small_config(HYBRID);

	strcpy(config.qos_rules, rules);
	config.lanes = 2;
	config.ring_min = config.ring_max;
	return config;
}

struct shunt_link *link_of(int i, int side)
{
	return stream_link(stream_of(&bed.pair[i].side[side]));
}

struct shunt_throttle *throttle_of(int side)
{
	return bed.lane[side]->link->throttle;
}

struct shunt_monitor *monitor(void)
{
	return engines[1]->service->monitor;
}

struct shunt_qos *node(void)
{
	return engines[1]->service->qos;
}

static uint64_t tokens_of(int side)
{
	return atomic_load(&throttle_of(side)->tokens);
}

static uint64_t faas(void)
{
	return atomic_load(&throttle_of(0)->account.faas);
}

static uint64_t reports(void)
{
	return atomic_load(&throttle_of(0)->fetch.reports);
}

void make(const struct shunt_config *config, int pairs)
{
	freeze_clock(true);
	make_bed(config, pairs);
}

void set_rules(const char *rules)
{
	char error[SHUNT_QOS_ERROR];

	assert_int_equal(shunt_qos_set(engines[1]->service, rules, error, sizeof(error)), 0);
	turn();
}

void check_ledger(void)
{
	const struct shunt_ledger *ledger = &monitor()->ledger;

	assert_true(ledger->returned <= ledger->reserved);
	assert_true(ledger->reserved + ledger->drawn - ledger->returned + ledger->pooled <=
		    ledger->capacity);
}

void play_ms(int side, size_t bytes)
{
	for (int i = 0; i < bed.pairs; i++)
		for (int n = 0; bytes && n < 1000 && put(i, side, bytes, 0) == bytes; n++)
			;
	pair_skew += MS;
	drain();
}

void play(int side, size_t bytes, int ms)
{
	while (ms--)
		play_ms(side, bytes);
}

void next_period(int side, size_t bytes)
{
	uint16_t number = monitor()->ledger.number;

	for (int ms = 0; monitor()->ledger.number == number; ms++) {
		assert_true(ms < 20000);
		play_ms(side, bytes);
	}
	turn(); /* the client hears of it */
}

void let_out(void)
{
	for (int i = 0; i < 10000; i++) {
		if (all_is_out())
			return;
		pair_skew += MS;
		drain();
	}
	fail_msg("something is held for ever");
}

void end(void)
{
	set_rules("");
	let_out();
	end_bed();
	freeze_clock(false);
}

/* --- the client --- */

/* Of each period it has nearly all, and never more than all of those that have begun. */
static void check_periods(const char *rules, bool paced)
{
	struct shunt_config config = reserve_config(rules);
	uint64_t all = 0;

	config.qos_pace = paced;
	make(&config, 4);
	for (int period = 1; period <= 20; period++) {
		next_period(0, 32768);
		check_ledger();
		all += shunt_tally_period(&node()->node, 0)->taken[0];
		assert_true(all <= period * CAPACITY / 5);
		if (period > 1)
			assert_in_range(shunt_tally_period(&node()->node, 0)->taken[0],
					CAPACITY / 5 * 97 / 100, CAPACITY / 5 * 102 / 100);
	}
	assert_true(shunt_throttle_bytes(throttle_of(0)) <= tokens_of(0) * SHUNT_TOKEN_BYTES);
	assert_int_equal(node()->classes[0].tally.missed, 0);
	assert_int_equal(node()->classes[0].cheats, 0);
	end();
}

static void the_client_needs_tokens(void **state)
{
	(void)state;
	for (int paced = 0; paced < 2; paced++) {
		check_periods("period 200ms; capacity 100Mbit; class all reserve=100%", paced);
		check_periods("period 200ms; capacity 100Mbit; class all reserve=50%", paced);
		check_periods("period 200ms; capacity 100Mbit; class all", paced);
	}
}

/* One batch for so many tokens, and one ahead. */
static void it_fetches_by_batches(void **state)
{
	enum { BATCH = 100, DEMAND = 1000 };
	struct shunt_config config = reserve_config(
		"period 1s; capacity 100Mbit; batch 100; class all");
	uint64_t before, tokens;

	(void)state;
	config.qos_pace = false;
	config.lanes = 1;
	make(&config, 1);
	next_period(0, 0);
	play(0, 0, 10);
	before = faas();
	tokens = tokens_of(0);
	while (tokens_of(0) - tokens < DEMAND) {
		put(0, 0, 4096, 0);
		drain();
		pair_skew += MS / 4;
	}
	assert_in_range(faas() - before, (tokens_of(0) - tokens) / BATCH,
			(tokens_of(0) - tokens + BATCH - 1) / BATCH + 1);
	assert_int_equal(atomic_load(&throttle_of(0)->fetch.fetches), faas());
	/* A client that sends nothing fetches nothing. */
	before = faas();
	play(0, 0, 3000);
	assert_int_equal(faas(), before);
	end();
}

static void an_empty_pool_is_asked_seldom(void **state)
{
	struct shunt_config config = reserve_config("period 1s; capacity 100Mbit; class all");
	uint64_t before, refused;

	(void)state;
	config.qos_pace = false;
	make(&config, 4);
	next_period(0, 32768);
	play(0, 32768, 50);
	assert_int_equal(monitor()->ledger.drawn, monitor()->ledger.capacity);
	before = faas();
	refused = faas() - atomic_load(&throttle_of(0)->fetch.fetches);
	for (int quarter = 0; quarter < 4 * 900; quarter++) { /* looks in between are no reason to ask */
		pair_skew += MS / 4;
		drain();
	}
	assert_in_range(faas() - before, 900 / 8, 900 / 4 + 3);
	assert_true(faas() - atomic_load(&throttle_of(0)->fetch.fetches) > refused);
	end();
}

static void reports_are_asked_for(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=100%");
	uint64_t before;

	(void)state;
	make(&config, 4);
	next_period(0, 32768);
	/* Nobody draws: nobody is asked. */
	before = reports();
	play(0, 32768, 1000);
	assert_int_equal(reports(), before);
	assert_false(throttle_of(0)->fetch.asked);
	/* A client that draws and reserves nothing reports that once in a period. */
	set_rules("period 200ms; capacity 100Mbit; class all");
	next_period(0, 32768);
	before = reports();
	for (int period = 0; period < 5; period++)
		next_period(0, 32768);
	assert_in_range(reports() - before, 4, 6);
	play(0, 32768, 50);
	assert_true(throttle_of(0)->fetch.asked);
	end();
}

/* --- a node that is late, silent, or gone --- */

static void turn_client(void)
{
	shunt_service_step(engines[0], 0);
	shunt_group_poll_fully(&engines[0]->group);
}

/* The node does nothing: it has the client's tokens for two periods, then as if there were none. */
static void a_silent_node_is_no_node(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=100%");
	uint64_t begun, all;

	(void)state;
	make(&config, 1);
	next_period(0, 32768);
	let_out();
	next_period(0, 0);
	begun = tokens_of(0);
	for (int ms = 0; ms < 390; ms++) {
		put(0, 0, 4096, 0);
		pair_skew += MS;
		turn_client();
	}
	all = tokens_of(0) - begun;
	assert_true(all <= CAPACITY / 5);
	for (int ms = 0; ms < 20; ms++) {
		pair_skew += MS;
		turn_client();
	}
	assert_true(shunt_account_lapsed(&throttle_of(0)->account, engines[0]->sys->now()));
	for (int n = 0; n < 1000 && put(0, 0, 32768, 0); n++)
		turn_client();
	assert_true(tokens_of(0) - begun > all);
	/* The node is back: a period late its beat begins anew, and the client is in order. */
	next_period(0, 0);
	let_out();
	next_period(0, 0);
	assert_false(shunt_account_lapsed(&throttle_of(0)->account, engines[0]->sys->now()));
	begun = tokens_of(0);
	for (int period = 0; period < 5; period++)
		next_period(0, 32768);
	assert_in_range(tokens_of(0) - begun, CAPACITY * 97 / 100, CAPACITY + AHEAD);
	assert_int_equal(node()->classes[0].cheats, 0);
	end();
}

/* One period is late by a half: the client has what it had, and no more, until it comes. */
static void a_late_period(void **state)
{
	struct shunt_config config = reserve_config(
		"period 200ms; capacity 100Mbit; class all reserve=100%");
	uint64_t begun;

	(void)state;
	make(&config, 4);
	next_period(0, 32768);
	begun = tokens_of(0);
	for (int ms = 0; ms < 300; ms++) {
		for (int i = 0; i < bed.pairs; i++)
			put(i, 0, 32768, 0);
		pair_skew += MS;
		turn_client();
		shunt_group_poll_fully(&engines[1]->group);
		for (int i = 0; i < bed.pairs; i++)
			get(i, 0, BUFFER);
	}
	assert_true(tokens_of(0) - begun <= CAPACITY / 5 + AHEAD);
	begun = tokens_of(0);
	next_period(0, 32768);
	next_period(0, 32768);
	assert_true(tokens_of(0) - begun <= 2 * CAPACITY / 5 + AHEAD);
	end();
}

/* --- rules that come and go --- */

static void without_a_capacity_there_is_nothing(void **state)
{
	struct shunt_config config = reserve_config("class other port=1 limit=1Gbit");

	(void)state;
	make(&config, 1);
	assert_null(monitor());
	for (int side = 0; side < 2; side++) {
		assert_null(throttle_of(side));
		assert_null(bed.lane[side]->window.gate);
		assert_false(shunt_task_waits(&engines[side]->service->tasks.qos));
	}
	set_rules("period 200ms; capacity 100Mbit; class all reserve=50%");
	play(0, 32768, 500);
	assert_non_null(bed.lane[0]->window.gate);
	assert_non_null(bed.lane[1]->window.gate);
	assert_int_equal(monitor()->pools[0].links, 1);
	set_rules("");
	let_out();
	turn();
	for (int side = 0; side < 2; side++) {
		assert_null(bed.lane[side]->window.gate);
		assert_false(throttle_of(side)->counted);
		assert_false(shunt_task_waits(&engines[side]->service->tasks.qos));
	}
	assert_int_equal(monitor()->members, 0);
	/* It keeps what it was lent; the page goes with the link. */
	set_rules("period 200ms; capacity 100Mbit; class all reserve=50%");
	assert_int_equal(monitor()->pools[0].links, 1);
	soft_qp_fault(bed.lane[1]->qp, SOFT_FAULT_KILL);
	for (int i = 0; i < 100 && monitor()->pools[0].links; i++) {
		put(0, 1, 1000, 0);
		pair_skew += MS;
		drain();
	}
	assert_int_equal(monitor()->pools[0].links, 0);
	assert_null(monitor()->pools[0].page.device);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
	freeze_clock(false);
}

/* --- what the node sends --- */

static struct shunt_engine *second; /* another client of the same node, of class b */
static struct shunt_engine *volatile kept[6], *volatile *keep = kept; /* LeakSanitizer shall find what is still alive */

static void step(void)
{
	turn();
	if (!second)
		return;
	shunt_service_step(second, 0);
	shunt_group_poll_fully(&second->group);
}

/* The first pair is of class a; another client of the same node is of class b, and has the second. */
static void make_two(const char *rules)
{
	struct shunt_config config = reserve_config(rules);
	struct shunt_engine *nodes, *first;

	strcpy(config.qos_class, "a");
	make(&config, 1);
	first = engines[0];
	nodes = engines[1];
	strcpy(config.qos_class, "b");
	make_engines(&config, true);
	*keep++ = first;
	*keep++ = engines[1];
	engines[1] = nodes;
	add_pair();
	second = first;
	assert_int_not_equal(link_of(0, 1)->throttle->class, link_of(1, 1)->throttle->class);
}

/* A millisecond in which `side` sends all that it can on the connections from `first` on. */
static void two_send_ms(int side, int first)
{
	size_t moved;

	for (int i = first; i < bed.pairs; i++)
		for (int n = 0; n < 1000 && put(i, side, 32768, 0); n++)
			;
	pair_skew += MS;
	do {
		moved = 0;
		step();
		for (int i = 0; i < bed.pairs; i++)
			moved += get(i, side, BUFFER);
	} while (moved);
}

static void end_two(int side)
{
	for (int ms = 0; ms < 10000 && (bed.received[0][side] < bed.sent[0][side] ||
					bed.received[1][side] < bed.sent[1][side]);
	     ms++)
		two_send_ms(side, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(bed.received[i][side], bed.sent[i][side]);
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	for (int i = 0; i < 10; i++)
		step();
	second = NULL;
	freeze_clock(false);
}

/* Its sends to all are the capacity; of two classes each has its part, by weight. */
static void own_sends_are_shared(void **state)
{
	uint64_t before[2], had[2];

	(void)state;
	make_two(
		"period 200ms; capacity 100Mbit; class a declared=a reserve=60%; class b declared=b reserve=20%");
	for (int ms = 0; ms < 100; ms++)
		two_send_ms(1, 0);
	for (int i = 0; i < 2; i++)
		before[i] = atomic_load(&link_of(i, 1)->throttle->tokens);
	for (int ms = 0; ms < 2000; ms++)
		two_send_ms(1, 0);
	for (int i = 0; i < 2; i++)
		had[i] = atomic_load(&link_of(i, 1)->throttle->tokens) - before[i];
	assert_in_range(had[0] + had[1], 2 * CAPACITY * 98 / 100, 2 * CAPACITY * 102 / 100);
	assert_in_range(had[0], 2 * CAPACITY * 73 / 100, 2 * CAPACITY * 77 / 100);
	end_two(1);
}

/* After it has sent for a while: nothing that is still in flight then is demand. The other has it, up to its limit. */
static void what_an_idle_client_leaves(void **state)
{
	static const char *const rules[] = {
		"period 200ms; capacity 100Mbit; class a declared=a reserve=60%; class b declared=b reserve=20%",
		"period 200ms; capacity 100Mbit; class a declared=a reserve=60%; class b declared=b limit=10Mbit",
	};

	(void)state;
	for (int way = 0; way < 2; way++) {
		uint64_t had = 0;

		make_two(rules[way]);
		for (int ms = 0; ms < 1000; ms++)
			two_send_ms(0, 0);
		for (int ms = 0; ms < 4000; ms++) {
			two_send_ms(0, 1);
			check_ledger();
		}
		for (uint32_t n = 0; n < 15; n++)
			had += shunt_tally_period(&node()->node, n)->taken[1];
		if (!way)
			assert_in_range(had, 3 * CAPACITY * 93 / 100, 3 * CAPACITY);
		else /* it fetches what it can use, and a batch */
			assert_in_range(monitor()->ledger.drawn, 0,
					CAPACITY / 50 * 102 / 100 + 2 * monitor()->batch);
		end_two(0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_client_needs_tokens),
		cmocka_unit_test(it_fetches_by_batches),
		cmocka_unit_test(an_empty_pool_is_asked_seldom),
		cmocka_unit_test(reports_are_asked_for),
		cmocka_unit_test(a_silent_node_is_no_node),
		cmocka_unit_test(a_late_period),
		cmocka_unit_test(without_a_capacity_there_is_nothing),
		cmocka_unit_test(own_sends_are_shared),
		cmocka_unit_test(what_an_idle_client_leaves),
		cmocka_unit_test(nonsense_is_distrusted),
		cmocka_unit_test(a_false_page_is_distrusted),
		cmocka_unit_test(any_period_is_obeyed),
		cmocka_unit_test(hostile_reports),
		cmocka_unit_test(a_pool_that_a_client_fills),
		cmocka_unit_test(many_clients_come),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_log_set_level(SHUNT_LOG_NONE);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
