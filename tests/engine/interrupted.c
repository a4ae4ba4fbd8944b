/* SPDX-License-Identifier: MIT */
/* Two engines prove connections to each other; each step of a proof is interrupted. */
#include "tests/engine/liar.h"
#include <netinet/in.h>
#include <unistd.h>
#include "core/api.h"
#include "core/peer/limits.h"
#include "core/peer/link_end.h"
#include "core/service.h"

#define MINUTE 61000000000ull

static bool is_linked(struct pair *pair)
{
	return stream_state(stream_of(&pair->side[0])) == SHUNT_LINKED &&
	       stream_state(stream_of(&pair->side[1])) == SHUNT_LINKED;
}

static void begin(struct pair *pair)
{
	char byte;

	connect_pair(pair);
	send_some(&pair->side[0], "x", 1, 0);
	receive_some(&pair->side[1], &byte, 1, MSG_DONTWAIT);
}

static void until_linked(struct pair *pair)
{
	for (int n = 0; !is_linked(pair); n++) {
		assert_true(n < FOREVER);
		turn();
	}
}

void two_engines_prove_each_connection(void **state)
{
	struct pair pair[3];

	(void)state;
	make_strangers();
	for (int i = 0; i < 3; i++) {
		begin(&pair[i]);
		until_linked(&pair[i]);
		for (int side = 0; side < 2; side++) {
			assert_int_equal(proven(side), i + 1);
			assert_int_equal(options_of(pair[i].side[side].fd), AS_MADE);
		}
	}
	assert_int_equal(links_of(1), 1);
	for (int i = 0; i < 3; i++)
		close_pair(&pair[i]);
}

/* On a link that has proven another one. */
void a_claim_without_a_proof_is_refused(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };
	struct pair linked, pair;
	struct shunt_link *link;
	struct liar liar;

	(void)state;
	make_strangers();
	begin(&linked);
	until_linked(&linked);
	link = stream_link(stream_of(&linked.side[0]));
	pair = half_known(CLAIMANT);
	ask_for(&liar, &pair, PROVES);
	message.claim.tuple = liar.tuple;
	message.claim.network = network_of(pair.side[0].fd);
	message.claim.place = (struct shunt_place) { .ring_offset = link->arena.memory.reserved,
						     .ring_bytes = 4096,
						     .stream = 9,
						     .rkey = link->arena.lines->rkey };
	assert_int_equal(shunt_link_send(link, &message, NULL, 0), 0);
	settle();
	assert_int_equal(refused_for[1], SHUNT_REFUSED_DISPROVEN + 1);
	assert_int_equal(stream_state(stream_of(&pair.side[1])), SHUNT_CANDIDATE);
	assert_int_equal(atomic_load(&engines[1]->links.distrusted), 0);
	assert_int_equal(links_of(1), 1);
	assert_true(is_linked(&linked));
	assert_is_taken(&pair);
	close_pair(&pair);
	close_pair(&linked);
}

enum interruption {
	LINK_DIES,
	PROGRAM_CLOSES,
	TURNS_PLAIN,
	PROGRAM_ASKS,
	WITNESS_GOES,
	INTERRUPTIONS
};

static void interrupt(enum interruption what, struct pair *pair, int side)
{
	struct shunt_link *link = engines[side]->service ? engines[side]->service->links : NULL;
	struct shunt_stream *stream = stream_of(&pair->side[side]);

	switch (what) {
	case LINK_DIES:
		if (link)
			role_kill_link(link, "the test");
		break;
	case PROGRAM_CLOSES:
		shunt_file_closing(engines[side], pair->side[side].fd);
		break;
	case TURNS_PLAIN: /* before fork() and exec(), and where the socket is passed on */
		shunt_streams_plain(engines[side], stream, SHUNT_CAUSE_FORK);
		break;
	case PROGRAM_ASKS:
		assert_true(shunt_stream_option_begins(stream, IPPROTO_IP, IP_FREEBIND));
		assert_int_equal(options_of(pair->side[side].fd), AS_MADE);
		shunt_stream_option_ends(stream);
		break;
	default:
		shunt_witness_dismiss(engines[side]->service);
	}
	if (what != LINK_DIES && what != WITNESS_GOES)
		assert_int_equal(options_of(pair->side[side].fd), AS_MADE);
}

/* After so many steps. True: the connection had been linked before. */
static bool interrupt_after(enum interruption what, int side, int steps)
{
	struct pair pair;
	bool over;

	pair_skew += MINUTE;	/* wrong answers of the last time are forgotten */
	begin(&pair);
	for (int n = 0; n < steps; n++)
		step(n & 1);
	over = is_linked(&pair);
	interrupt(what, &pair, side);
	settle();
	pair_skew += SHUNT_PROOF_NS + 4 * engines[0]->config.claim_ms * 1000000 + 1000000;
	settle();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(options_of(pair.side[i].fd), AS_MADE);
		assert_clean(i);
		assert_int_equal(atomic_load(&engines[i]->links.distrusted), 0);
	}
	if (what != PROGRAM_CLOSES)
		close_pair(&pair);
	close(pair.side[side].fd);
	if (what == PROGRAM_CLOSES)
		close_side(&pair.side[!side]);
	settle();
	return over;
}

void a_proof_may_end_at_any_step(void **state)
{
	int interrupted = 0;

	(void)state;
	for (enum interruption what = 0; what < INTERRUPTIONS; what++) {
		for (int side = 0; side < 2; side++) {
			int steps = 1;

			make_strangers();
			begin(&bed.pair[0]);	/* this one holds the address */
			until_linked(&bed.pair[0]);
			for (; !interrupt_after(what, side, steps); steps++)
				assert_true(steps < FOREVER);
			interrupted += steps;
			close_pair(&bed.pair[0]);
		}
	}
	print_message("%d times\n", interrupted);
}
