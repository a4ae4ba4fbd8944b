/* SPDX-License-Identifier: MIT */
/*
 * Queue pairs die, and streams return to the link: two engines in one thread, real TCP, and a clock that is moved by
 * hand. Every byte is checked (bed.c).
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include "core/admin/command.h"
#include "core/base/answer.h"
#include "core/device/soft/soft.h"
#include "core/peer/listen.h"
#include "core/service.h"
#include "core/stream/retire.h"

#define MS 1000000ull
#define REST 200	/* ms */
#define STEP 5

static struct shunt_config config(void)
{
	struct shunt_config config = small_config(HYBRID);

	config.retain = 1;
	config.return_ms = REST;
	config.return_max_ms = 4 * REST;
	return config;
}

/* The clock runs ahead of the kernel's, so nothing may wait for an acknowledgement. */
static void make(const struct shunt_config *config, int pairs)
{
	int on = 1;

	make_bed(config, pairs);
	for (int i = 0; i < pairs; i++)
		for (int side = 0; side < 2; side++)
			setsockopt(bed.pair[i].side[side].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static struct shunt_lane *lane_of(int i, int side)
{
	return stream_lane(stream_of(&bed.pair[i].side[side]));
}

static bool linked(int i)
{
	return on_link(&bed.pair[i].side[0]) && on_link(&bed.pair[i].side[1]);
}

/* Both programs of all pairs do something, and so do the engines. */
static void live(int turns)
{
	for (int n = 0; n < turns; n++) {
		for (int i = 0; i < bed.pairs; i++)
			for (int side = 0; side < 2; side++) {
				put(i, side, 1 + n * 37 % 3000, 0);
				if (n % 3)
					get(i, side, BUFFER);
			}
		turn();
	}
}

/* Sent by the link. */
static uint64_t link_bytes(int i)
{
	return stream_sent_by_link(stream_of(&bed.pair[i].side[0])) +
	       stream_sent_by_link(stream_of(&bed.pair[i].side[1]));
}

static void kill_qp(int side)
{
	soft_qp_fault(lane_of(0, side)->qp, SOFT_FAULT_KILL);
}

/* Until both ends have told all: the channel rests. */
static void fail_over(int side)
{
	uint64_t before = atomic_load(&engines[0]->failovers);

	kill_qp(side);
	for (int n = 0; !engines[0]->service->reconnects || !engines[1]->service->reconnects; n++) {
		assert_true(n < 10000);
		live(1);
	}
	assert_int_equal(atomic_load(&engines[0]->failovers), before + 1);
}

static void until_linked(int i)
{
	for (int n = 0; !linked(i); n++) {
		assert_true(n < 10000);
		pair_skew += STEP * MS;
		live(10);
	}
}

/* A link that has lasted. */
static void last(void)
{
	pair_skew += 3600000 * MS;
	live(10);
}

static void close_all(void)
{
	for (int i = 0; i < bed.pairs; i++) {
		close_side(&bed.pair[i].side[0]);
		close_side(&bed.pair[i].side[1]);
	}
	for (int n = 0; n < 10; n++) {
		pair_skew += 1000 * MS;
		turn();
	}
	bed.pairs = 0;
}

static void end(void)
{
	all_arrived();
	close_all();
	for (int e = 0; e < 2; e++)
		for (struct shunt_link *link = engines[e]->service->links; link; link = link->next)
			assert_int_equal(link->seated, 0);
}

static void rounds(const struct shunt_config *given, int count)
{
	make(given, 3);
	for (int n = 0; n < count; n++) {
		uint64_t before;

		live(7);
		fail_over(n % 2);
		for (int i = 0; i < 3; i++)
			until_linked(i);
		before = link_bytes(0) + link_bytes(1) + link_bytes(2);
		live(10);
		assert_true(link_bytes(0) + link_bytes(1) + link_bytes(2) > before);
		all_arrived();
		last();
	}
	for (int e = 0; e < 2; e++) {
		assert_int_equal(atomic_load(&engines[e]->failovers), count);
		assert_int_equal(atomic_load(&engines[e]->reconnects), count);
		assert_int_equal(atomic_load(&engines[e]->returns), 3 * count);
	}
	end();
}

static void streams_return_each_time(void **state)
{
	struct shunt_config given = config();

	(void)state;
	rounds(&given, 100);
}

static void also_with_nonces(void **state)
{
	struct shunt_config given = config();

	(void)state;
	given.proof = 1;
	rounds(&given, 50);
}

/* The claiming end, whose peer's direction comes second. */
static bool awaits_nonce(void)
{
	struct shunt_stream *stream = stream_of(&bed.pair[0].side[0]);

	return stream_state(stream) == SHUNT_LINKED && stream_proof(stream) == SHUNT_UNPROVEN;
}

/* A link that dies before a stream has shown its nonce on it takes the stream back no less than another. */
static void also_before_the_nonce(void **state)
{
	struct shunt_config given = config();

	(void)state;
	given.proof = 1;
	make(&given, 1);
	for (int side = 0; side < 2; side++) {
		last();
		fail_over(side);
		for (int n = 0; !awaits_nonce(); n++) {
			assert_true(n < 10000);
			pair_skew += STEP * MS;
			live(2);
			if (!awaits_nonce() && linked(0)) {	/* a slow machine was not in time to see it: once more */
				last();
				fail_over(side);
			}
		}
		fail_over(side);
		until_linked(0);
	}
	end();
}

static void also_where_the_device_fetches(void **state)
{
	struct shunt_config given = config();

	(void)state;
	given.inline_bytes = 200;
	given.frag_bytes = 4096;
	rounds(&given, 50);
}

/* The sooner it dies again, the longer; anew once it has lasted. */
static void rests_grow(void **state)
{
	static const int wanted[] = { 1, 2, 4, 4, 4 };
	struct shunt_config given = config();
	uint64_t at;

	(void)state;
	make(&given, 1);
	last();
	for (int round = 0; round < 2; round++) {
		for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
			fail_over(n % 2);
			at = engines[0]->service->reconnects->at;
			assert_int_equal(engines[0]->service->reconnects->line.rest,
					 wanted[n] * REST * MS);
			until_linked(0);
			assert_true(shunt_now(engines[0]) >= at);
		}
		last();
	}
	end();
}

static void not_if_not_wanted(void **state)
{
	struct shunt_config given = config();
	uint64_t before;

	(void)state;
	given.return_ms = 0;
	make(&given, 1);
	kill_qp(0);
	live(20);
	before = link_bytes(0);
	for (int n = 0; n < 100; n++) {
		pair_skew += 1000 * MS;
		live(2);
	}
	assert_int_equal(link_bytes(0), before);
	assert_null(engines[0]->service->reconnects);
	assert_null(engines[1]->service->reconnects);
	end();
}

/* Bytes of the old link are read first, however long that takes; the other streams do not wait. */
static void unread_bytes_come_first(void **state)
{
	struct shunt_config given = config();

	(void)state;
	make(&given, 2);
	bed.pairs = 1;		/* nobody reads the second one */
	put(1, 0, 5000, 0);
	turn();
	fail_over(0);
	until_linked(0);
	for (int n = 0; n < 50; n++) {
		pair_skew += 100 * MS;
		live(3);
	}
	assert_false(linked(1));
	bed.pairs = 2;
	pair_skew += 10000 * MS;
	until_linked(1);
	end();
}

/* The link is made by the channel that is there: nobody listens any more. */
static void nobody_listens(void **state)
{
	struct shunt_config given = config();

	(void)state;
	make(&given, 1);
	for (struct shunt_rendezvous *r = engines[1]->rendezvous; r; r = r->next)
		if (r->listener)
			shunt_listen_withdraw(engines[1], r->listener);
	fail_over(1);
	until_linked(0);
	end();
}

/* The new queue pair carries nothing: no stream is moved there, and it is given up as it dies. */
static void a_bad_queue_pair_gets_no_stream(void **state)
{
	struct shunt_config given = config();
	struct shunt_link *link;
	uint64_t before;

	(void)state;
	make(&given, 1);
	last();
	fail_over(0);
	pair_skew += (REST + 1) * MS;
	shunt_service_step(engines[0], 0);
	link = engines[0]->service->links;
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_HELLO);
	soft_qp_fault(link->lanes[0].qp, SOFT_FAULT_STALL);
	before = link_bytes(0);
	for (int n = 0; n < 100; n++) {
		pair_skew += MS;
		live(3);
	}
	assert_int_equal(atomic_load(&link->state), SHUNT_LINK_UP);
	assert_int_equal(link->seated, 0);
	assert_int_equal(link_bytes(0), before);
	soft_qp_fault(link->lanes[0].qp, SOFT_FAULT_KILL);
	live(10);
	until_linked(0);
	assert_true(atomic_load(&engines[0]->reconnects) == 2);
	end();
}

/* Messages on a channel that rests: stale words do not count. A wrong HELLO ends it, and nothing else. */
static void only_a_hello_counts(void **state)
{
	static const struct lie {
		struct shunt_message message;
		bool ends[2];	/* the way back, when the initiator says it, and the acceptor */
	} lies[] = {
		{ { .type = SHUNT_MSG_CLAIM }, { false, false } },
		{ { .type = SHUNT_MSG_LEFT }, { false, false } },
		{ { .type = SHUNT_MSG_LEFT, .stream = 1 }, { false, false } },
		{ { .type = 99 }, { false, false } },
		{ { .type = SHUNT_MSG_HELLO, .hello = { .magic = 1 } }, { true, true } },
		{ { .type = SHUNT_MSG_HELLO }, { true, true } },
	};
	struct shunt_config given = config();

	(void)state;
	for (size_t n = 0; n < 2 * sizeof(lies) / sizeof(lies[0]); n++) {
		const struct lie *lie = &lies[n / 2];
		int liar = n & 1;
		uint64_t before;

		make(&given, 1);
		fail_over(0);
		before = link_bytes(0);
		assert_int_equal(shunt_channel_send(&engines[liar]->service->reconnects->channel,
						    &lie->message, NULL, 0),
				 0);
		for (int k = 0; k < 100; k++) {
			pair_skew += 1000 * MS;
			live(2);
		}
		assert_null(engines[0]->service->reconnects);
		assert_null(engines[1]->service->reconnects);
		assert_int_equal(link_bytes(0) == before, lie->ends[liar]);
		drain();
		assert_int_equal(bed.received[0][0], bed.sent[0][0]);
		assert_int_equal(bed.received[0][1], bed.sent[0][1]);
		close_all();
	}
}

static void closed_meanwhile(void **state)
{
	struct shunt_config given = config();
	uint64_t before;

	(void)state;
	make(&given, 1);
	fail_over(0);
	drain();
	before = atomic_load(&engines[0]->reconnects);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	bed.pairs = 0;
	for (int n = 0; n < 10; n++) {
		pair_skew += 1000 * MS;
		turn();
	}
	assert_null(engines[0]->service->reconnects);
	assert_null(engines[1]->service->reconnects);
	assert_int_equal(atomic_load(&engines[0]->reconnects), before);
	assert_null(engines[0]->service->links);
	assert_null(engines[1]->service->links);
}

/* An operator's word outlives the link. */
static void held_streams_stay_held(void **state)
{
	struct shunt_config given = config();
	struct shunt_answer answer;

	(void)state;
	make(&given, 1);
	fail_over(0);
	assert_int_equal(shunt_command_run(engines[0], "mock tcp", 8, &answer), 0);
	for (int n = 0; n < 10; n++) {
		pair_skew += 1000 * MS;
		live(3);
	}
	assert_int_equal(atomic_load(&engines[0]->returns), 1);
	assert_false(on_link(&bed.pair[0].side[0]));
	assert_false(stream_sends_on_link(stream_of(&bed.pair[0].side[0])));
	assert_false(stream_sends_on_link(stream_of(&bed.pair[0].side[1])));
	assert_int_equal(shunt_command_run(engines[0], "mock auto", 9, &answer), 0);
	until_linked(0);
	end();
}

/* --- one end wants its stream back, and the queue pair dies before its HANDBACK has come --- */

static bool keeping;	/* the end of a failover, which the channel has no room for */

static ssize_t keep_resumed(int fd, const struct msghdr *header, int flags)
{
	const struct iovec *iov = header->msg_iov;

	if (!keeping || iov->iov_len != sizeof(struct shunt_message) ||
	    ((struct shunt_message *)iov->iov_base)->type != SHUNT_MSG_LEFT)
		return sendmsg(fd, header, flags);
	errno = EAGAIN;
	return -1;
}

/* The acceptor is asked, and has not seen what it is to see before it answers. */
static void ask_for_one(void)
{
	soft_qp_fault(lane_of(0, 0)->qp, SOFT_FAULT_STALL);
	put(0, 0, 3000, 0);
	shunt_retire_begin(engines[0], stream_of(&bed.pair[0].side[0]), SHUNT_CAUSE_SPLICE);
	turn();
	assert_non_null(engines[1]->work.asked);
}

/* Bytes that have not come are lost with the queue pair: an answer would let TCP go on behind the hole. */
static void a_request_ends_with_the_queue_pair(void **state)
{
	struct shunt_config given = config();

	(void)state;
	make(&given, 1);
	ask_for_one();
	kill_qp(1);
	shunt_group_poll_fully(&engines[1]->group);
	for (int n = 0; n < 10; n++)
		turn();
	assert_null(engines[1]->work.asked);
	put(0, 0, 1000, 0);
	end();
}

/* LEAVE has said where TCP goes on; who has heard it waits for no answer. */
static void nothing_is_answered_behind_resume(void **state)
{
	struct shunt_config given = config();
	static struct shunt_sys full;

	(void)state;
	make(&given, 1);
	full = *engines[0]->sys;
	full.sendmsg = keep_resumed;
	shunt_engine_surround(engines[0], &full);
	put(0, 1, 1000, 0);
	ask_for_one();
	put(0, 1, 2000, 0);
	keeping = true;
	kill_qp(0);
	for (int n = 0; n < 10; n++)
		turn();
	assert_non_null(engines[0]->service->links->channel.first);
	keeping = false;
	for (int n = 0; n < 10; n++)
		turn();
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_return_each_time),
		cmocka_unit_test(also_with_nonces),
		cmocka_unit_test(also_before_the_nonce),
		cmocka_unit_test(also_where_the_device_fetches),
		cmocka_unit_test(rests_grow),
		cmocka_unit_test(not_if_not_wanted),
		cmocka_unit_test(unread_bytes_come_first),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(a_bad_queue_pair_gets_no_stream),
		cmocka_unit_test(only_a_hello_counts),
		cmocka_unit_test(closed_meanwhile),
		cmocka_unit_test(held_streams_stay_held),
		cmocka_unit_test(a_request_ends_with_the_queue_pair),
		cmocka_unit_test(nothing_is_answered_behind_resume),
	};

	shunt_log_set_level(SHUNT_LOG_NONE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
