/* SPDX-License-Identifier: MIT */
/* Which connections are claimed at once, and which only once they have lasted. */
#include "tests/engine/bed.h"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include "core/peer/claim_state.h"
#include "core/base/address.h"
#include "core/engine.h"
#include "core/service.h"
#include "core/stream/doubt.h"
#include "core/stream/wait.h"

static uint64_t claims(void)
{
	return atomic_load(&engines[0]->claims);
}

static void some_turns(void)
{
	for (int i = 0; i < 5; i++)
		turn();
}

/* The bed's second pair comes, and sends so much. */
static void arrive(int sends)
{
	bed.sent[1][0] = bed.sent[1][1] = bed.received[1][0] = bed.received[1][1] = 0;
	connect_pair(&bed.pair[1]);
	for (int i = 0; i < sends; i++) {
		put(1, 0, 1, 0);
		some_turns();
		get(1, 0, BUFFER);
		some_turns();
	}
}

static void leave(void)
{
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	some_turns();
}

static void brief_ones(int count)
{
	for (int i = 0; i < count; i++) {
		arrive(1);
		leave();
	}
}

/* The limit is reached; from then on a connection has to last before it is claimed, until most do. */
void brief_connections_are_not_claimed(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t before;

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(config.brief, 8);
	brief_ones(7);
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);	/* not yet */
	leave();
	brief_ones(1);

	before = claims();
	brief_ones(5);
	arrive(8);
	assert_int_equal(claims(), before);
	for (int i = 0; i < 10; i++)
		put(1, 0, 1, 0);
	some_turns();
	assert_int_equal(claims(), before + 1);
	warm(1);
	leave();
	for (int i = 0; i < 8; i++) {
		arrive(20);
		warm(1);
		leave();
	}
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);
	leave();
	end_bed();
}

void all_are_claimed_if_wanted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t before;

	(void)state;
	config.brief = 0;
	make_bed(&config, 1);
	brief_ones(20);
	before = claims();
	arrive(1);
	assert_int_equal(claims(), before + 1);
	leave();
	end_bed();
}

/* --- connections to other hosts --- */

static const uint8_t far_away[16] = { SHUNT_ADDRESS_V4, 192, 0, 2, 1 };

/* The kernel names another host as the peer. */
static int name_far_peer(int fd, struct sockaddr *address, socklen_t *length)
{
	if (getpeername(fd, address, length))
		return -1;
	memcpy(&((struct sockaddr_in *)address)->sin_addr, far_away + 12, 4);
	return 0;
}

static void peers_are_far(int engine, struct shunt_sys *sys)
{
	*sys = *engines[engine]->sys;
	sys->getpeername = name_far_peer;
	shunt_engine_surround(engines[engine], sys);
}

static void use(int times)
{
	for (int i = 0; i < times; i++) {
		assert_int_equal(put(0, 0, 1, 0), 1);
		turn();
	}
}

static void assert_connector(uint8_t state, enum shunt_cause cause)
{
	assert_int_equal(stream_state(stream_of(&bed.pair[0].side[0])), state);
	assert_int_equal(stream_of(&bed.pair[0].side[0])->why.plain, cause);
}

static void make_far(struct shunt_config *config, struct shunt_sys *sys)
{
	make_bed(config, 0);
	peers_are_far(0, sys);
	connect_pair(&bed.pair[0]);
	memcpy(stream_of(&bed.pair[0].side[0])->dialled, far_away, 16);
	bed.pairs = 1;
}

/* The bed has no device for other hosts: a stream that is claimed there is plain at once, and says so. */
void another_host_is_not_asked_for_a_short_one(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	config.claim_ms = 60000;
	make_far(&config, &sys);
	use(16);
	assert_null(engines[0]->service);
	assert_connector(SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	use(1);
	turn();
	assert_non_null(engines[0]->service);
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_OTHER_HOST);
	all_arrived();
	leave_bed();
}

void another_host_is_asked_for_many_bytes(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	config.claim_ms = 60000;
	make_far(&config, &sys);
	assert_int_equal(put(0, 0, BUFFER, 0), BUFFER);
	assert_null(engines[0]->service);
	assert_connector(SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	drain();
	use(1);
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_OTHER_HOST);
	all_arrived();
	leave_bed();
}

/* A pool's connection: a question and its answer, a rest, and then all at once. */
void another_host_is_asked_after_a_rest(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	config.claim_ms = 60000;
	make_far(&config, &sys);
	use(2);
	pair_skew += 900000000;
	use(0);
	assert_connector(SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	pair_skew += 200000000;
	use(1);
	turn();
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_OTHER_HOST);
	all_arrived();
	leave_bed();
}

static int name_far_self(int fd, struct sockaddr *address, socklen_t *length)
{
	if (getsockname(fd, address, length))
		return -1;
	memcpy(&((struct sockaddr_in *)address)->sin_addr, far_away + 12, 4);
	return 0;
}

/* It comes from the address that it leads to. Nobody offers anything there. */
void an_own_address_is_asked_at_once(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	make_far(&config, &sys);
	sys.getsockname = name_far_self;
	use(1);
	turn();
	assert_non_null(engines[0]->service);
	assert_connector(SHUNT_CANDIDATE, SHUNT_CAUSE_NO_SHUNT);
	/* Another process may have it later: it is claimed again a few times, and then no more. */
	for (uint8_t looks = 1; looks <= SHUNT_DOUBT_CLAIMS_ALONE; looks++) {
		assert_int_equal(stream_of(&bed.pair[0].side[0])->doubt.looks, looks);
		pair_skew += 16000000000;
		use(18);
	}
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
	all_arrived();
	leave_bed();
}

/* A call that waits for more is one use, whatever it has moved. */
void another_host_is_asked_during_a_long_call(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	struct shunt_sys sys;

	(void)state;
	config.claim_ms = 60000;
	make_far(&config, &sys);
	stream = stream_of(&bed.pair[0].side[0]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(put(0, 0, BUFFER / 2, 0), BUFFER / 2);
		assert_null(engines[0]->service);
		shunt_lock_take(stream_reader_lock(stream));
		assert_int_equal(shunt_wait_call(stream, stream_reader_lock(stream),
						 EPOLLIN, shunt_now(engines[0]), false),
				 -EAGAIN);
		shunt_lock_leave(stream_reader_lock(stream));
	}
	assert_non_null(engines[0]->service);
	turn();
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_OTHER_HOST);
	all_arrived();
	leave_bed();
}

void another_host_is_asked_at_once_if_wanted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	config.brief = 0;
	make_far(&config, &sys);
	use(1);
	turn();
	assert_connector(SHUNT_PLAIN, SHUNT_CAUSE_OTHER_HOST);
	all_arrived();
	leave_bed();
}

/* A service thread that is there is asked, and has the stream wait as well. */
void a_service_puts_off_a_short_one(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;

	(void)state;
	config.claim_ms = 60000;
	config.refused_ms = 0;
	make_bed(&config, 1);
	peers_are_far(0, &sys);
	connect_pair(&bed.pair[1]);
	for (int i = 0; i < 17; i++) {
		put(1, 0, 1, 0);
		some_turns();
		assert_int_equal(stream_state(stream_of(&bed.pair[1].side[0])), SHUNT_CANDIDATE);
	}
	put(1, 0, 1, 0);
	some_turns();
	assert_int_equal(stream_of(&bed.pair[1].side[0])->why.plain, SHUNT_CAUSE_OTHER_HOST);
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	some_turns();
	end_bed();
}

/* Nothing has to be made for it. */
void a_link_to_another_host_is_used_at_once(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_channel *channel;
	struct shunt_link *link;
	struct shunt_sys sys;
	struct shunt_name name;
	uint64_t before;

	(void)state;
	make_bed(&config, 1);
	link = bed.lane[0]->link;
	channel = &link->channel;
	name = link->line.name;
	peers_are_far(0, &sys);
	connect_pair(&bed.pair[1]);
	assert_int_equal(shunt_claim_learn(engines[0], stream_of(&bed.pair[1].side[0])), 0);
	shunt_rendezvous_name(far_away, stream_of(&bed.pair[1].side[0])->tuple.peer_port, false,
			      &link->line.name);
	channel->kind = SHUNT_CHANNEL_TCP;
	channel->begun = true;
	memcpy(channel->here, stream_of(&bed.pair[1].side[0])->tuple.local, 16);
	memcpy(channel->there, far_away, 16);
	before = claims();
	put(1, 0, 1, 0);
	shunt_service_step(engines[0], 0);
	channel->kind = SHUNT_CHANNEL_UNIX;
	link->line.name = name;
	assert_int_equal(claims(), before + 1);
	some_turns();
	pair_skew += 2 * config.claim_ms *
		     1000000; /* the acceptor has no such connection, and says so then */
	some_turns();
	close_side(&bed.pair[1].side[0]);
	close_side(&bed.pair[1].side[1]);
	some_turns();
	end_bed();
}
