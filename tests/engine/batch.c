/* SPDX-License-Identifier: MIT */
/*
 * The posts of lanes, counted exactly: merging, chaining, and the interleavings of the merge queue.
 * The program runs the tests of credit.c, faults.c, meanwhile.c and others, too.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/roster.h"
#include "core/stream/tx.h"
#include "tests/sim/random.h"

uint64_t sim_random_state;

/* --- merging and chaining (RB-02…05, RB-08) --- */

/* The same sends in every mode: some alone, some while the lane is busy. fetched: the device fetches them (preMR, RB-09). */
static struct tally play(enum batch batch, bool fetched)
{
	struct shunt_config config = small_config(batch);
	struct tally tally;
	int sends = 0;

	if (fetched) {
		config.inline_bytes = 64;
		config.mr_threshold = 0;
	}
	config.ring_min = 256 << 10;
	make_bed(&config, 8);
	sim_random_state = 42;
	for (int round = 0; round < 200; round++) {
		bool stalled = sim_one_in(2);
		int burst = sim_between(1, 40);

		if (stalled)
			busy();
		for (int n = 0; n < burst; n++, sends++) {
			size_t bytes = sim_between(1, 1500);

			assert_int_equal(put(sim_below(8), 0, bytes, 0), bytes);
		}
		if (stalled)
			free_again();
		drain();
	}
	tally = tally_so_far();
	assert_true(batch == HYBRID || batch == MERGE || DATA_WRS() >= (uint64_t)sends);
	end_bed();
	return tally;
}

static void relate(bool fetched, const char *title)
{
	struct tally single = play(SINGLE, fetched), merge = play(MERGE, fetched),
		     chain = play(CHAIN, fetched), hybrid = play(HYBRID, fetched);

	assert_int_equal(single.wr, chain.wr);
	assert_int_equal(merge.wr, hybrid.wr);
	assert_true(single.wr > merge.wr);
	assert_int_equal(single.doorbells, single.wr);
	assert_int_equal(merge.doorbells, merge.wr);
	assert_true(single.doorbells > chain.doorbells);
	assert_true(hybrid.doorbells < merge.doorbells);
	assert_true(hybrid.doorbells <= chain.doorbells);
	assert_int_equal(single.bytes, hybrid.bytes);
	assert_int_equal(single.bytes, merge.bytes);
	assert_int_equal(single.bytes, chain.bytes);
	print_message("%s: single %lu/%lu merge %lu/%lu chain %lu/%lu hybrid %lu/%lu\n", title,
		      single.wr, single.doorbells, merge.wr, merge.doorbells, chain.wr,
		      chain.doorbells, hybrid.wr, hybrid.doorbells);
}

static void modes_relate(void **state)
{
	(void)state;
	relate(false, "wr/doorbells");
	relate(true, "preMR wr/doorbells");
}

static uint64_t thousand_sends(enum batch batch)
{
	struct shunt_config config = small_config(batch);
	uint64_t wrs;

	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	busy();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(put(0, 0, 64, 0), 64);
	assert_int_equal(WRS(), 0);
	free_again();
	assert_int_equal(BYTES(), 64000);
	wrs = WRS();
	end_bed();
	return wrs;
}

static void thousand_sends_one_wr(void **state)
{
	(void)state;
	assert_int_equal(thousand_sends(HYBRID), 1);
	assert_int_equal(thousand_sends(MERGE), 1);
	assert_int_equal(thousand_sends(SINGLE), 1000);
	assert_int_equal(thousand_sends(CHAIN), 1000);
}

/* Doorbells for one pending send on each of so many streams. */
static uint64_t doorbells_for(enum batch batch, int streams, int chain_max)
{
	struct shunt_config config = small_config(batch);
	uint64_t doorbells;

	config.chain_max = chain_max;
	make_bed(&config, streams);
	busy();
	for (int i = 0; i < streams; i++)
		put(i, 0, 100, 0);
	free_again();
	assert_int_equal(WRS(), streams);
	doorbells = COUNTED(doorbells);
	end_bed();
	return doorbells;
}

static void eight_streams_one_doorbell(void **state)
{
	(void)state;
	assert_int_equal(doorbells_for(HYBRID, 8, 16), 1);
	assert_int_equal(doorbells_for(CHAIN, 8, 16), 1);
	assert_int_equal(doorbells_for(MERGE, 8, 16), 8);
	assert_int_equal(doorbells_for(SINGLE, 8, 16), 8);
}

static void chain_has_a_limit(void **state)
{
	(void)state;
	assert_int_equal(doorbells_for(HYBRID, 10, 4), 3);
	assert_int_equal(doorbells_for(HYBRID, 10, 1), 10);
}

static void lone_request_is_not_delayed(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 64 << 10;	/* does not wrap */
	make_bed(&config, 2);
	for (int i = 0; i < 500; i++) {
		put(0, 0, 64, 0);
		assert_int_equal(DATA_WRS(), i + 1);	/* posted when the call returns */
		assert_int_equal(get(0, 0, 64), 64);
		put(0, 1, 64, 0);
		assert_int_equal(get(0, 1, 64), 64);
	}
	assert_int_equal(COUNTED(doorbells), WRS());
	assert_int_equal(COUNTED(direct), 500);
	assert_int_equal(COUNTED(staged_sends), 0);
	assert_int_equal(COUNTED(held), 0);
	end_bed();
}

/* --- the queue's interleavings (RB-06, PF-07) --- */

static int (*real_post)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static void (*meanwhile)(void);
static int refusals;	/* posts that fail altogether */

/* "Meanwhile" another thread comes; it finds the lane taken. */
static int hooked_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	void (*then)(void) = meanwhile;

	meanwhile = NULL;
	if (then && qp == bed.lane[0]->qp)
		role_play_another(then);
	if (refusals && refusals--) {
		*bad = wr;
		return ENOMEM;
	}
	return real_post(qp, wr, bad);
}

void hook(void (*then)(void))
{
	struct ibv_context *context = bed.lane[0]->qp->context;

	if (context->ops.post_send != hooked_post)
		real_post = context->ops.post_send;
	context->ops.post_send = hooked_post;
	meanwhile = then;
}

void unhook(void)
{
	bed.lane[0]->qp->context->ops.post_send = real_post;
}

static _Atomic bool removed;

static void *remove_lane(void *arg)
{
	(void)arg;
	shunt_roster_remove(&engines[0]->group, bed.lane[0]);
	atomic_store(&removed, true);
	return NULL;
}

static pthread_t remover;

static void removal(void)
{
	assert_int_equal(pthread_create(&remover, NULL, remove_lane, NULL), 0);
	while (atomic_load(&bed.lane[0]->lock.word) != 2 && !atomic_load(&removed))	/* until it sleeps */
		sched_yield();
	assert_false(atomic_load(&removed));
}

/* It is served by who has heard that it has work, and that no seat keeps it, when its link is destroyed. */
static void who_serves_a_lane_keeps_it(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_group *group;

	(void)state;
	make_bed(&config, 1);
	group = &engines[0]->group;
	drain();
	role_take_as_another(&bed.lane[0]->lock);
	put(0, 0, 64, 0);
	role_leave_as_another(&bed.lane[0]->lock);
	hook(removal);
	shunt_lock_take(&group->lock);
	shunt_roster_kick(&engines[0]->group, bed.lane[0]);
	shunt_lock_leave(&group->lock);
	shunt_group_after(group);
	assert_null(meanwhile);
	pthread_join(remover, NULL);
	assert_true(removed);
	unhook();
	shunt_roster_add(&engines[0]->group, bed.lane[0]);
	end_bed();
}

static void another_send(void)
{
	put(1, 0, 70, 0);
	assert_true(atomic_load(&bed.lane[0]->dirty));
}

/* The holder is already posting when another stream's bytes come: they go when it leaves. */
static void no_flush_is_lost(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 3);
	hook(another_send);
	put(0, 0, 64, 0);
	assert_int_equal(WRS(), 2);
	assert_int_equal(COUNTED(doorbells), 2);
	hook(another_send);	/* the same while it serves the queue */
	busy();
	put(2, 0, 10, 0);
	free_again();
	assert_int_equal(WRS(), 4);
	unhook();
	end_bed();
}

static void more_of_the_same(void)
{
	put(0, 0, 70, 0);
}

/* A stream comes back to the queue while its WRs are in a chain that has overflowed. */
static void queued_again_while_served(void **state)
{
	(void)state;
	for (int batch = SINGLE; batch <= HYBRID; batch++) {
		struct shunt_config config = small_config(batch);

		config.frag_bytes = 4096;
		config.chain_max = 2;
		config.ring_min = 64 << 10;
		make_bed(&config, 2);
		busy();
		for (int i = 0; i < 5; i++)
			put(0, 0, 3000, 0);
		hook(more_of_the_same);
		free_again();
		unhook();
		assert_int_equal(BYTES(), 15070);
		end_bed();
	}
}

static void four_more(void)
{
	for (int i = 1; i <= 4; i++)	/* threads 1 to 4: adjacent, of one stream */
		put(1, 0, 100, 0);
}

static void two_more(void)
{
	put(2, 0, 50, 0);	/* threads 5 and 6: of two streams */
	put(3, 0, 60, 0);
}

/* Figure 4: thread 0 drains what 1 to 4 left, merged; 5 and 6 share a doorbell; 7 goes alone. */
static void figure_4(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 5);
	hook(four_more);
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 2);
	assert_int_equal(COUNTED(doorbells), 2);
	assert_int_equal(BYTES(), 410);
	hook(two_more);
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 5);
	assert_int_equal(COUNTED(doorbells), 4);
	unhook();
	put(4, 0, 10, 0);
	assert_int_equal(WRS(), 6);
	assert_int_equal(COUNTED(doorbells), 5);
	end_bed();
}

/* --- MSG_MORE, TCP_CORK (PF-06) --- */

static int asked;

static int count_getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	asked++;
	return getsockopt(fd, level, name, value, length);
}

/* The program's own push is enough: a server that pulls a cork with each answer does not pay twice. */
static void cork(struct shunt_stream *stream, int on)
{
	const struct shunt_sys *sys = engines[0]->sys;
	struct shunt_sys counting = *sys;

	asked = 0;
	counting.getsockopt = count_getsockopt;
	shunt_engine_surround(engines[0], &counting);
	shunt_stream_option_changed(stream, IPPROTO_TCP, TCP_CORK, &on);
	shunt_engine_surround(engines[0], sys);
	assert_int_equal(asked, 0);
}

static void more_is_gathered(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	stream = stream_of(&bed.pair[0].side[0]);
	for (int i = 0; i < 10; i++)
		assert_int_equal(put(0, 0, 100, MSG_MORE), 100);
	assert_int_equal(WRS(), 0);
	put(0, 0, 100, 0);
	assert_int_equal(WRS(), 1);
	assert_int_equal(BYTES(), 1100);
	cork(stream, 1);
	put(0, 0, 100, 0);
	put(0, 0, 100, 0);
	drain();
	assert_int_equal(WRS(), 1);
	cork(stream, 0);
	assert_int_equal(WRS(), 2);
	put(0, 0, 50, MSG_MORE);	/* 200 ms is the most that it waits */
	turn();
	assert_int_equal(WRS(), 2);
	pair_skew += 100000000;
	turn();
	assert_int_equal(WRS(), 2);
	pair_skew += 250000000;
	turn();
	assert_int_equal(WRS(), 3);
	put(0, 0, 50, MSG_MORE);	/* it does not wait beyond the end either */
	shunt_stream_shutdown(engines[0], bed.pair[0].side[0].fd, stream, SHUT_WR);
	all_arrived();
	end_bed();
}

/* A full buffer or a full ring is not kept back for more. */
static void more_than_room_is_sent(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 60000, MSG_MORE), 60000);
	assert_int_equal(WRS(), 0);
	assert_int_equal(put(0, 0, 10000, MSG_MORE), 10000);
	assert_true(BYTES() >= 65536);
	put(0, 0, 1, 0);
	all_arrived();
	config.ring_min = config.ring_max = 4096;
	make_bed(&config, 1);
	while (put(0, 0, 1000, MSG_MORE))
		;
	assert_int_equal(BYTES(), bed.sent[0][0] - bed.received[0][0]);
	shunt_stream_corked(stream_of(&bed.pair[0].side[0]), false);
	end_bed();
}

/* --- a device that takes its time: autocork (CP-01) --- */

static void bytes_under_way_gather_more(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 2);
	stall(true);
	put(0, 0, 10, 0);	/* unsignaled: nobody could say when it is done, so it is not waited for */
	put(0, 0, 10, 0);
	assert_int_equal(WRS(), 2);
	for (int i = 0; i < 1000; i++)
		put(0, 0, 64, 0);
	assert_int_equal(WRS(), 2);
	put(1, 0, 10, 0);	/* another stream does not wait for this one's */
	assert_int_equal(WRS(), 3);
	stall(false);
	assert_int_equal(WRS(), 4);
	assert_true(COUNTED(held) > 0);
	end_bed();
}

/* The WR that would have told was refused: nobody waits for its completion. */
static void refused_wr_holds_nothing(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	make_bed(&config, 1);
	hook(NULL);
	stall(true);
	put(0, 0, 10, 0);
	refusals = 2;	/* on the short way, and from the queue */
	put(0, 0, 10, 0);
	assert_int_equal(BYTES(), 10);
	put(0, 0, 10, 0);
	assert_int_equal(BYTES(), 20);	/* the last is held behind the second, which is signaled */
	unhook();
	stall(false);
	end_bed();
}

/* More than a fragment is not held; nor is the end. */
static void much_is_not_held(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	config.ring_min = 256 << 10;
	config.frag_bytes = 4096;
	make_bed(&config, 1);
	stall(true);
	put(0, 0, 10, 0);
	put(0, 0, 10, 0);
	put(0, 0, 3000, 0);
	assert_int_equal(WRS(), 2);
	put(0, 0, 3000, 0);
	assert_int_equal(WRS(), 4);
	put(0, 0, 10, 0);
	shunt_stream_shutdown(engines[0], bed.pair[0].side[0].fd, stream_of(&bed.pair[0].side[0]), SHUT_WR);
	assert_int_equal(WRS(), 6);
	stall(false);
	end_bed();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_relate),
		cmocka_unit_test(thousand_sends_one_wr),
		cmocka_unit_test(eight_streams_one_doorbell),
		cmocka_unit_test(chain_has_a_limit),
		cmocka_unit_test(lone_request_is_not_delayed),
		cmocka_unit_test(who_serves_a_lane_keeps_it),
		cmocka_unit_test(no_flush_is_lost),
		cmocka_unit_test(queued_again_while_served),
		cmocka_unit_test(figure_4),
		cmocka_unit_test(more_is_gathered),
		cmocka_unit_test(more_than_room_is_sent),
		cmocka_unit_test(bytes_under_way_gather_more),
		cmocka_unit_test(refused_wr_holds_nothing),
		cmocka_unit_test(much_is_not_held),
		cmocka_unit_test(much_lets_others_in),
		cmocka_unit_test(without_fragments_others_wait),
		cmocka_unit_test(a_handback_is_behind_its_bytes),
		cmocka_unit_test(window_shrinks_wrs_grow),
		cmocka_unit_test(window_is_kept),
		cmocka_unit_test(incast_without_rnr),
		cmocka_unit_test(without_credit_there_is_rnr),
		cmocka_unit_test(refused_credit_is_given_later),
		cmocka_unit_test(credit_is_for_the_link),
		cmocka_unit_test(mutual_starvation_ends),
		cmocka_unit_test(a_lost_credit_is_asked_for),
		cmocka_unit_test(a_stopped_reader_is_asked_once),
		cmocka_unit_test(a_send_waits_once),
		cmocka_unit_test(writable_means_room),
		cmocka_unit_test(streams_are_spread),
		cmocka_unit_test(a_doorbell_for_each_lane),
		cmocka_unit_test(lanes_do_not_wait_for_each_other),
		cmocka_unit_test(the_device_window_is_of_all_lanes),
		cmocka_unit_test(the_smaller_number_counts),
		cmocka_unit_test(more_lanes_than_links_have_a_limit),
		cmocka_unit_test(senseless_numbers_are_refused),
		cmocka_unit_test(a_peer_with_little_address_space),
		cmocka_unit_test(a_link_maps_no_more_than_it_has),
		cmocka_unit_test(queue_pairs_may_be_connected_later),
		cmocka_unit_test(fewer_where_there_are_no_more),
		cmocka_unit_test(queues_are_what_the_device_has),
		cmocka_unit_test(no_more_parts_than_a_lane_can_use),
		cmocka_unit_test(one_lane_takes_all_to_tcp),
		cmocka_unit_test(sends_wake_nobody),
		cmocka_unit_test(a_hangup_is_an_end),
		cmocka_unit_test(sends_wake_who_waits_for_them),
		cmocka_unit_test(a_last_look_goes_on),
		cmocka_unit_test(no_handler_comes_while_an_event_is_taken),
		cmocka_unit_test(a_window_is_as_large_as_the_path),
		cmocka_unit_test(a_short_path_keeps_a_small_window),
		cmocka_unit_test(a_window_has_its_limit),
		cmocka_unit_test(a_quiet_window_becomes_small),
		cmocka_unit_test(a_queue_pair_dies_while_windows_grow),
		cmocka_unit_test(inline_or_fetched),
		cmocka_unit_test(staged_bytes_stay_until_fetched),
		cmocka_unit_test(stage_holds_no_more_than_it_can),
		cmocka_unit_test(seat_stays_until_fetched),
		cmocka_unit_test(pinned_from_the_threshold_on),
		cmocka_unit_test(each_large_buffer_is_pinned),
		cmocka_unit_test(seat_stays_while_pinned),
		cmocka_unit_test(nothing_but_large_blocking_sends_is_pinned),
		cmocka_unit_test(without_memory_tcp_carries_on),
		cmocka_unit_test(an_unanswered_read_ends_the_queue_pair),
		cmocka_unit_test(an_unanswered_read_loses_what_is_not_retained),
		cmocka_unit_test(a_pinned_buffer_is_kept_for_the_peer),
		cmocka_unit_test(what_was_pinned_is_not_in_the_stage),
		cmocka_unit_test(nothing_goes_before_the_proof),
		cmocka_unit_test(a_sender_waits_for_the_question_only),
		cmocka_unit_test(a_child_waits_for_the_nonce),
		cmocka_unit_test(a_nonce_is_withdrawn),
		cmocka_unit_test(an_end_before_the_question),
		cmocka_unit_test(an_end_behind_a_nonce_loses_nothing),
		cmocka_unit_test(a_late_nonce_is_not_reset),
		cmocka_unit_test(who_does_not_read_asks_for_no_nonce),
		cmocka_unit_test(an_end_within_the_nonce_is_an_error),
		cmocka_unit_test(a_link_dies_at_each_step),
		cmocka_unit_test(an_end_without_the_nonce),
		cmocka_unit_test(a_reflected_nonce_proves_nothing),
		cmocka_unit_test(no_nonce_comes_twice),
		cmocka_unit_test(who_has_not_shown_announces_nothing),
		cmocka_unit_test(a_number_in_use_is_not_closed),
		cmocka_unit_test(without_a_descriptor_no_nonce),
		cmocka_unit_test(an_end_waits_for_a_descriptor),
		cmocka_unit_test(an_end_waits_no_longer_than_the_program),
		cmocka_unit_test(without_descriptors_the_service_rests),
		cmocka_unit_test(a_process_has_so_many_links),
		cmocka_unit_test(who_says_nothing_is_hung_up_on),
		cmocka_unit_test(a_peer_is_told_no_address),
		cmocka_unit_test(a_name_is_there_before_a_connection_is_accepted),
		cmocka_unit_test(a_porter_that_has_not_begun_is_awaited),
		cmocka_unit_test(relatives_of_nobody_are_counted),
		cmocka_unit_test(a_claim_of_other_addresses_is_refused),
		cmocka_unit_test(no_claim_goes_elsewhere),
		cmocka_unit_test(links_are_of_a_pair_of_addresses),
		cmocka_unit_test(sent_on_without_a_gate),
		cmocka_unit_test(slow_completions_move_streams),
		cmocka_unit_test(a_link_that_stays_slow_is_said_no_more),
		cmocka_unit_test(who_needs_tokens_stays_though_slow),
		cmocka_unit_test(rdma_stays_though_slow),
		cmocka_unit_test(ordinary_use_is_not_slow),
		cmocka_unit_test(a_full_lane_is_not_slow),
		cmocka_unit_test(brief_connections_are_not_claimed),
		cmocka_unit_test(all_are_claimed_if_wanted),
		cmocka_unit_test(another_host_is_not_asked_for_a_short_one),
		cmocka_unit_test(another_host_is_asked_for_many_bytes),
		cmocka_unit_test(another_host_is_asked_after_a_rest),
		cmocka_unit_test(another_host_is_asked_at_once_if_wanted),
		cmocka_unit_test(another_host_is_asked_during_a_long_call),
		cmocka_unit_test(an_own_address_is_asked_at_once),
		cmocka_unit_test(a_service_puts_off_a_short_one),
		cmocka_unit_test(a_link_to_another_host_is_used_at_once),
		cmocka_unit_test(a_plain_peer_is_told_by_time),
		cmocka_unit_test(a_peer_on_another_host_may_take_its_time),
		cmocka_unit_test(a_peer_that_cannot_ask_may_not),
		cmocka_unit_test(an_unused_connection_waits),
		cmocka_unit_test(many_plain_peers_are_told),
		cmocka_unit_test(a_peer_with_another_key_is_told),
		cmocka_unit_test(accepted_bytes_are_missed),
		cmocka_unit_test(a_link_that_ends_is_an_edge),
		cmocka_unit_test(a_failover_knows_whose_switches),
		cmocka_unit_test(a_kept_end_is_no_end),
		cmocka_unit_test(an_end_before_what_is_owed_is_none),
		cmocka_unit_test(a_retirement_keeps_what_is_unread),
		cmocka_unit_test(a_reset_that_is_owed_is_no_end),
		cmocka_unit_test(seats_stay_while_the_service_works),
		cmocka_unit_test(a_refusal_overtakes_what_was_sent),
		cmocka_unit_test(a_refusal_comes_before_a_switch),
		cmocka_unit_test(an_end_that_was_read_stays),
		cmocka_unit_test(a_question_goes_with_its_seat),
		cmocka_unit_test(no_end_overtakes_what_is_held_back),
		cmocka_unit_test(an_end_waits_for_the_confirmation),
		cmocka_unit_test(an_end_waits_for_what_a_dead_queue_pair_owes),
		cmocka_unit_test(what_was_passed_is_not_sent_again),
		cmocka_unit_test(nothing_is_awaited_of_the_dead),
		cmocka_unit_test(who_has_gone_back_gives_nothing_back),
		cmocka_unit_test(a_look_takes_no_error),
		cmocka_unit_test(nobody_waits_for_who_has_closed),
		cmocka_unit_test(a_reset_is_told_by_the_kernel_then),
		cmocka_unit_test(a_reset_told_by_the_link_is_not_the_kernels),
		cmocka_unit_test(held_streams_are_let_go),
		cmocka_unit_test(bad_wr_at_every_position),
		cmocka_unit_test(a_refusal_is_told_to_who_rests),
		cmocka_unit_test(unsignaled_chains_do_not_fill_the_queue),
		cmocka_unit_test(ended_lanes_are_counted),
		cmocka_unit_test(a_move_to_the_link_is_seen),
		cmocka_unit_test(a_move_to_the_kernel_is_seen),
		cmocka_unit_test(between_the_two_it_is_seen),
		cmocka_unit_test(a_move_is_seen_by_poll),
		cmocka_unit_test(a_move_is_told_once),
		cmocka_unit_test(a_held_stream_is_forgotten),
		cmocka_unit_test(two_moves_are_told_once),
		cmocka_unit_test(a_move_is_seen_beside_others),
		cmocka_unit_test(an_error_is_kept_from_the_kernel),
		cmocka_unit_test(an_error_is_left_to_the_kernel),
		cmocka_unit_test(a_reset_that_a_send_has_noticed),
		cmocka_unit_test(a_move_keeps_its_turn),
		cmocka_unit_test(who_is_kicked_keeps_an_edge),
		cmocka_unit_test(two_switches_do_not_end_a_receive),
		cmocka_unit_test(an_upgrade_acknowledges),
		cmocka_unit_test(a_handback_goes_with_its_bytes),
		cmocka_unit_test(a_close_is_one_edge),
		cmocka_unit_test(a_rate_is_the_kernels_to_keep),
		cmocka_unit_test(a_former_rate_is_kept),
		cmocka_unit_test(what_is_missing_comes_again),
		cmocka_unit_test(too_much_is_not_given_back),
		cmocka_unit_test(too_much_is_not_resumed),
		cmocka_unit_test(what_was_read_is_not_given_back),
		cmocka_unit_test(a_pin_is_no_excuse),
		cmocka_unit_test(an_answer_overtakes_the_note),
		cmocka_unit_test(a_former_switch_is_not_passed_again),
		cmocka_unit_test(distrust_is_no_failover),
		cmocka_unit_test(nothing_is_accepted_for_a_link_that_is_over),
		cmocka_unit_test(closed_while_others_are_told),
		cmocka_unit_test(an_acceptance_comes_first),
		cmocka_unit_test(an_exit_leaves_the_memory_to_readers),
		cmocka_unit_test(a_fork_during_a_claim),
		cmocka_unit_test(a_fork_before_the_answer),
		cmocka_unit_test(an_end_before_the_answer),
		cmocka_unit_test(a_reset_behind_an_end_before_the_answer),
		cmocka_unit_test(a_fork_during_an_attachment),
		cmocka_unit_test(sent_on_to_nobody),
		cmocka_unit_test(sent_on_twice),
		cmocka_unit_test(sent_on_out_of_turn),
		cmocka_unit_test(sent_on_to_a_gate),
		cmocka_unit_test(nothing_is_said_before_the_acceptance),
		cmocka_unit_test(a_confirmation_comes_once),
		cmocka_unit_test(others_are_not_looked_for),
		cmocka_unit_test(ours_is_not_sent_on),
		cmocka_unit_test(a_refusal_is_the_last_word),
		cmocka_unit_test(a_reset_told_before_the_acceptance),
		cmocka_unit_test(a_reset_before_the_acceptance),
		cmocka_unit_test(a_former_refusal_is_forgotten),
		cmocka_unit_test(another_refusal_is_told),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
