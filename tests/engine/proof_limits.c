/* SPDX-License-Identifier: MIT */
/* Limits of proofs: how many are under way or wrong, how long each takes (core/peer/limits.h). */
#include "tests/engine/liar.h"
#include <unistd.h>
#include "core/api.h"
#include "core/peer/limits.h"
#include "core/service.h"

void so_many_proofs_are_under_way(void **state)
{
	enum { MORE = 6, ALL = SHUNT_PROOFS_PER_LINK + MORE };
	struct shunt_message message;
	struct pair pair[ALL];
	uint32_t theirs = 0;
	struct liar liar;
	int challenged = 0;

	(void)state;
	make_strangers();
	liar = claimant();
	for (uint32_t i = 0; i < ALL; i++) {
		pair[i] = half_known(CLAIMANT);
		message = ask_for(&liar, &pair[i], PROVES + i);
		say(&liar, &message);
		step(1);
		while (hears(&liar, &message)) {
			assert_int_equal(message.type, SHUNT_MSG_CHALLENGE);
			theirs = message.proof.number;
			challenged++;
		}
	}
	assert_int_equal(challenged, SHUNT_PROOFS_PER_LINK);
	message = (struct shunt_message) { .type = SHUNT_MSG_REFUSE, .stream = theirs };
	say(&liar, &message);
	expect(&liar, SHUNT_MSG_CHALLENGE, &message);
	assert_int_equal(message.stream,
			 PROVES + SHUNT_PROOFS_PER_LINK);	/* who has waited longest */
	assert_false(hears(&liar, &message));
	close(liar.fd);
	settle();
	assert_clean(1);
	for (uint32_t i = 0; i < ALL; i++) {
		assert_int_equal(options_of(pair[i].side[1].fd), AS_MADE);
		close_pair(&pair[i]);
	}
}

static bool is_heard(void)
{
	struct shunt_message message;
	int fd = dial();
	bool heard;

	step(1);
	heard = recv(fd, &message, sizeof(message), MSG_DONTWAIT) == sizeof(message);
	close(fd);
	settle();
	return heard;
}

/* Time stands still, and a stranger claims a connection. */
static struct liar make_liar(struct pair *pair)
{
	make_strangers();
	freeze_clock(true);
	*pair = half_known(CLAIMANT);
	return claimant();
}

void who_is_often_wrong_is_not_heard_for_a_minute(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	liar = make_liar(&pair);
	for (int i = 0; i < SHUNT_WRONG_PER_USER; i++) {
		assert_true(is_heard());
		ask(&liar, &pair);
		be_challenged(&liar);
		liar.half[0]++;
		reveal(&liar);
		step(1);
		if (i + 1 < SHUNT_WRONG_PER_USER)
			expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	}
	settle();
	assert_int_equal(links_of(1), 0);
	assert_false(is_heard());
	pair_skew += SHUNT_WRONG_NS - 1000000;
	assert_false(is_heard());
	pair_skew += 2000000;
	assert_true(is_heard());
	assert_is_taken(&pair);
	freeze_clock(false);
	close(liar.fd);
	close_pair(&pair);
}

/* The port of a socket's own address. */
static in_port_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return address.sin_port;
}

static uint32_t vain(void)
{
	return engines[1]->service->users[0].sum[SHUNT_SUM_VAIN];
}

/* The bits are wrong: the program is about to close the connection, and has them back. */
static void show_nothing(struct pair *pair)
{
	struct shunt_message message;
	struct liar liar = claimant();

	ask(&liar, pair);
	be_challenged(&liar);
	reveal(&liar);
	assert_false(go_on(&liar, &message));
	assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
	hang_up(&liar);
}

/* More than SHUNT_WRONG_PER_USER in a minute, each of a connection that ends. */
void who_closes_during_a_proof_was_not_wrong(void **state)
{
	enum { EACH = SHUNT_WRONG_PER_USER };
	struct pair pair[EACH];

	(void)state;
	make_strangers();
	freeze_clock(true);
	for (int n = 1; n <= 4; n++) {
		for (int i = 0; i < EACH; i++) {
			pair[i] = half_known(CLAIMANT);
			show_nothing(&pair[i]);
		}
		assert_int_equal(engines[1]->service->doubts.count, EACH);
		for (int i = 0; i < EACH; i++)
			close_pair(&pair[i]);
		assert_int_equal(wrong(1), 0);
		assert_int_equal(engines[1]->service->doubts.count, 0);
		assert_int_equal(vain(), n * EACH);
		assert_true(is_heard());
	}
	pair[0] = half_known(CLAIMANT);	/* one that lives, and one whose addresses are another's */
	pair[1] = half_known(CLAIMANT);
	show_nothing(&pair[0]);
	show_nothing(&pair[1]);
	replaced = port_of(pair[1].side[0].fd);
	assert_int_equal(wrong(1), 1);
	replaced = 0;
	freeze_clock(false);
	close_pair(&pair[0]);
	close_pair(&pair[1]);
}

/* Each connection has ended, so no answer was wrong. */
/* Answers beyond SHUNT_DOUBTS_PER_USER are wrong at once. */
void not_much_is_in_doubt(void **state)
{
	struct pair pair;

	(void)state;
	make_strangers();
	freeze_clock(true);
	pair = half_known(CLAIMANT);
	for (int i = 0; i < SHUNT_DOUBTS_PER_USER + 3; i++)
		show_nothing(&pair);
	assert_int_equal(engines[1]->service->doubts.count, SHUNT_DOUBTS_PER_USER);
	assert_int_equal(engines[1]->service->users[0].sum[SHUNT_SUM_WRONG], 3);
	assert_int_equal(wrong(1), SHUNT_DOUBTS_PER_USER + 3);
	assert_false(is_heard());
	freeze_clock(false);
	close_pair(&pair);
}

void who_begins_too_many_proofs_is_not_heard(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE };
	struct liar liar;
	struct pair pair;

	(void)state;
	liar = make_liar(&pair);
	assert_int_equal(shutdown(pair.side[0].fd, SHUT_WR), 0);
	for (int i = 0; i < SHUNT_VAIN_PER_USER; i++) {
		assert_int_equal(vain(), i);
		ask(&liar, &pair);
		be_challenged(&liar);
		message.stream = liar.number;
		say(&liar, &message);
		step(1);
	}
	assert_int_equal(wrong(1), 0);
	settle();
	assert_int_equal(links_of(1), 0);
	assert_false(is_heard());
	pair_skew += SHUNT_WRONG_NS + 1000000;
	assert_true(is_heard());
	freeze_clock(false);
	close(liar.fd);
	close_pair(&pair);
}

void an_unused_connection_is_not_given_up(void **state)
{
	struct liar liar;
	struct pair pair;
	char byte;

	(void)state;
	make_strangers();
	liar = claimant();
	connect_pair(&pair);
	shunt_file_closing(engines[0], pair.side[0].fd);
	ask(&liar, &pair);
	step(1);
	assert_non_null(engines[1]->service->parked);
	pair_skew += engines[1]->config.claim_ms * 1000000 + 1000000;
	expect_refusal(&liar, SHUNT_REFUSED_UNUSED);
	assert_int_equal(stream_state(stream_of(&pair.side[1])), SHUNT_CANDIDATE);
	receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT);
	settle();
	assert_is_taken(&pair);
	hang_up(&liar);
	close_pair(&pair);
}

/* 0: no REVEAL; 1: no SHOWN. */
void an_overdue_proof_ends(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		liar.socket = pair.side[0].fd;
		ask(&liar, &pair);
		be_challenged(&liar);
		if (what) {
			reveal(&liar);
			expect(&liar, SHUNT_MSG_SHOWN, &message);
		}
		pair_skew += SHUNT_PROOF_NS + 1000000;
		expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
		assert_int_equal(wrong(1), 1);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		assert_clean(1);
		set_options(liar.socket, AS_MADE);
		hang_up(&liar);
		close_pair(&pair);
	}
}
