/* SPDX-License-Identifier: MIT */
/*
 * A liar is no engine: it speaks the channel by hand to one of two engines (users.h), as a claimant
 * or as an acceptor.
 */
#ifndef TESTS_ENGINE_LIAR_H
#define TESTS_ENGINE_LIAR_H

#include "tests/engine/users.h"
#include "core/stream/tuple.h"

#define HALF SHUNT_DIGEST_BYTES
#define PROVES 0x80000007u	/* a liar's number for a proof */

struct liar {
	int fd;	/* its channel */
	int role;	/* CLAIMANT or ACCEPTOR */
	int socket;	/* that it changes; -1: none */
	uint32_t number;	/* the engine's for the proof */
	uint8_t half[HALF];
	struct shunt_tuple tuple;	/* as the claimant sees it */
	uint8_t peers[HALF];
	uint32_t ours;	/* what the socket has to show */
};

/* The engine that the liar speaks to. */
int engine_of(const struct liar *liar);
/* Comes to engine 1. */
struct liar claimant(void);
/* Engine 0 comes to it, for a connection that its program has used; the middleman has a door. */
struct liar acceptor(void);
/* A channel to engine 1, on which nothing has been said. */
int dial(void);
void hang_up(struct liar *liar);

void say(struct liar *liar, const struct shunt_message *message);
/* The engine's next message; false: nothing, or it has hung up. */
bool hears(struct liar *liar, struct shunt_message *message);
void expect(struct liar *liar, enum shunt_message_type type, struct shunt_message *message);
void expect_refusal(struct liar *liar, enum shunt_refusal why);

/* --- the steps of a proof --- */

uint64_t network_of(int fd);
struct shunt_message ask_for(struct liar *liar, const struct pair *pair, uint32_t number);
void ask(struct liar *liar, const struct pair *pair);
/* As core/peer/possession.c has it: a channel's ends are the claimant's and the acceptor's. */
uint32_t parts(const struct liar *liar, const char *whose, const uint8_t peers[HALF]);
/* The acceptor has challenged: the liar knows what to show. */
void be_challenged(struct liar *liar);
void reveal(struct liar *liar);
void show(const struct liar *liar, uint32_t round);
void say_shown(struct liar *liar, uint32_t round);
/*
 * Until the engine says something else than SHOWN, or all has been shown: true. The liar does not
 * look.
 */
bool go_on(struct liar *liar, struct shunt_message *message);
/* As one that has the socket. */
void prove(struct liar *liar, const struct pair *pair);
/* An honest one comes, and the connection is its. */
void assert_is_taken(struct pair *pair);

/* --- the tests that possession.c runs from other files --- */

/* proof_limits.c */
void so_many_proofs_are_under_way(void **state);
void who_is_often_wrong_is_not_heard_for_a_minute(void **state);
void who_closes_during_a_proof_was_not_wrong(void **state);
void not_much_is_in_doubt(void **state);
void who_begins_too_many_proofs_is_not_heard(void **state);
void an_unused_connection_is_not_given_up(void **state);
void an_overdue_proof_ends(void **state);

/* relay.c */
void an_acceptor_proves_too(void **state);
void an_acceptor_that_says_nothing_is_given_up(void **state);
void a_squatter_that_says_nothing_is_given_up(void **state);
void who_stands_in_between_proves_nothing(void **state);

/* interrupted.c */
void two_engines_prove_each_connection(void **state);
void a_claim_without_a_proof_is_refused(void **state);
void a_proof_may_end_at_any_step(void **state);

/* silent.c */
void a_silent_stranger_loses_no_byte(void **state);
void a_silent_stranger_that_dies_is_no_end(void **state);
void a_link_has_one_patience(void **state);
void answers_at_the_last_moment_are_counted(void **state);
void patience_comes_back(void **state);
void who_leaves_waits_no_longer(void **state);

#endif
