/* SPDX-License-Identifier: MIT */
/* Which accepted connections are the kernel's because nobody has claimed them. */
#include "tests/engine/bed.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "core/base/address.h"
#include "core/peer/rendezvous.h"

static void some_turns(void)
{
	for (int i = 0; i < 5; i++)
		turn();
}

static void let_pass(uint64_t ms)
{
	pair_skew += ms * 1000000;
	some_turns();
}

/* The connecting side's system calls are its own: it is a plain program. */
static void say(struct pair *pair)
{
	char byte;

	assert_int_equal(send(pair->side[0].fd, "x", 1, 0), 1);
	while (receive_some(&pair->side[1], &byte, 1, MSG_DONTWAIT) != 1)
		turn();
}

static void assert_state(struct pair *pair, uint8_t state, enum shunt_cause cause)
{
	struct shunt_stream *stream = stream_of(&pair->side[1]);

	assert_int_equal(stream_state(stream), state);
	assert_int_equal(stream->why.plain, cause);
}

static void end(struct pair *pair)
{
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	some_turns();
}

/* Nothing is called on it meanwhile: the service thread's time is enough. */
void a_plain_peer_is_told_by_time(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair pair[3];

	(void)state;
	config.claim_ms = 20000;	/* the clock goes on by itself, too */
	make_bed(&config, 1);
	for (int i = 0; i < 3; i++)
		connect_pair(&pair[i]);
	say(&pair[0]);
	let_pass(config.claim_ms / 2);
	say(&pair[1]);
	let_pass(config.claim_ms / 4);
	say(&pair[0]);
	assert_state(&pair[0], SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	let_pass(config.claim_ms / 2);
	assert_state(&pair[0], SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
	assert_state(&pair[1], SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	let_pass(config.claim_ms / 2);
	assert_state(&pair[1], SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
	assert_false(shunt_task_waits(&engines[1]->work.tasks.claim_task_unclaimed));	/* and nothing ticks for the third */
	let_pass(10 * config.claim_ms);
	assert_state(&pair[2], SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	for (int i = 0; i < 3; i++)
		end(&pair[i]);
	end_bed();
}

/* Its host has asked, and could not be answered. */
void a_peer_with_another_key_is_told(void **state)
{
	static const uint8_t hosts[2][16] = { { SHUNT_ADDRESS_V4, 127, 0, 0, 1 },
					      { SHUNT_ADDRESS_V4, 127, 0, 0, 2 } };
	struct shunt_config config = small_config(HYBRID);
	struct pair pair[2];

	(void)state;
	make_bed(&config, 1);
	for (int i = 0; i < 2; i++) {
		memcpy(engines[1]->rendezvous->other_key, hosts[i], 16);
		connect_pair(&pair[i]);
		say(&pair[i]);
		let_pass(2 * config.claim_ms);
		assert_state(&pair[i], SHUNT_PLAIN,
			     i ? SHUNT_CAUSE_NO_SHUNT : SHUNT_CAUSE_OTHER_KEY);
		end(&pair[i]);
	}
	end_bed();
}

/* A peer claims when its program uses the connection first, however late that is. */
void an_unused_connection_waits(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	char byte;

	(void)state;
	make_bed(&config, 1);
	connect_pair(&bed.pair[1]);
	assert_int_equal(receive_some(&bed.pair[1].side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	let_pass(10 * config.claim_ms);
	assert_int_equal(receive_some(&bed.pair[1].side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	bed.pairs++;
	warm(1);
	end_bed();
}

/* More than are given to the kernel in one go. */
void many_plain_peers_are_told(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	static struct pair pair[150];

	(void)state;
	make_bed(&config, 1);
	for (int i = 0; i < 150; i++) {
		connect_pair(&pair[i]);
		say(&pair[i]);
	}
	let_pass(2 * config.claim_ms);
	for (int i = 0; i < 150; i++) {
		assert_state(&pair[i], SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
		end(&pair[i]);
	}
	end_bed();
}

static int name_far_peer(int fd, struct sockaddr *address, socklen_t *length)
{
	if (getpeername(fd, address, length))
		return -1;
	((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
	return 0;
}

/* Its peer may not know yet that the connection lasts, and claims it later. */
void a_peer_on_another_host_may_take_its_time(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;
	struct pair pair;

	(void)state;
	config.claim_ms = 20000;
	make_bed(&config, 1);
	sys = *engines[1]->sys;
	sys.getpeername = name_far_peer;
	shunt_engine_surround(engines[1], &sys);
	engines[1]->rendezvous->remote = (struct cm_listener *)&sys; /* it is offered to them */
	connect_pair(&pair);
	say(&pair);
	for (int i = 0; i < 10; i++)
		let_pass(config.claim_ms);
	assert_state(&pair, SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	assert_false(shunt_task_waits(&engines[1]->work.tasks.claim_task_unclaimed));
	for (int i = 0; i < 64; i++)
		say(&pair);
	some_turns();
	assert_state(&pair, SHUNT_CANDIDATE, SHUNT_CAUSE_NONE);
	let_pass(config.claim_ms + 1);
	assert_state(&pair, SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
	end(&pair);
	engines[1]->rendezvous->remote = NULL;
	end_bed();
}

/* A listener that other hosts cannot ask has no such peers. */
void a_peer_that_cannot_ask_may_not(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_sys sys;
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	sys = *engines[1]->sys;
	sys.getpeername = name_far_peer;
	shunt_engine_surround(engines[1], &sys);
	connect_pair(&pair);
	say(&pair);
	let_pass(2 * config.claim_ms);
	assert_state(&pair, SHUNT_PLAIN, SHUNT_CAUSE_NO_SHUNT);
	end(&pair);
	end_bed();
}
