/* SPDX-License-Identifier: MIT */
/*
 * Clients that send beyond their limit, with a clock of the test's own. The client has no gate, so its engine posts
 * all that its program gives it. The node holds it to the limit, and lets everything else go on.
 */
#include "tests/engine/bed.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/answer.h"
#include "core/device/soft/soft.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"
#include "core/stream/retire.h"

#define MS 1000000ull
#define LIMIT 3051757ull /* 100 Mbit/s, in thousandths of a token a second */
#define SECONDS 2
#define RING (256 << 10)
/* Bytes of the limit in the time of a test, and 2 % more. */
#define ALLOWED (SECONDS * LIMIT * SHUNT_TOKEN_BYTES / 1000 * 102 / 100)

static struct shunt_engine *second; /* another client of the same node */
static struct shunt_engine *volatile kept[2]; /* LeakSanitizer shall find what is still alive */

static struct shunt_link *link_of(int i, int side)
{
	return stream_link(stream_of(&bed.pair[i].side[side]));
}

/* The node's word on the first client. */
static struct shunt_holding *holding(void)
{
	return &link_of(0, 1)->throttle->holding;
}

static bool is_held(void)
{
	return holding()->state == SHUNT_HOLDS_LINK;
}

/* Again after each time that the client has been told another rate. */
static void take_gate(int i)
{
	struct shunt_link *link = link_of(i, 0);

	for (uint32_t n = 0; n < link->lane_count; n++)
		shunt_lane_set_gate(&link->lanes[n], NULL, 0);
}

static void make(int pairs)
{
	struct shunt_config config = small_config(HYBRID);

	strcpy(config.qos_rules, "class all limit=100Mbit");
	config.lanes = 2;
	config.arena_bytes = 256 << 20;
	config.ring_min = config.ring_max = RING;
	freeze_clock(true);
	make_bed(&config, 1);
	while (bed.pairs < pairs) {
		pair_skew += 100 * MS; /* a connection that comes to the link takes tokens, too */
		turn();
		add_pair();
	}
	second = NULL;
}

static void step(void)
{
	turn();
	if (!second)
		return;
	shunt_service_step(second, 0);
	shunt_group_poll_fully(&second->group);
}

/* Without a step of the clock: until nothing comes any more. */
static void read_all(void)
{
	size_t moved;

	do {
		moved = 0;
		step();
		for (int i = 0; i < bed.pairs; i++)
			moved += get(i, 0, BUFFER) + get(i, 1, BUFFER);
	} while (moved);
}

/* A millisecond: each client from `first` to `last` sends what it can, and the node's program reads. */
static void play_ms(int first, int last)
{
	for (int i = first; i <= last; i++)
		for (int n = 0; n < 1000 && put(i, 0, 32768, 0); n++)
			;
	pair_skew += MS;
	read_all();
}

static uint64_t received(int first, int last)
{
	uint64_t bytes = 0;

	for (int i = first; i <= last; i++)
		bytes += bed.received[i][0];
	return bytes;
}

/* Until all has arrived that was sent, with the time that it takes. */
static void let_out(void)
{
	for (int i = 0; i < 100000; i++) {
		if (all_is_out())
			return;
		pair_skew += MS;
		read_all();
	}
	fail_msg("it is held for ever");
}

static void end(void)
{
	let_out();
	end_bed();
	freeze_clock(false);
}

static void hold(void)
{
	take_gate(0);
	for (int i = 0; i < 100 && !is_held(); i++)
		play_ms(0, 0);
	assert_true(is_held());
}

/* --- its limit --- */

static void a_cheat_gets_its_limit(void **state)
{
	struct shunt_answer answer = { 0 };
	uint64_t before;

	(void)state;
	make(1);
	take_gate(0);
	before = received(0, 0);
	for (int ms = 0; ms < SECONDS * 1000; ms++)
		play_ms(0, 0);
	assert_in_range(received(0, 0) - before, ALLOWED * 90 / 100, ALLOWED + RING);
	assert_true(holding()->times > 0);
	assert_int_equal(engines[1]->service->qos->classes[0].cheats, 1);
	shunt_qos_show(engines[1]->service, &answer);
	assert_non_null(strstr(answer.text, "breaks the limit of class all: it was held"));
	assert_true(counted(1, "held") > 0);
	assert_true(counted(1, "cheats") > 0);
	end();
}

/* Each stream of it may fill its ring once; in the long run they have the limit together. A further one gets no seat. */
static void many_streams_of_a_cheat(void **state)
{
	enum { STREAMS = 16 };
	uint64_t before;

	(void)state;
	make(STREAMS);
	take_gate(0);
	before = received(0, STREAMS - 1);
	for (int ms = 0; ms < SECONDS * 1000; ms++)
		play_ms(0, STREAMS - 1);
	assert_in_range(received(0, STREAMS - 1) - before, ALLOWED * 90 / 100,
			ALLOWED + STREAMS * RING);
	while (!is_held())
		play_ms(0, STREAMS - 1);
	connect_pair(&bed.pair[bed.pairs++]);
	for (int i = 0; i < 100; i++) {
		put(STREAMS, 0, 1, 0);
		get(STREAMS, 0, 1);
		put(STREAMS, 1, 1, 0);
		get(STREAMS, 1, 1);
		step();
	}
	assert_int_equal(engines[1]->causes[SHUNT_CAUSE_NOT_ATTACHED], 1);
	assert_int_equal(bed.received[STREAMS][0], 100);
	end();
}

/* Two processes share the limit. That of the honest one is never held, and it gets its half. */
static void an_honest_client_beside_it(void **state)
{
	struct shunt_config config;
	struct shunt_engine *node, *first;
	uint64_t before[2];

	(void)state;
	make(1);
	config = engines[0]->config;
	first = engines[0];
	node = engines[1];
	make_engines(&config, true);
	kept[0] = first;
	kept[1] = engines[1];
	engines[1] = node;
	add_pair(); /* of the new engine */
	second = first;
	assert_ptr_not_equal(link_of(0, 1), link_of(1, 1));
	for (int ms = 0; ms < 2000; ms++) /* their portions are found */
		play_ms(0, 1);
	assert_int_equal(holding()->times, 0);
	take_gate(0);
	for (int i = 0; i < 2; i++)
		before[i] = received(i, i);
	for (int ms = 0; ms < SECONDS * 1000; ms++) {
		take_gate(0);
		play_ms(0, 1);
	}
	assert_true(holding()->times > 0);
	assert_int_equal(link_of(1, 1)->throttle->holding.times, 0);
	assert_in_range(received(1, 1) - before[1], ALLOWED * 45 / 100, ALLOWED * 52 / 100 + RING);
	assert_in_range(received(0, 0) - before[0], 1, ALLOWED * 52 / 100 + RING);
	let_out();
	for (int i = 0; i < 2; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	for (int i = 0; i < 10; i++)
		step();
	freeze_clock(false);
}

/* --- what goes on while it is held --- */

static void it_is_let_go(void **state)
{
	(void)state;
	make(1);
	hold();
	let_out();
	step();
	pair_skew += 1000 * MS;
	step();
	assert_int_equal(holding()->state, SHUNT_HOLDS_COUNTS);
	assert_false(
		shunt_task_waits(&engines[1]->service->tasks.qos)); /* nothing is timed any more */
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	all_arrived();
	end();
}

/* --- arrivals while it is let go --- */

static void *let_go(void *arg)
{
	shunt_holding_serve(link_of(0, 1)->throttle, &engines[1]->service->tasks.qos,
			    engines[1]->sys->now());
	return arg;
}

static size_t without_time(void)
{
	size_t before = bed.received[0][0];

	for (int i = 0; i < 100 && !atomic_load(&engines[1]->links.distrusted); i++) {
		put(0, 0, 32768, 0);
		turn();
		get(0, 0, BUFFER);
	}
	return bed.received[0][0] - before;
}

/* A reader has the stream while the service thread is to give it its credit; what a thread polls then is beyond the limit again. */
static void it_goes_on_while_it_is_let_go(void **state)
{
	struct shunt_lock *lock;
	pthread_t thread;

	(void)state;
	make(1);
	lock = stream_reader_lock(stream_of(&bed.pair[0].side[1]));
	take_gate(0);
	while (!is_held()) {	/* and most of a ring is left to it */
		put(0, 0, 8192, 0);
		shunt_group_poll_fully(&engines[1]->group);
		if (!is_held())
			get(0, 0, BUFFER);
	}
	while (shunt_meter_excess(&holding()->meter, engines[1]->sys->now()))
		pair_skew += MS / 10;
	shunt_lock_take(lock);
	assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
	while (atomic_load(&lock->word) != 2)	/* it sleeps for the stream */
		sched_yield();
	while (put(0, 0, 8192, 0))
		shunt_group_poll_fully(&engines[1]->group);
	shunt_lock_leave(lock);
	pthread_join(thread, NULL);
	assert_true(without_time() <= 3 * RING);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
	end();
}

/* Nor does it learn of room from how far the node's program has read (PROTOCOL.md, word 15). */
static void how_far_is_read_is_not_told(void **state)
{
	struct shunt_stream *stream;
	uint64_t told;

	(void)state;
	make(1);
	stream = stream_of(&bed.pair[0].side[1]);
	take_gate(0);
	while (!is_held()) {
		put(0, 0, 32768, 0);
		turn();
		if (!is_held())
			get(0, 0, BUFFER);
	}
	told = stream->seat->control->word[SHUNT_CONTROL_READ];
	assert_true(get(0, 0, BUFFER) > 0);
	assert_int_equal(stream->seat->control->word[SHUNT_CONTROL_READ], told);
	let_out();
	pair_skew += 1000 * MS;
	step();
	assert_int_equal(stream->seat->control->word[SHUNT_CONTROL_READ],
			 stream_offset(stream, STREAM_READ));
	end();
}

/* The node's own bytes, and the end of both directions, need no credit of the node's. */
static void the_other_direction_goes_on(void **state)
{
	(void)state;
	make(1);
	hold();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(put(0, 1, 4000, 0), 4000);
		step();
		assert_int_equal(get(0, 1, BUFFER), 4000);
	}
	assert_true(is_held());
	end();
}

static void hand_back(int side)
{
	struct shunt_stream *stream;

	make(1);
	hold();
	stream = stream_of(&bed.pair[0].side[side]);
	shunt_retire_begin(engines[side], stream, SHUNT_CAUSE_SPLICE);
	for (int i = 0; i < 1000 && stream_state(stream) != SHUNT_PLAIN; i++)
		read_all();
	assert_int_equal(stream_state(stream), SHUNT_PLAIN);
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	for (int i = 0; i < 100 && received(0, 0) < bed.sent[0][0]; i++)
		read_all();
	all_arrived();
	end();
}

static void it_is_handed_back(void **state)
{
	(void)state;
	hand_back(0);
	hand_back(1);
}

static void close_while_held(int first)
{
	make(1);
	hold();
	close_side(&bed.pair[0].side[first]);
	step();
	close_side(&bed.pair[0].side[!first]);
	leave_closed_bed();
	for (int side = 0; side < 2; side++)
		assert_int_equal(bed.lane[side]->link->seated, 0);
	pair_skew += 1000 * MS;
	step();
	step();
	freeze_clock(false);
}

static void it_is_closed(void **state)
{
	(void)state;
	close_while_held(0);
	close_while_held(1);
}

/* All that the client's program has sent arrives, over TCP. */
static void its_link_is_lost(void **state)
{
	int sent;

	(void)state;
	for (int side = 0; side < 2; side++) {
		make(1);
		hold();
		soft_qp_fault(bed.lane[side]->qp, SOFT_FAULT_KILL);
		let_out();
		for (sent = 0; sent < 1000 && !put(0, 0, 1000, 0); sent++) {
			pair_skew += MS;
			read_all();
		}
		assert_in_range(sent, 0, 999);
		let_out();
		close_side(&bed.pair[0].side[0]);
		close_side(&bed.pair[0].side[1]);
		leave_closed_bed();
		freeze_clock(false);
	}
}

/* Rules that go let it go. */
static void rules_go(void **state)
{
	char error[SHUNT_QOS_ERROR];

	(void)state;
	make(1);
	hold();
	assert_int_equal(shunt_qos_set(engines[1]->service, "", error, sizeof(error)), 0);
	for (int i = 0; i < 100; i++) {
		put(0, 0, 32768, 0);
		read_all();
	}
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	assert_int_equal(engines[1]->group.polled.metered, 0);
	assert_false(bed.lane[1]->metered);
	end();
}

/* Tokens by period, where there is no limit: the client gets those it was given, and a ring. */
static void it_gets_the_tokens_of_a_period(void **state)
{
	enum { TOKENS = 500, PERIODS = 5 };
	uint64_t before, given = 0;

	(void)state;
	make(1);
	take_gate(0);
	shunt_throttle_set(link_of(0, 0)->throttle, 0);
	pair_skew += 1000 * MS;
	shunt_holding_allow(link_of(0, 1)->throttle, 0, engines[1]->sys->now());
	shunt_holding_tell(link_of(0, 1)->throttle, 0, engines[1]->sys->now());
	before = received(0, 0);
	for (int period = 0; period < PERIODS; period++) {
		shunt_holding_allow(link_of(0, 1)->throttle, TOKENS, engines[1]->sys->now());
		given += TOKENS * SHUNT_TOKEN_BYTES;
		for (int ms = 0; ms < 1000; ms++) {
			if (ms == 500) {
				shunt_holding_add(link_of(0, 1)->throttle, TOKENS / 5);
				given += TOKENS / 5 * SHUNT_TOKEN_BYTES;
			}
			play_ms(0, 0);
			assert_true(received(0, 0) - before <= given + RING + 65536);
		}
		assert_true(is_held());
		assert_true(received(0, 0) - before >= given * 80 / 100);
	}
	shunt_holding_end_periods(link_of(0, 1)->throttle);
	assert_int_equal(holding()->state, SHUNT_HOLDS_OFF);
	for (int i = 0; i < 100 && bed.received[0][0] < bed.sent[0][0]; i++)
		read_all(); /* without any time */
	end();
}

/* It looks how far the node has read, and sends without credit. */
static void without_credit_it_is_distrusted(void **state)
{
	struct shunt_stream *stream;

	(void)state;
	make(1);
	hold();
	stream = stream_of(&bed.pair[0].side[0]);
	for (int i = 0; i < 1000 && !atomic_load(&engines[1]->links.distrusted); i++) {
		stream_peer_has_read(stream, stream_offset(stream, STREAM_POSTED));
		put(0, 0, 32768, 0);
		step();
		if (!atomic_load(&engines[1]->links.distrusted))
			get(0, 0, BUFFER);
	}
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 1);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
	freeze_clock(false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cheat_gets_its_limit),
		cmocka_unit_test(many_streams_of_a_cheat),
		cmocka_unit_test(an_honest_client_beside_it),
		cmocka_unit_test(it_is_let_go),
		cmocka_unit_test(it_goes_on_while_it_is_let_go),
		cmocka_unit_test(how_far_is_read_is_not_told),
		cmocka_unit_test(the_other_direction_goes_on),
		cmocka_unit_test(it_is_handed_back),
		cmocka_unit_test(it_is_closed),
		cmocka_unit_test(its_link_is_lost),
		cmocka_unit_test(rules_go),
		cmocka_unit_test(it_gets_the_tokens_of_a_period),
		cmocka_unit_test(without_credit_it_is_distrusted),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_log_set_level(SHUNT_LOG_NONE);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
