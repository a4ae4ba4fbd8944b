/* SPDX-License-Identifier: MIT */
/*
 * Proofs of possession against claimants that lie, squat and replay. TCP and the witness are the
 * kernel's own. The program runs the tests of proof_limits.c, relay.c and interrupted.c, too.
 */
#include "tests/engine/liar.h"
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/service.h"

uint64_t sim_random_state;

/* --- claimants that lie --- */

static void the_holder_is_believed(void **state)
{
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	assert_is_taken(&pair);
	assert_int_equal(disproven(1), 0);
	assert_int_equal(wrong(1), 0);
	assert_clean(1);
	close_pair(&pair);
}

static void a_socket_that_shows_nothing_disproves(void **state)
{
	struct shunt_message message;
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	assert_false(go_on(&liar,
			   &message));	/* by chance, some part may be what the socket has anyway */
	assert_int_equal(message.type, SHUNT_MSG_REFUSE);
	assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	assert_int_equal(proven(1), 0);
	assert_int_equal(wrong(1), 1);
	assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
	assert_is_taken(&pair);
	hang_up(&liar);
	assert_clean(1);
	close_pair(&pair);
}

static void another_half_disproves(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;	/* it even has the socket */
	ask(&liar, &pair);
	be_challenged(&liar);
	liar.half[3] ^= 1;
	liar.ours = parts(&liar, "claimant", liar.peers);	/* and shows what that half wants */
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	assert_int_equal(wrong(1), 1);
	set_options(liar.socket, AS_MADE);
	assert_is_taken(&pair);
	hang_up(&liar);
	close_pair(&pair);
}

/*
 * It has seen that chance is against it. It could have gone on with the proof, so it is free to go
 * with its connection.
 */
static void who_goes_knowing_the_bits_was_wrong(void **state)
{
	static const struct linger abort_now = { 1, 0 };

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct shunt_message refuse = { .type = SHUNT_MSG_REFUSE };
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		ask(&liar, &pair);
		be_challenged(&liar);
		refuse.stream = liar.number;
		if (what == 2) {
			setsockopt(pair.side[0].fd, SOL_SOCKET, SO_LINGER, &abort_now,
				   sizeof(abort_now));
			close(pair.side[0].fd);
		}
		if (what == 1)
			say(&liar, &refuse);
		else
			close(liar.fd);
		settle();
		assert_int_equal(wrong(1), what < 2);
		assert_clean(1);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		if (what == 1)
			close(liar.fd);
		if (what == 2)
			close_side(&pair.side[1]);
		else
			close_pair(&pair);
	}
}

/* A right answer counts on its own channel and for its own connection alone. */
static void a_proof_is_of_one_channel_and_connection(void **state)
{
	(void)state;
	for (int what = 0; what < 2; what++) {
		struct shunt_message message;
		struct liar first, second;
		struct pair pair, other;

		make_strangers();
		pair = half_known(CLAIMANT);
		other = half_known(CLAIMANT);
		first = claimant();
		prove(&first, &pair);
		second = what ? first : claimant();
		second.socket = what ? other.side[0].fd : pair.side[0].fd;
		ask(&second, what ? &other : &pair);
		be_challenged(&second);
		assert_int_not_equal(second.ours, first.ours);
		second.ours = first.ours;
		reveal(&second);
		assert_false(go_on(&second, &message));
		assert_int_equal(message.why, SHUNT_REFUSED_DISPROVEN);
		assert_int_equal(disproven(1), 1);
		assert_int_equal(proven(1), 1);
		close(first.fd);
		if (!what)
			close(second.fd);
		set_options(second.socket, AS_MADE);
		close_pair(&pair);
		close_pair(&other);
	}
}

static void assert_distrusts(struct liar *liar)
{
	struct shunt_message message;

	while (hears(liar, &message))
		assert_int_not_equal(message.type, SHUNT_MSG_HELLO);
	settle();
	assert_int_equal(atomic_load(&engines[engine_of(liar)]->links.distrusted), 1);
	assert_int_equal(links_of(engine_of(liar)), 0);
	assert_clean(engine_of(liar));
	close(liar->fd);
}

static void no_hello_comes_before_a_proof(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO };
	struct liar liar;

	(void)state;
	make_strangers();
	liar = claimant();
	message.hello = (struct shunt_hello) { .magic = SHUNT_WIRE_MAGIC,
					       .version = SHUNT_WIRE_VERSION,
					       .receives = 64,
					       .streams = 32,
					       .kind = 1,
					       .lanes = 1,
					       .arena_bytes = 1 << 20 };
	say(&liar, &message);
	shunt_service_step(engines[1], 0);
	assert_non_null(engines[1]->service->links);	/* it goes in the next step */
	assert_string_equal(engines[1]->service->links->failure, "it has not proven a connection");
	assert_distrusts(&liar);
}

static void a_part_out_of_turn_is_distrusted(void **state)
{
	(void)state;
	for (int what = 0; what < 5; what++) {
		struct shunt_message message;
		struct liar liar;
		struct pair pair;

		make_strangers();
		pair = half_known(CLAIMANT);
		liar = claimant();
		liar.socket = pair.side[0].fd;
		ask(&liar, &pair);
		be_challenged(&liar);
		if (what == 0) {	/* before the half is revealed */
			say_shown(&liar, 1);
		} else {
			reveal(&liar);
			if (what > 1)	/* else before ours has shown anything */
				expect(&liar, SHUNT_MSG_SHOWN, &message);
			if (what == 4)	/* two at once */
				say_shown(&liar, 1);
			say_shown(&liar, what == 3 ? SHUNT_PROOF_ROUNDS : what == 4 ? 2 : what);
		}
		assert_distrusts(&liar);
		assert_int_equal(proven(1), 0);
		assert_int_equal(options_of(pair.side[1].fd), AS_MADE);
		set_options(liar.socket, AS_MADE);
		close_pair(&pair);
	}
}

/* --- what the witness sees --- */

/* It can say nothing of whom it does not see, and that is nobody's fault. */
static void without_a_witness_nobody_is_wrong(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	is_blind = true;
	pair = half_known(CLAIMANT);
	liar = claimant();
	ask(&liar, &pair);
	is_blind = false;
	be_challenged(&liar);
	shunt_witness_dismiss(engines[1]->service);
	is_blind = true;
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_UNSEEN);
	assert_int_equal(wrong(1), 0);
	hang_up(&liar);
	is_blind = false;
	assert_is_taken(&pair);
	close_pair(&pair);
}

/*
 * The witness speaks of another network than the connection's: nothing that it shows counts, for or
 * against.
 */
static void a_witness_elsewhere_is_none(void **state)
{
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	is_elsewhere = true;
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	expect_refusal(&liar, SHUNT_REFUSED_UNSEEN);
	assert_int_equal(wrong(1), 0);
	assert_int_equal(proven(1), 0);
	is_elsewhere = false;
	set_options(liar.socket, AS_MADE);
	hang_up(&liar);
	assert_is_taken(&pair);
	close_pair(&pair);
}

/* The connection has ended in the middle, and another one has its addresses. */
static void another_socket_disproves(void **state)
{
	struct shunt_message message;
	struct liar liar;
	struct pair pair;

	(void)state;
	make_strangers();
	pair = half_known(CLAIMANT);
	liar = claimant();
	liar.socket = pair.side[0].fd;
	ask(&liar, &pair);
	be_challenged(&liar);
	reveal(&liar);
	expect(&liar, SHUNT_MSG_SHOWN, &message);
	replaced = liar.tuple.local_port;
	show(&liar, 1);
	say_shown(&liar, 1);
	expect_refusal(&liar, SHUNT_REFUSED_DISPROVEN);
	assert_int_equal(disproven(1), 1);
	replaced = 0;
	set_options(liar.socket, AS_MADE);
	hang_up(&liar);
	close_pair(&pair);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_holder_is_believed),
		cmocka_unit_test(a_socket_that_shows_nothing_disproves),
		cmocka_unit_test(another_half_disproves),
		cmocka_unit_test(who_goes_knowing_the_bits_was_wrong),
		cmocka_unit_test(a_proof_is_of_one_channel_and_connection),
		cmocka_unit_test(no_hello_comes_before_a_proof),
		cmocka_unit_test(a_part_out_of_turn_is_distrusted),
		cmocka_unit_test(so_many_proofs_are_under_way),
		cmocka_unit_test(who_is_often_wrong_is_not_heard_for_a_minute),
		cmocka_unit_test(who_closes_during_a_proof_was_not_wrong),
		cmocka_unit_test(not_much_is_in_doubt),
		cmocka_unit_test(who_begins_too_many_proofs_is_not_heard),
		cmocka_unit_test(an_unused_connection_is_not_given_up),
		cmocka_unit_test(an_overdue_proof_ends),
		cmocka_unit_test(without_a_witness_nobody_is_wrong),
		cmocka_unit_test(a_witness_elsewhere_is_none),
		cmocka_unit_test(another_socket_disproves),
		cmocka_unit_test(an_acceptor_proves_too),
		cmocka_unit_test(an_acceptor_that_says_nothing_is_given_up),
		cmocka_unit_test(a_squatter_that_says_nothing_is_given_up),
		cmocka_unit_test(who_stands_in_between_proves_nothing),
		cmocka_unit_test(two_engines_prove_each_connection),
		cmocka_unit_test(a_claim_without_a_proof_is_refused),
		cmocka_unit_test(a_proof_may_end_at_any_step),
		cmocka_unit_test(a_silent_stranger_loses_no_byte),
		cmocka_unit_test(a_silent_stranger_that_dies_is_no_end),
		cmocka_unit_test(a_link_has_one_patience),
		cmocka_unit_test(answers_at_the_last_moment_are_counted),
		cmocka_unit_test(patience_comes_back),
		cmocka_unit_test(who_leaves_waits_no_longer),
	};

	int witness = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (witness < 0) {
		printf("there is no witness here: %s\n", strerror(errno));
		return 77;
	}
	close(witness);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
