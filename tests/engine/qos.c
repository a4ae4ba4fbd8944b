/* SPDX-License-Identifier: MIT */
/*
 * Limits of classes, with a clock of the test's own. A client and a node never post more than their
 * tokens, and a waiting sender is served when tokens are due. Rules change at run time, and
 * messages that make no sense end the link.
 */
#include "tests/engine/bed.h"
#include "tests/engine/phantom.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "core/base/answer.h"
#include "core/peer/hear.h"
#include "core/peer/mock.h"
#include "core/qos/qos.h"
#include "core/qos/throttle.h"

#define MS 1000000ull
#define PAIRS_OF_IT 4
#define LIMIT 3051757ull /* 100 Mbit/s, in thousandths of a token a second */

static struct shunt_config qos_config(const char *rules)
{
	struct shunt_config config = small_config(HYBRID);

	strcpy(config.qos_rules, rules);
	config.lanes = 4;
	config.ring_min =
		config.ring_max; /* a sender that asks for a larger one waits a moment of a clock that stands still */
	return config;
}

static struct shunt_link *link_of(int side)
{
	return bed.lane[side]->link;
}

static struct shunt_throttle *throttle_of(int side)
{
	return link_of(side)->throttle;
}

static uint64_t tokens_of(int side)
{
	return atomic_load(&throttle_of(side)->tokens);
}

static void set_rules(const char *rules)
{
	char error[SHUNT_QOS_ERROR];

	assert_int_equal(shunt_qos_set(engines[1]->service, rules, error, sizeof(error)), 0);
	turn();
}

/* A millisecond of all programs: each sends `bytes` at a time while it can. */
static void play_ms(int side, size_t bytes)
{
	for (int i = 0; i < bed.pairs; i++)
		while (bytes && put(i, side, bytes, 0) == bytes)
			;
	pair_skew += MS;
	drain();
}

static void let_out(void)
{
	for (int i = 0;
	     i < 10000 && bed.received[0][0] + bed.received[0][1] < bed.sent[0][0] + bed.sent[0][1];
	     i++) {
		pair_skew += MS;
		drain();
	}
}

static void end(void)
{
	set_rules("");
	let_out();
	end_bed();
	freeze_clock(false);
}

/* Over each tenth of a second, and over two seconds, what was posted is the limit within 2 %. */
static void check_rate(int side, size_t bytes)
{
	uint64_t begin;

	for (int ms = 0; ms < 100; ms++) /* what was saved is gone */
		play_ms(side, bytes);
	begin = tokens_of(side);
	for (int tenth = 0; tenth < 20; tenth++) {
		uint64_t before = tokens_of(side);

		for (int ms = 0; ms < 100; ms++)
			play_ms(side, bytes);
		assert_in_range(tokens_of(side) - before, LIMIT / 10000 * 98 / 100,
				LIMIT / 10000 * 102 / 100 + 1);
		assert_true(shunt_bucket_due(&throttle_of(side)->bucket, engines[side]->sys->now(),
					     0) <= engines[side]->sys->now());
	}
	assert_in_range(tokens_of(side) - begin, 2 * LIMIT / 1000 - 16, 2 * LIMIT / 1000 + 16);
}

static void the_client_holds_its_limit(void **state)
{
	struct shunt_config config = qos_config("class all limit=100Mbit");
	uint64_t bytes, tokens;

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	assert_int_equal(link_of(0)->lane_count, 4);
	assert_int_equal(throttle_of(0)->rate, LIMIT);
	assert_string_equal(throttle_of(0)->name, "all");
	bytes = shunt_throttle_bytes(throttle_of(0));
	tokens = tokens_of(0);
	check_rate(0, 32768);
	bytes = shunt_throttle_bytes(throttle_of(0)) - bytes;
	tokens = tokens_of(0) - tokens;
	assert_true(bytes <= tokens * SHUNT_TOKEN_BYTES);
	assert_true(bytes >= tokens * SHUNT_TOKEN_BYTES * 95 /
				     100); /* except WRs that are cut at the end of a ring */
	assert_true(atomic_load(&throttle_of(0)->waits) > 0);
	end();
}

static void the_node_holds_it_too(void **state)
{
	struct shunt_config config = qos_config("class all port=1; class rest limit=100Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	assert_string_equal(throttle_of(1)->name, "rest");
	check_rate(1, 32768);
	end();
}

/* Small sends wait together, and share a token. */
static void small_sends_are_merged(void **state)
{
	struct shunt_config config = qos_config("class all limit=1Kops");
	uint64_t tokens;

	(void)state;
	config.lanes = 1;
	freeze_clock(true);
	make_bed(&config, 1);
	for (int ms = 0; ms < 100; ms++)
		play_ms(0, 0);
	tokens = tokens_of(0);
	for (int ms = 0; ms < 100; ms++) {
		for (int n = 0; n < 10; n++)
			assert_int_equal(put(0, 0, 100, 0), 100);
		pair_skew += MS;
		drain();
	}
	assert_in_range(tokens_of(0) - tokens, 90, 105);
	end();
}

/* Without a token a send takes what the send buffer has room for, then nothing; with time there is room again. */
static void who_waits_is_told(void **state)
{
	struct shunt_config config = qos_config("class all limit=10Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, 1);
	while (put(0, 0, 4096, 0) == 4096)
		;
	assert_int_equal(put(0, 0, 4096, 0), 0);
	turn();
	assert_int_equal(put(0, 0, 4096, 0), 0);
	for (int ms = 0; ms < 20; ms++) {
		pair_skew += MS;
		turn();
	}
	assert_true(put(0, 0, 4096, 0) > 0);
	/* Nobody waits: nothing is timed. */
	set_rules("");
	let_out();
	turn();
	turn();
	assert_false(shunt_task_waits(&engines[0]->service->tasks.qos));
	assert_false(shunt_task_waits(&engines[1]->service->tasks.qos));
	end();
}

static void without_rules_there_is_nothing(void **state)
{
	struct shunt_config config = qos_config("");

	(void)state;
	make_bed(&config, 1);
	for (int side = 0; side < 2; side++) {
		assert_null(throttle_of(side));
		assert_null(bed.lane[side]->window.gate);
		assert_false(bed.lane[side]->window.asked);
		assert_false(shunt_task_waits(&engines[side]->service->tasks.qos));
		assert_false(atomic_load(&engines[side]->paces));
		assert_int_equal(engines[side]->work.tasks.pacing.not_before, 0);
	}
	end_bed();
}

/* Every WR of a lane with a gate is asked for, and signaled no more often for that. */
static void rules_change(void **state)
{
	struct shunt_config config = qos_config("class all limit=100Mbit");
	char error[SHUNT_QOS_ERROR];

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	assert_int_equal(bed.lane[0]->frag_bytes, 3 * SHUNT_TOKEN_BYTES);
	assert_false(bed.lane[0]->window.signals);
	set_rules("class fast limit=1Gbit");
	assert_int_equal(throttle_of(0)->rate, 30517578);
	assert_string_equal(throttle_of(0)->name, "fast");
	assert_int_equal(bed.lane[0]->frag_bytes,
			 30 * SHUNT_TOKEN_BYTES < 65536 ? 30 * SHUNT_TOKEN_BYTES : 65536);
	/* Bad rules change nothing. */
	assert_int_not_equal(shunt_qos_set(engines[1]->service, "class slow reserve=1Gbit", error,
					   sizeof(error)),
			     0);
	assert_non_null(strstr(error, "rules:1:20: to reserve needs a capacity"));
	turn();
	assert_int_equal(throttle_of(0)->rate, 30517578);
	/* A class without a limit, and none. */
	set_rules("class open limit=none");
	assert_string_equal(throttle_of(0)->name, "open");
	assert_null(bed.lane[0]->window.gate);
	assert_int_equal(bed.lane[0]->frag_bytes, 65536);
	set_rules("class other port=1 limit=1Gbit");
	assert_string_equal(throttle_of(0)->name, "");
	assert_null(bed.lane[0]->window.gate);
	end();
}

/*
 * The gate is a policy that denies (RB-15): rules that come at run time put it before a lane that posts as it likes. With
 * its tokens spent it refuses even a request that is alone, which the windows always admit. Rules that go take it away.
 */
static void a_policy_denies_at_run_time(void **state)
{
	struct shunt_config config = qos_config("");
	uint64_t posted;

	(void)state;
	config.lanes = 1;
	freeze_clock(true);
	make_bed(&config, 1);
	for (int n = 0; n < 100; n++)
		assert_int_equal(put(0, 0, 4096, 0), 4096);
	all_arrived();
	assert_int_equal(COUNTED(stalls[SHUNT_LIMIT_GATE]), 0);
	set_rules("class all limit=10Mbit");
	assert_non_null(bed.lane[0]->window.gate);
	for (int n = 0; n < 100; n++) {
		put(0, 0, 4096, 0);
		drain();
	}
	assert_true(COUNTED(stalls[SHUNT_LIMIT_GATE]) > 0);
	assert_int_equal(shunt_window_admit(&bed.lane[0]->window, 0, 0, 4096), SHUNT_LIMIT_GATE);
	assert_true(bed.received[0][0] < bed.sent[0][0]);
	posted = WRS();
	for (int n = 0; n < 100; n++)
		drain();
	assert_int_equal(WRS(), posted);
	set_rules("");
	assert_null(bed.lane[0]->window.gate);
	all_arrived();
	end();
}

static void what_a_client_declares(void **state)
{
	struct shunt_config config = qos_config(
		"class gold declared=gold limit=1Gbit; class all limit=10Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, 1);
	assert_string_equal(throttle_of(0)->name, "all");
	end();
	strcpy(config.qos_class, "gold");
	freeze_clock(true);
	make_bed(&config, 1);
	assert_string_equal(throttle_of(0)->name, "gold");
	end();
	strcpy(config.qos_class, "silver");
	freeze_clock(true);
	make_bed(&config, 1);
	assert_string_equal(throttle_of(0)->name, "all");
	end();
}

/* The node knows of its clients by what they report. */
static void clients_report(void **state)
{
	struct shunt_config config = qos_config("period 100ms; class all limit=100Mbit");
	struct shunt_answer answer = { 0 };

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	for (int ms = 0; ms < 500; ms++)
		play_ms(0, 32768);
	assert_in_range(throttle_of(1)->in.used, LIMIT * 95 / 100, LIMIT * 105 / 100);
	assert_true(throttle_of(1)->in.taken <= tokens_of(0) &&
		    throttle_of(1)->in.taken > tokens_of(0) / 2);
	assert_true(throttle_of(1)->in.waits > 0);
	shunt_qos_show(engines[1]->service, &answer);
	assert_non_null(strstr(answer.text, "class all limit=100Mbit: 1 clients"));
	end();
}

/* The process ends: what it has accepted is not held back for a limit. */
static void an_end_waits_for_no_tokens(void **state)
{
	struct shunt_config config = qos_config("class all limit=10Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, 1);
	while (put(0, 0, 4096, 0) == 4096)
		;
	shunt_throttle_open_all(engines[0]);
	shunt_lane_kick(bed.lane[0]);
	drain();
	assert_int_equal(bed.received[0][0], bed.sent[0][0]);
	end();
}

/* --- on TCP --- */

static uint64_t kernels(int i, int side)
{
	uint64_t rate = 0;
	socklen_t length = sizeof(rate);

	assert_int_equal(getsockopt(bed.pair[i].side[side].fd, SOL_SOCKET, SO_MAX_PACING_RATE,
				    &rate, &length),
			 0);
	assert_int_equal(length, sizeof(rate));
	return rate;
}

static uint64_t programs(int i, int side)
{
	struct side *end = &bed.pair[i].side[side];
	uint64_t rate = 0;
	socklen_t length = sizeof(rate);

	assert_int_equal(shunt_stream_get_pacing(stream_of(end), end->fd, &rate, &length), 0);
	return rate;
}

static void set_programs(int i, int side, uint64_t rate)
{
	struct side *end = &bed.pair[i].side[side];

	assert_int_equal(shunt_stream_set_pacing(stream_of(end), end->fd, &rate, sizeof(rate)), 0);
}

static void hold(int side, bool on)
{
	for (int i = 0; i < bed.pairs; i++)
		shunt_mock_set(stream_of(&bed.pair[i].side[side]),
			       on ? SHUNT_MOCK_TCP : SHUNT_MOCK_AUTO);
	turn();
	drain();
}

static void pass_ms(int count)
{
	for (int ms = 0; ms < count; ms++) {
		pair_skew += MS;
		turn();
	}
}

/* All that the side may send, by all connections and by the lanes; bytes a second. */
static uint64_t may_send(int side)
{
	uint64_t sum = throttle_of(side)->rate * SHUNT_TOKEN_BYTES / 1000;

	for (int i = 0; i < bed.pairs; i++)
		sum += kernels(i, side);
	return sum;
}

#define LIMIT_BYTES (LIMIT * SHUNT_TOKEN_BYTES / 1000)

static void tcp_has_the_limit_too(void **state)
{
	struct shunt_config config = qos_config("class all limit=100Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	assert_int_equal(throttle_of(0)->rate, LIMIT);
	for (int side = 0; side < 2; side++)
		hold(side, true);
	pass_ms(5);
	for (int ms = 0; ms < 1000; ms++) {
		if (ms % 100 < 50)
			for (int i = 0; i < bed.pairs; i++)
				put(i, 0, 32768, 0);
		pass_ms(1);
		drain();
		for (int side = 0; side < 2; side++)
			assert_true(may_send(side) <= LIMIT_BYTES + 1);
	}
	assert_true(may_send(0) >= LIMIT_BYTES * 98 / 100);
	/* The kernel's time is not ours. */
	for (int i = 0; i < bed.pairs; i++)
		while (bed.received[i][0] < bed.sent[i][0])
			drain();
	/* Both directions of all are on the link again, and their lanes have all. */
	for (int side = 0; side < 2; side++)
		hold(side, false);
	for (int i = 0; i < bed.pairs; i++)
		while (!on_link(&bed.pair[i].side[0]) || !on_link(&bed.pair[i].side[1])) {
			put(i, 0, 1, 0);
			put(i, 1, 1, 0);
			drain();
		}
	pass_ms(200);
	for (int side = 0; side < 2; side++)
		assert_int_equal(throttle_of(side)->rate, LIMIT);
	end();
}

/*
 * A client whose streams stay on TCP is seen at the node (HA-16): by class, and by link as long as there is one. Each
 * stream counts in whole tokens. Its way on the link is the meter's, and a rule that comes later counts from then on.
 */
static void the_node_counts_what_tcp_brings(void **state)
{
	struct shunt_config config = qos_config("class all limit=1Gbit");
	const struct shunt_paced *class, *link;
	uint64_t tokens = 0, by_link;

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	class = &engines[1]->service->qos->classes[0].paced;
	link = &throttle_of(1)->paced;
	hold(0, true);
	pass_ms(200);
	tokens = class->arrived;	/* connections begin on TCP */
	by_link = throttle_of(1)->holding.meter.arrived;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < bed.pairs; i++)
			assert_int_equal(put(i, 0, 4 * SHUNT_TOKEN_BYTES, 0),
					 4 * SHUNT_TOKEN_BYTES);
		while (!all_is_out()) /* the kernel's time is not ours */
			drain();
	}
	pass_ms(200);
	assert_int_equal(class->arrived - tokens, PAIRS_OF_IT * 200);
	assert_in_range(link->arrived, PAIRS_OF_IT * 200, class->arrived);
	assert_int_equal(throttle_of(1)->holding.meter.arrived, by_link);
	/* Nothing comes: nothing is counted. On the link the meter counts. */
	pass_ms(200);
	assert_int_equal(class->arrived - tokens, PAIRS_OF_IT * 200);
	hold(0, false);
	for (int i = 0; i < bed.pairs; i++)
		while (!stream_sends_on_link(stream_of(&bed.pair[i].side[0]))) {
			put(i, 0, 1, 0);
			drain();
		}
	pass_ms(200);
	tokens = class->arrived;
	for (int i = 0; i < bed.pairs; i++)
		put(i, 0, 4 * SHUNT_TOKEN_BYTES, 0);
	let_out();
	pass_ms(200);
	assert_int_equal(class->arrived, tokens);
	assert_true(throttle_of(1)->holding.meter.arrived > by_link);
	/* Under new rules what came before is not counted. */
	hold(0, true);
	set_rules("");
	put(0, 0, 4 * SHUNT_TOKEN_BYTES, 0);
	while (!all_is_out())
		drain();
	set_rules("class late limit=1Gbit");
	pass_ms(200);
	assert_int_equal(engines[1]->service->qos->classes[0].paced.arrived, 0);
	hold(0, false);
	end();
}

static void rules_that_go_leave_no_trace(void **state)
{
	struct shunt_config config = qos_config("class all limit=100Mbit");

	(void)state;
	freeze_clock(true);
	make_bed(&config, PAIRS_OF_IT);
	set_programs(0, 0, 123456789);
	for (int side = 0; side < 2; side++)
		hold(side, true);
	pass_ms(200);
	for (int side = 0; side < 2; side++) {
		assert_true(kernels(1, side) < LIMIT_BYTES);
		assert_true(programs(1, side) == UINT64_MAX);
		set_programs(1, side, 1000);
		assert_int_equal(kernels(1, side), 1000);
		set_programs(1, side, 1000000000);
		assert_true(kernels(1, side) < LIMIT_BYTES);
		assert_int_equal(programs(1, side), 1000000000);
	}
	set_rules("class other port=1 limit=1Gbit");
	pass_ms(200);
	assert_int_equal(kernels(0, 0), 123456789);
	for (int side = 0; side < 2; side++) {
		assert_int_equal(kernels(1, side), 1000000000);
		assert_true(kernels(2, side) == UINT64_MAX);
	}
	assert_false(shunt_task_waits(&engines[1]->work.tasks.pacing));
	set_rules("");
	assert_false(atomic_load(&engines[1]->paces));
	for (int side = 0; side < 2; side++)
		hold(side, false);
	end();
}

/* --- what a peer may not say --- */

static const struct {
	int to; /* 0: the client */
	struct shunt_message message;
} bad[] = {
	{ 0,
	  { .type = SHUNT_MSG_QOS,
	    .stream = 1,
	    .qos = { .rate = 1000, .period_ms = 1000, .name = "all" } } },
	{ 0, { .type = SHUNT_MSG_QOS, .qos = { .rate = 1, .period_ms = 1000, .name = "all" } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS,
	    .qos = { .rate = UINT64_MAX, .period_ms = 1000, .name = "all" } } },
	{ 0, { .type = SHUNT_MSG_QOS, .qos = { .rate = 1000, .period_ms = 99, .name = "all" } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS,
	    .qos = { .rate = 1000, .period_ms = UINT32_MAX, .name = "all" } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS, .qos = { .rate = 1000, .period_ms = 1000, .name = "a\"b" } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS, .qos = { .rate = 1000, .period_ms = 1000, .name = "a\0b" } } },
	{ 0, { .type = SHUNT_MSG_QOS, .qos = { .rate = 1000, .period_ms = 1000 } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS,
	    .qos = { .rate = 1000, .period_ms = 1000, .taken = 1, .name = "all" } } },
	{ 0,
	  { .type = SHUNT_MSG_QOS,
	    .qos = { .rate = 1000,
		     .period_ms = 1000,
		     .name = "0123456789012345678901234567890" } } },
	{ 0, { .type = SHUNT_MSG_QOS, .qos = { .name = "all" } } },
	{ 0, { .type = SHUNT_MSG_QOS_REPORT, .period = { .rate = 1 } } },
	{ 1, { .type = SHUNT_MSG_QOS, .qos = { .rate = 1000, .period_ms = 1000, .name = "all" } } },
	/* It has a class by now. */
	{ 1, { .type = SHUNT_MSG_QOS, .qos = { .name = "all" } } },
	{ 1, { .type = SHUNT_MSG_QOS } },
	{ 1, { .type = SHUNT_MSG_QOS_REPORT, .qos = { .rate = 1 } } },
	{ 1, { .type = SHUNT_MSG_QOS_REPORT, .stream = 1 } },
	{ 1, { .type = SHUNT_MSG_QOS_REPORT, .qos = { .name = "all" } } },
};

static void nonsense_is_distrusted(void **state)
{
	struct shunt_config config = qos_config("class all limit=100Mbit");

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct shunt_message message = bad[i].message;

		make_bed(&config, 1);
		if (i == 9) /* without its final 0 */
			memset(message.qos.name, 'a', sizeof(message.qos.name));
		assert_int_equal(atomic_load(&engines[bad[i].to]->links.distrusted), 0);
		role_hear(link_of(bad[i].to), &message, NULL, 0);
		if (atomic_load(&engines[bad[i].to]->links.distrusted) != 1)
			fail_msg("message %zu is taken", i);
		close_side(&bed.pair[0].side[0]);
		close_side(&bed.pair[0].side[1]);
		leave_closed_bed();
	}
}

/* Any counts of a client's are as good as others: nobody gets more than the limit. */
static void a_liar_gets_the_limit(void **state)
{
	struct shunt_config config = qos_config("period 100ms; class all limit=100Mbit");
	struct shunt_message message = { .type = SHUNT_MSG_QOS_REPORT };

	(void)state;
	freeze_clock(true);
	make_bed(&config, 1);
	for (uint64_t n = 1; n < 200; n++) {
		message.qos.taken = n * 0x123456789abcdef1;
		message.qos.waits = n * 0xfedcba9876543211;
		role_hear(link_of(1), &message, NULL, 0);
		pair_skew += n % 20 * MS;
		turn();
		assert_true(throttle_of(0)->rate <= LIMIT && throttle_of(1)->told <= LIMIT);
	}
	end();
}

/* --- many clients --- */

enum { MANY = 1000 };

static struct shunt_sys counting;
static int messages; /* that clients who are not there were told */

static ssize_t count_message(int fd, const struct msghdr *message, int flags)
{
	(void)flags;
	assert_int_equal(fd, PHANTOM_FD);
	messages++;
	return (ssize_t)message->msg_iov->iov_len;
}

/* The sum of all clients' limits, and the least of them. */
static uint64_t told_to_all(uint64_t *least)
{
	uint64_t sum = 0;

	*least = UINT64_MAX;
	for (struct shunt_link *link = engines[1]->service->links; link; link = link->next) {
		sum += link->throttle->told;
		if (link->throttle->told < *least)
			*least = link->throttle->told;
	}
	return sum;
}

/* Each costs some messages, however many there are, and the limit is never exceeded. */
static void many_clients_come(void **state)
{
	struct shunt_config config = qos_config("class all limit=10Gbit");
	struct shunt_link *links[MANY];
	const struct shunt_sys *sys;
	uint64_t limit = 100 * LIMIT, least;

	(void)state;
	freeze_clock(true);
	make_bed(&config, 1);
	pair_skew += 1000 * MS;
	turn();
	sys = engines[1]->sys;
	counting = *sys;
	counting.sendmsg = count_message;
	atomic_store(&link_of(1)->state, SHUNT_LINK_DEAD); /* it is told nothing for now */
	shunt_engine_surround(engines[1], &counting);
	messages = 0;
	for (int i = 0; i < MANY; i++) {
		links[i] = phantom_come();
		assert_true(told_to_all(&least) <= limit + 100 + MANY * SHUNT_RATE_MIN);
		assert_true(least >= SHUNT_RATE_MIN);
	}
	print_message("%d clients: %d messages\n", MANY, messages);
	assert_in_range(messages, MANY, 12 * MANY);
	messages = 0;
	/* A part of a period later each has an equal part. */
	pair_skew += 125 * MS;
	shunt_qos_run(&engines[1]->service->tasks.qos);
	assert_in_range(messages, 1, MANY + 1);
	assert_true(told_to_all(&least) <= limit + 100);
	assert_true(least >= limit / (MANY + 1) * 96 / 100);
	for (int i = MANY - 1; i >= 0; i--)
		phantom_go(links[i]);
	shunt_engine_surround(engines[1], sys);
	atomic_store(&link_of(1)->state, SHUNT_LINK_UP);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_client_holds_its_limit),
		cmocka_unit_test(the_node_holds_it_too),
		cmocka_unit_test(small_sends_are_merged),
		cmocka_unit_test(who_waits_is_told),
		cmocka_unit_test(without_rules_there_is_nothing),
		cmocka_unit_test(rules_change),
		cmocka_unit_test(a_policy_denies_at_run_time),
		cmocka_unit_test(what_a_client_declares),
		cmocka_unit_test(clients_report),
		cmocka_unit_test(an_end_waits_for_no_tokens),
		cmocka_unit_test(tcp_has_the_limit_too),
		cmocka_unit_test(the_node_counts_what_tcp_brings),
		cmocka_unit_test(rules_that_go_leave_no_trace),
		cmocka_unit_test(nonsense_is_distrusted),
		cmocka_unit_test(a_liar_gets_the_limit),
		cmocka_unit_test(many_clients_come),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	shunt_log_set_level(SHUNT_LOG_NONE);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
