/* SPDX-License-Identifier: MIT */
/* Acceptors that lie or squat, and a process that relays what a claimant and an acceptor say. */
#include "tests/engine/liar.h"
#include <string.h>
#include <unistd.h>
#include "core/peer/limits.h"
#include "core/service.h"

/* --- acceptors that lie --- */

static struct liar asked(struct pair *pair, struct shunt_message *message)
{
	struct liar liar;

	make_strangers();
	make_door();
	*pair = half_known(ACCEPTOR);
	liar = acceptor();
	expect(&liar, SHUNT_MSG_ASK, message);
	liar.number = message->proof.number;
	liar.tuple = message->proof.tuple;
	return liar;
}

static void challenge(struct liar *liar)
{
	struct shunt_message message = { .type = SHUNT_MSG_CHALLENGE, .stream = liar->number };

	memset(liar->half, 5, HALF);
	memcpy(message.proof.bytes, liar->half, HALF);
	message.proof.number = PROVES;
	say(liar, &message);
	expect(liar, SHUNT_MSG_REVEAL, &message);
	assert_int_equal(message.stream, PROVES);
	liar->ours = parts(liar, "acceptor", message.proof.bytes);
}

/* The acceptor's half of go_on(). */
static bool answer(struct liar *liar, struct shunt_message *message)
{
	for (uint32_t round = 0; round < SHUNT_PROOF_ROUNDS; round++) {
		show(liar, round);
		say_shown(liar, round);
		if (!hears(liar, message) || message->type != SHUNT_MSG_SHOWN)
			return false;
		assert_int_equal(message->proof.round, round + 1);
	}
	return true;
}

void an_acceptor_proves_too(void **state)
{
	(void)state;
	for (int has = 0; has < 2; has++) {
		struct shunt_message message;
		struct pair pair;
		struct liar liar = asked(&pair, &message);

		liar.socket = has ? pair.side[1].fd : -1;
		challenge(&liar);
		if (has) {
			assert_true(answer(&liar, &message));
			set_options(liar.socket, AS_MADE);
			expect(&liar, SHUNT_MSG_HELLO, &message);
			assert_int_equal(proven(0), 1);
		} else {
			assert_false(answer(&liar, &message));
			assert_int_equal(message.type, SHUNT_MSG_REFUSE);
			assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
			assert_int_equal(disproven(0), 1);
			assert_int_equal(wrong(0), 1);
			assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_PLAIN);
			assert_false(hears(&liar, &message));	/* nothing of ours is given */
		}
		assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
		assert_clean(0);
		hang_up(&liar);
		close_door();
		close_pair(&pair);
	}
}

/* 0: no CHALLENGE; 1: no SHOWN. The program waits for neither. */
void an_acceptor_that_says_nothing_is_given_up(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct pair pair;
		struct liar liar = asked(&pair, &message);

		if (what)
			challenge(&liar);
		pair_skew += SHUNT_PROOF_NS + 4 * engines[0]->config.claim_ms * 1000000 + 1000000;
		step(0);
		step(0);
		assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_PLAIN);
		assert_int_equal(wrong(0), what);
		assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
		assert_clean(0);
		hang_up(&liar);
		close_door();
		close_pair(&pair);
	}
}

/* It sits on the name, and does not even knock. */
void a_squatter_that_says_nothing_is_given_up(void **state)
{
	struct pair pair;
	int fd = -1;

	(void)state;
	make_strangers();
	make_door();
	pair = half_known(ACCEPTOR);
	for (int i = 0; fd < 0; i++) {
		assert_true(i < FOREVER);
		step(0);
		fd = come();
	}
	step(0);
	assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_CANDIDATE);
	pair_skew += SHUNT_HELLO_NS + 1000000;
	for (int i = 0; i < 5; i++)
		step(0);
	assert_int_equal(stream_state(stream_of(&pair.side[0])), SHUNT_PLAIN);
	assert_int_equal(links_of(0), 0);
	close(fd);
	close_door();
	close_pair(&pair);
}

/* --- a process in between --- */

static void pass_on(struct liar *from, struct liar *to)
{
	struct shunt_message message;

	while (hears(from, &message)) {
		if (message.type == SHUNT_MSG_HELLO)
			fail_msg("an engine introduces itself to a process in between");
		if (message.type == SHUNT_MSG_ASK || message.type == SHUNT_MSG_CHALLENGE)
			from->number = message.proof.number;
		if (message.type == SHUNT_MSG_ASK)
			message.stream = 0;
		else
			message.stream = to->number;
		say(to, &message);
		step(engine_of(to));
	}
}

/*
 * It asks at the one for what the other asks of it, and tells each what the other says: neither
 * believes it.
 */
void who_stands_in_between_proves_nothing(void **state)
{
	struct liar to_claimant, to_acceptor;
	struct pair pair;

	(void)state;
	make_strangers();
	make_door();
	connect_pair(&pair);
	send_some(&pair.side[0], "x", 1, 0);
	assert_int_equal(receive_some(&pair.side[1], &(char) { 0 }, 1, MSG_DONTWAIT), 1);
	to_claimant = acceptor();
	to_acceptor = claimant();
	for (int i = 0; i < FOREVER / 4; i++) {
		pass_on(&to_claimant, &to_acceptor);
		pass_on(&to_acceptor, &to_claimant);
	}
	assert_int_equal(proven(0) + proven(1), 0);
	assert_int_equal(disproven(0) + disproven(1),
			 1);	/* the first that looks: the other is refused then */
	assert_int_equal(options_of(pair.side[0].fd), AS_MADE);
	assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
	close(to_claimant.fd);
	hang_up(&to_acceptor);
	assert_clean(0);
	assert_clean(1);
	close_door();
	close_pair(&pair);
}
