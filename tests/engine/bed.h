/* SPDX-License-Identifier: MIT */
/*
 * Two engines in one thread and pairs of streams between them. Posts of a lane can be counted
 * exactly, and nothing depends on time. The base of memory.c and of the program around batch.c.
 */
#ifndef TESTS_ENGINE_BED_H
#define TESTS_ENGINE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/engine/pair.h"

#define PAIRS 100
#define BUFFER 65536	/* most bytes of one put() or get() */

enum batch { SINGLE, MERGE, CHAIN, HYBRID };

struct bed {
	struct pair pair[PAIRS];
	int pairs;
	uint64_t sent[PAIRS][2], received[PAIRS][2];	/* by sending side */
	struct shunt_lane *lane[2];	/* of the connecting engine, and of the other */
	struct shunt_lane_counters before;
	uint64_t wrs_before, bytes_before;
};

extern struct bed bed;

struct shunt_config small_config(enum batch batch);
/* Two new engines and so many pairs on one link, which may be none yet; counts from here. The former engines are left as they are. */
void make_bed(const struct shunt_config *config, int pairs);
/* One more, on the link. */
void add_pair(void);
/* The first of them, perhaps on another link than what was there before; what that has moved is forgotten. */
void first_pair(void);
/* Until its directions are on the link. */
void warm(int i);
/* Both directions are. */
bool on_link(struct side *side);
/* Everything is closed, and nobody was told anything wrong. */
void end_bed(void);
/* The only pair is closed; its link may be over. */
void leave_bed(void);
/* The same where the test has closed both sides itself. */
void leave_closed_bed(void);

/* One of the WRs sends a message of this type. */
bool carries(const struct ibv_send_wr *wr, enum shunt_imm type);

/* --- moving bytes; the pattern is checked --- */

/* One send. Returns how much was taken. */
size_t put(int i, int side, size_t bytes, int flags);
/* Reads at most `most` of what `side` has sent. */
size_t get(int i, int side, size_t most);
/* Both engines do what their threads would. */
void turn(void);
/* Until nothing comes any more. */
void drain(void);
void all_arrived(void);
/* Each byte that was sent has been received. */
bool all_is_out(void);

/* The connecting engine's epoll set, asked without waiting: events of one stream, 0 for none. */
uint32_t reported(int set);

/* --- what keeps the connecting engine's lane from posting --- */

/* Somebody else is using it. */
void busy(void);
void free_again(void);
/* Its device carries nothing out. */
void stall(bool on);

/* batch.c: another thread comes when a WR is posted the next time, and finds the lane taken. */
void hook(void (*then)(void));
void unhook(void);

/* --- what that lane has posted since the bed was made --- */

#define COUNTED(field) (bed.lane[0]->counters.field - bed.before.field)
#define WRS() (bed.lane[0]->sent - bed.wrs_before)
#define BYTES() (bed.lane[0]->window.posted - bed.bytes_before)
#define DATA_WRS() (COUNTED(direct) + COUNTED(merged))

struct tally {
	uint64_t wr, doorbells, bytes;
};

struct tally tally_so_far(void);
/* A number of engine i's statistics. */
uint64_t counted(int i, const char *name);

/* --- the tests that batch.c runs from other files --- */

/* credit.c */
void window_shrinks_wrs_grow(void **state);
void window_is_kept(void **state);
void incast_without_rnr(void **state);
void without_credit_there_is_rnr(void **state);
void refused_credit_is_given_later(void **state);
void credit_is_for_the_link(void **state);
void mutual_starvation_ends(void **state);
void a_lost_credit_is_asked_for(void **state);
void a_stopped_reader_is_asked_once(void **state);
void a_send_waits_once(void **state);
void writable_means_room(void **state);

/* lanes.c */
void streams_are_spread(void **state);
void a_doorbell_for_each_lane(void **state);
void lanes_do_not_wait_for_each_other(void **state);
void the_device_window_is_of_all_lanes(void **state);
void the_smaller_number_counts(void **state);
void more_lanes_than_links_have_a_limit(void **state);
void senseless_numbers_are_refused(void **state);
void a_peer_with_little_address_space(void **state);
void a_link_maps_no_more_than_it_has(void **state);
void queue_pairs_may_be_connected_later(void **state);
void fewer_where_there_are_no_more(void **state);
void queues_are_what_the_device_has(void **state);
void no_more_parts_than_a_lane_can_use(void **state);
void one_lane_takes_all_to_tcp(void **state);

/* events.c */
void sends_wake_nobody(void **state);
void a_hangup_is_an_end(void **state);
void sends_wake_who_waits_for_them(void **state);
void a_last_look_goes_on(void **state);
void no_handler_comes_while_an_event_is_taken(void **state);

/* order.c */
void much_lets_others_in(void **state);
void without_fragments_others_wait(void **state);
void a_handback_is_behind_its_bytes(void **state);

/* remote_read.c */
void inline_or_fetched(void **state);
void staged_bytes_stay_until_fetched(void **state);
void stage_holds_no_more_than_it_can(void **state);
void seat_stays_until_fetched(void **state);
void pinned_from_the_threshold_on(void **state);
void each_large_buffer_is_pinned(void **state);
void seat_stays_while_pinned(void **state);
void nothing_but_large_blocking_sends_is_pinned(void **state);
void a_pinned_buffer_is_kept_for_the_peer(void **state);
void what_was_pinned_is_not_in_the_stage(void **state);
void without_memory_tcp_carries_on(void **state);
void an_unanswered_read_ends_the_queue_pair(void **state);
void an_unanswered_read_loses_what_is_not_retained(void **state);

/* path.c */
void a_window_is_as_large_as_the_path(void **state);
void a_short_path_keeps_a_small_window(void **state);
void a_window_has_its_limit(void **state);
void a_quiet_window_becomes_small(void **state);
void a_queue_pair_dies_while_windows_grow(void **state);

/* proof.c */
void nothing_goes_before_the_proof(void **state);
void a_sender_waits_for_the_question_only(void **state);
void a_child_waits_for_the_nonce(void **state);
void a_nonce_is_withdrawn(void **state);
void an_end_before_the_question(void **state);
void an_end_behind_a_nonce_loses_nothing(void **state);
void a_late_nonce_is_not_reset(void **state);
void who_does_not_read_asks_for_no_nonce(void **state);
void an_end_within_the_nonce_is_an_error(void **state);
void a_link_dies_at_each_step(void **state);
void an_end_without_the_nonce(void **state);
void a_reflected_nonce_proves_nothing(void **state);
void no_nonce_comes_twice(void **state);
void who_has_not_shown_announces_nothing(void **state);
void a_number_in_use_is_not_closed(void **state);
void without_a_descriptor_no_nonce(void **state);
void an_end_waits_for_a_descriptor(void **state);
void an_end_waits_no_longer_than_the_program(void **state);

/* strangers.c */
void without_descriptors_the_service_rests(void **state);
void a_process_has_so_many_links(void **state);
void who_says_nothing_is_hung_up_on(void **state);
void a_peer_is_told_no_address(void **state);
void a_name_is_there_before_a_connection_is_accepted(void **state);
void a_porter_that_has_not_begun_is_awaited(void **state);
void relatives_of_nobody_are_counted(void **state);

/* elsewhere.c */
void a_claim_of_other_addresses_is_refused(void **state);
void no_claim_goes_elsewhere(void **state);
void links_are_of_a_pair_of_addresses(void **state);
void sent_on_without_a_gate(void **state);

/* slow.c */
void slow_completions_move_streams(void **state);
void a_link_that_stays_slow_is_said_no_more(void **state);
void who_needs_tokens_stays_though_slow(void **state);
void rdma_stays_though_slow(void **state);
void ordinary_use_is_not_slow(void **state);
void a_full_lane_is_not_slow(void **state);

/* short_lived.c */
void brief_connections_are_not_claimed(void **state);
void all_are_claimed_if_wanted(void **state);
void another_host_is_not_asked_for_a_short_one(void **state);
void another_host_is_asked_for_many_bytes(void **state);
void another_host_is_asked_after_a_rest(void **state);
void another_host_is_asked_at_once_if_wanted(void **state);
void another_host_is_asked_during_a_long_call(void **state);
void an_own_address_is_asked_at_once(void **state);
void a_service_puts_off_a_short_one(void **state);
void a_link_to_another_host_is_used_at_once(void **state);

/* unclaimed.c */
void a_plain_peer_is_told_by_time(void **state);
void an_unused_connection_waits(void **state);
void many_plain_peers_are_told(void **state);
void a_peer_with_another_key_is_told(void **state);
void a_peer_on_another_host_may_take_its_time(void **state);
void a_peer_that_cannot_ask_may_not(void **state);

/* faults.c */
void accepted_bytes_are_missed(void **state);
void a_link_that_ends_is_an_edge(void **state);
void a_failover_knows_whose_switches(void **state);
void a_kept_end_is_no_end(void **state);
void an_end_before_what_is_owed_is_none(void **state);
void a_retirement_keeps_what_is_unread(void **state);
void a_reset_that_is_owed_is_no_end(void **state);
void seats_stay_while_the_service_works(void **state);
void held_streams_are_let_go(void **state);
void bad_wr_at_every_position(void **state);
void a_refusal_is_told_to_who_rests(void **state);
void unsignaled_chains_do_not_fill_the_queue(void **state);
void ended_lanes_are_counted(void **state);

/* owed.c */
void a_refusal_overtakes_what_was_sent(void **state);
void a_refusal_comes_before_a_switch(void **state);
void an_end_that_was_read_stays(void **state);
void a_question_goes_with_its_seat(void **state);
void no_end_overtakes_what_is_held_back(void **state);
void an_end_waits_for_the_confirmation(void **state);
void an_end_waits_for_what_a_dead_queue_pair_owes(void **state);
void what_was_passed_is_not_sent_again(void **state);
void nothing_is_awaited_of_the_dead(void **state);
void who_has_gone_back_gives_nothing_back(void **state);
void a_reset_told_by_the_link_is_not_the_kernels(void **state);
void a_look_takes_no_error(void **state);
void nobody_waits_for_who_has_closed(void **state);
void a_reset_is_told_by_the_kernel_then(void **state);

/* moves.c */
void a_move_to_the_link_is_seen(void **state);
void a_move_to_the_kernel_is_seen(void **state);
void between_the_two_it_is_seen(void **state);
void a_move_is_seen_by_poll(void **state);
void a_move_is_seen_beside_others(void **state);
void a_move_is_told_once(void **state);
void a_held_stream_is_forgotten(void **state);
void two_moves_are_told_once(void **state);
void an_error_is_kept_from_the_kernel(void **state);
void an_error_is_left_to_the_kernel(void **state);
void a_reset_that_a_send_has_noticed(void **state);
void a_move_keeps_its_turn(void **state);
void who_is_kicked_keeps_an_edge(void **state);
void two_switches_do_not_end_a_receive(void **state);
void an_upgrade_acknowledges(void **state);
void a_handback_goes_with_its_bytes(void **state);
void a_close_is_one_edge(void **state);
void a_rate_is_the_kernels_to_keep(void **state);
void a_former_rate_is_kept(void **state);

/* again.c */
void too_much_is_not_given_back(void **state);
void too_much_is_not_resumed(void **state);
void what_was_read_is_not_given_back(void **state);
void a_pin_is_no_excuse(void **state);
void what_is_missing_comes_again(void **state);

/* overflow.c: memory.c runs them */
void an_end_leaves_behind_what_is_not_heard(void **state);
void an_end_that_cannot_leave_keeps_its_bytes(void **state);
void an_end_that_is_not_posted_was_not_announced(void **state);
void an_exit_awaits_the_call_of_another(void **state);
void a_repeat_without_room_does_not_count(void **state);
void a_repeat_at_exit_lets_its_rest_wait(void **state);
void room_that_was_told_of_is_there(void **state);
void a_held_lane_does_not_close_a_wide_stage(void **state);
void a_hand_over_is_not_given_back(void **state);
void a_retirement_does_not_wait_for_the_reader(void **state);
void a_retirement_sleeps_while_there_is_no_room(void **state);
void a_reset_drops_the_rest(void **state);
void an_end_behind_what_was_overtaken_is_an_edge(void **state);
void an_end_that_kills_its_queue_pair_repeats_nothing(void **state);
void an_end_that_stalls_repeats_nothing(void **state);
void a_sender_that_resets_drops_the_rest(void **state);
void the_wait_for_a_fetch_ends(void **state);
void without_memory_a_sender_waits(void **state);

/* meanwhile.c */
void an_answer_overtakes_the_note(void **state);
void a_former_switch_is_not_passed_again(void **state);
void distrust_is_no_failover(void **state);
void nothing_is_accepted_for_a_link_that_is_over(void **state);
void closed_while_others_are_told(void **state);
void an_acceptance_comes_first(void **state);
void an_exit_leaves_the_memory_to_readers(void **state);

/* relatives.c */
void a_fork_during_a_claim(void **state);
void a_fork_before_the_answer(void **state);
void an_end_before_the_answer(void **state);
void a_reset_behind_an_end_before_the_answer(void **state);
void a_fork_during_an_attachment(void **state);

/* redirect.c */
void sent_on_to_nobody(void **state);
void sent_on_twice(void **state);
void sent_on_out_of_turn(void **state);
void sent_on_to_a_gate(void **state);
void nothing_is_said_before_the_acceptance(void **state);
void a_confirmation_comes_once(void **state);
void others_are_not_looked_for(void **state);
void ours_is_not_sent_on(void **state);
void a_refusal_is_the_last_word(void **state);
void a_reset_told_before_the_acceptance(void **state);
void a_reset_before_the_acceptance(void **state);
void a_former_refusal_is_forgotten(void **state);
void another_refusal_is_told(void **state);

#endif
