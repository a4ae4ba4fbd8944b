/* SPDX-License-Identifier: MIT */
/* What a lane does when its QP refuses and when its link ends, and what stays of it in the statistics. */
#include "tests/sim/bed.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/roster.h"
#include "core/peer/attach.h"
#include "core/peer/link_end.h"
#include "core/service.h"
#include "core/stream/proof.h"
#include "core/stream/retire.h"
#include "core/stream/track.h"

/* --- the end of a link --- */

/* What a read says once the reader's link has died; `accepted`: the sender had bytes that it could not post. */
static ssize_t read_after_death(bool accepted)
{
	struct shunt_config config = small_config(HYBRID);
	uint8_t byte[200];
	ssize_t got;

	make_bed(&config, 1);
	put(0, 0, 100, 0);
	if (accepted) {
		busy();
		put(0, 0, 50, 0);
		shunt_lock_leave(&bed.lane[0]->lock);
	}
	shunt_link_kill(bed.lane[1]->link, "the test");
	assert_int_equal(receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT), 100);
	got = receive_some(&bed.pair[0].side[1], byte, sizeof(byte), MSG_DONTWAIT);
	close_side(&bed.pair[0].side[1]);
	close_side(&bed.pair[0].side[0]);
	for (int i = 0; i < 10; i++)	/* the other engine hears of it, and lets its stream go */
		turn();
	return got;
}

/* Bytes that were accepted are lost with the link, and the kernel does not know of them. */
void accepted_bytes_are_missed(void **state)
{
	(void)state;
	assert_int_equal(read_after_death(false), -EAGAIN);
	assert_int_equal(read_after_death(true), -ECONNRESET);
}

/* A send was refused while its HANDBACK was on its way, and the kernel had said before that there is room. */
void a_link_that_ends_is_an_edge(void **state)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLET };
	struct shunt_config config = small_config(HYBRID);
	int set = epoll_create1(EPOLL_CLOEXEC);

	(void)state;
	make_bed(&config, 1);
	drain();
	shunt_file_epoll(engines[0], set);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, bed.pair[0].side[0].fd, &event), 0);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	atomic_store(&stream_of(&bed.pair[0].side[0])->tx.want_link, false);
	stream_of(&bed.pair[0].side[0])->tx.quick = false;
	do {
		assert_int_equal(put(0, 0, 100, 0), 0);
	} while (reported(set));
	shunt_link_kill(bed.lane[0]->link, "the test");
	assert_int_equal(reported(set), EPOLLOUT);
	assert_int_equal(put(0, 0, 100, 0), 100);
	turn();
	all_arrived();
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	shunt_file_closing(engines[0], set);
	close(set);
	leave_closed_bed();
}

/* Who asks for the kernel's socket must not be told that everything is there while the ring of a dead link holds some. */
void a_retirement_keeps_what_is_unread(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *reader = &bed.pair[0].side[1];

	(void)state;
	make_bed(&config, 1);
	put(0, 0, 1000, 0);
	shunt_link_kill(bed.lane[1]->link, "the test");
	assert_int_equal(shunt_stream_retire(reader->engine, reader->fd, stream_of(reader), SHUNT_REASON_SPLICE), -EBUSY);
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_int_equal(shunt_stream_retire(reader->engine, reader->fd, stream_of(reader), SHUNT_REASON_SPLICE), 0);
	leave_bed();
}

/* Bytes of ours are lost with the link, and some of the peer's are unread in the kernel: the reset waits for who reads them.
 * A half-close meanwhile, or before, must not end what the peer reads as if nothing were missing. */
static void owe_a_reset(bool ended)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *sender = &bed.pair[0].side[0], *reader = &bed.pair[0].side[1];
	uint8_t byte[200];
	ssize_t got;

	config.retain = ended;	/* who keeps what it has sent keeps the end, too */
	make_bed(&config, 1);
	assert_int_equal(setsockopt(reader->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	atomic_store(&stream_of(reader)->tx.want_link, false);
	stream_of(reader)->tx.quick = false;
	for (int n = 0; stream_of(sender)->rx.track != SHUNT_TCP; n++) {
		assert_true(n < 1000);
		put(0, 1, 1, 0);
		turn();
		get(0, 1, BUFFER);
	}
	assert_int_equal(put(0, 1, 3, 0), 3);
	stall(true);
	put(0, 0, 50, 0);
	if (ended) {
		assert_int_equal(shunt_stream_shutdown(sender->engine, sender->fd, stream_of(sender), SHUT_WR), 0);
		assert_true(stream_of(sender)->tx.end_fd >= 0);
	}
	shunt_link_kill(bed.lane[0]->link, "the test");
	assert_int_equal(send_some(sender, byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL), ended ? -EPIPE : -ECONNRESET);
	assert_int_equal(shunt_stream_shutdown(sender->engine, sender->fd, stream_of(sender), SHUT_WR), -ENOTCONN);
	assert_int_equal(recv(reader->fd, byte, sizeof(byte), MSG_DONTWAIT), -1);	/* no end from the kernel */
	turn();
	got = receive_some(reader, byte, sizeof(byte), MSG_DONTWAIT);
	assert_true(got == -EAGAIN || got == -ECONNRESET);	/* it may know that it misses something */
	assert_int_equal(get(0, 1, BUFFER), 3);
	assert_int_equal(receive_some(sender, byte, sizeof(byte), MSG_DONTWAIT), ended ? -ECONNRESET : 0);
	turn();
	if (got == -EAGAIN)
		assert_int_equal(receive_some(reader, byte, sizeof(byte), MSG_DONTWAIT), -ECONNRESET);
	leave_bed();
}

void a_reset_that_is_owed_is_no_end(void **state)
{
	(void)state;
	owe_a_reset(false);
	owe_a_reset(true);
}

/* The service thread goes through the streams of a link while it is at work: nobody takes one away then. */
void seats_stay_while_the_service_works(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair *pair = &bed.pair[1];

	(void)state;
	make_bed(&config, 2);
	drain();
	bed.pairs = 1;
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	for (int i = 0; i < 5; i++) {
		shunt_group_poll_fully(engines[0]);
		shunt_group_poll_fully(engines[1]);
	}
	assert_non_null(atomic_load(&engines[0]->reap));
	shunt_lock_take(&engines[0]->seats_lock);
	connect_pair(pair);
	shunt_lock_leave(&engines[0]->seats_lock);
	assert_non_null(atomic_load(&engines[0]->reap));
	assert_int_equal(bed.lane[0]->link->seated, 2);
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	connect_pair(pair);
	assert_int_equal(bed.lane[0]->link->seated, 1);
	close_side(&pair->side[0]);
	close_side(&pair->side[1]);
	end_bed();
}

/* The memory of a stream that was held when its link ended is used again: it must not be taken for queued. */
void held_streams_are_let_go(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 1);
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	for (int i = 0; i < 3; i++)
		put(0, 0, 100, 0);
	assert_int_equal(atomic_load(&bed.lane[0]->holding), 1);
	shunt_link_kill(bed.lane[0]->link, "the test");
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 10; i++)
		turn();
	first_pair();
	busy();
	put(0, 0, 100, 0);
	free_again();
	end_bed();
}

/* --- what the QP refuses (PF-10, PF-11) --- */

void bad_wr_at_every_position(void **state)
{
	(void)state;
	for (int nth = 1; nth <= 12; nth++) {
		struct shunt_config config = small_config(HYBRID);

		make_bed(&config, 10);
		busy();
		for (int i = 0; i < 10; i++)
			put(i, 0, 100 + i, 0);
		soft_qp_fail_post(bed.lane[0]->qp, nth);
		free_again();
		assert_int_equal(COUNTED(post_failures), nth <= 10);
		assert_int_equal(WRS(), nth <= 10 ? nth - 1 : 10);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 10);
		assert_int_equal(BYTES(), 1045);
		soft_qp_fail_post(bed.lane[0]->qp, 0);
		soft_qp_fail_post(bed.lane[0]->qp, 1);	/* and on the short way */
		put(0, 0, 64, 0);
		shunt_lane_kick(bed.lane[0]);
		assert_int_equal(WRS(), 11);
		end_bed();
	}
}

static struct shunt_sys resting;
static int told;	/* what a sleep of the service thread sees */

/* It rests, because what waits is not what a QP refuses, and while it does one refuses. */
static int refuse_meanwhile(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec now = { 0, 0 };

	(void)timeout;
	assert_int_equal(ppoll(fds, count, &now, mask), 0);
	soft_qp_fail_post(bed.lane[0]->qp, 1);
	put(1, 0, 100, 0);
	assert_int_equal(COUNTED(post_failures), 1);
	told = ppoll(fds, count, &now, mask);
	return told;
}

void a_refusal_is_told_to_who_rests(void **state)
{
	struct shunt_config config = small_config(HYBRID);

	(void)state;
	make_bed(&config, 2);
	drain();
	stall(true);
	put(0, 0, 10, 0);
	put(0, 0, 10, 0);
	put(0, 0, 10, 0);	/* waits for the second's completion */
	assert_true(shunt_lane_stalled(bed.lane[0]));
	shunt_service_step(engines[0], 0);
	resting = *engines[0]->sys;
	resting.ppoll = refuse_meanwhile;
	engines[0]->sys = &resting;
	told = 0;
	shunt_service_step(engines[0], 0);
	assert_int_equal(told, 1);
	resting.ppoll = ppoll;
	stall(false);
	end_bed();
}

void unsignaled_chains_do_not_fill_the_queue(void **state)
{
	static const int every[] = { 1, 2, 31, 32, 63, 64, 1024 };

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct shunt_config config = small_config(SINGLE);

		config.sq_depth = 64;
		config.signal_every = every[i];
		config.window_wrs = config.window_bytes = 0;
		make_bed(&config, 2);
		for (int n = 0; n < 1000; n++) {
			assert_int_equal(put(n & 1, 0, 16, 0), 16);
			get(n & 1, 0, 16);
		}
		assert_int_equal(DATA_WRS(), 1000);
		assert_true(COUNTED(signaled) >= WRS() / (every[i] < 32 ? every[i] : 32) - 1);
		end_bed();
	}
}

/* --- statistics --- */

/* What a link's lane has counted stays in the statistics when the link is gone. */
void ended_lanes_are_counted(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	uint64_t wrs, doorbells;

	(void)state;
	make_bed(&config, 2);
	for (int i = 0; i < 100; i++)
		put(i & 1, 0, 64, 0);
	end_bed();
	wrs = counted(0, "wr");
	doorbells = counted(0, "doorbells");
	assert_in_range(wrs, 100, 10000);
	shunt_roster_remove(engines[0], bed.lane[0]);
	assert_int_equal(counted(0, "wr"), wrs);
	assert_int_equal(counted(0, "doorbells"), doorbells);
	shunt_roster_remove(engines[0], bed.lane[0]);	/* it is not there any more */
	assert_int_equal(counted(0, "wr"), wrs);
}

/* What the kernel says to the peer of a program that has closed while its bytes were on the way, which then is cut. */
void a_kept_end_is_no_end(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	char byte;

	(void)state;
	config.retain = 1;
	make_bed(&config, 1);
	drain();
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	put(0, 0, 100, 0);
	close_side(&bed.pair[0].side[0]);
	shunt_link_kill(bed.lane[0]->link, "the test");
	assert_int_equal(recv(bed.pair[0].side[1].fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, ECONNRESET);
	close_side(&bed.pair[0].side[1]);
	leave_closed_bed();
}

/* Its sender was to send again what the link has not brought, and is killed before: the kernel says an end. */
void an_end_before_what_is_owed_is_none(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *reader = &bed.pair[0].side[1];
	uint8_t byte;

	(void)state;
	config.retain = 1;
	make_bed(&config, 1);
	drain();
	soft_qp_fault(bed.lane[0]->qp, SOFT_FAULT_STALL);
	assert_int_equal(put(0, 0, 100, 0), 100);
	shunt_link_fail(bed.lane[0]->link, "the test");
	shunt_service_step(engines[0], 0);	/* says how much it had for the link */
	shunt_service_step(engines[1], 0);	/* has heard of it */
	assert_int_equal(shutdown(bed.pair[0].side[0].fd, SHUT_WR), 0);
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), -ECONNRESET);
	assert_int_equal(receive_some(reader, &byte, 1, MSG_DONTWAIT), 0);
	leave_bed();
}

/* A direction that never was on the link, of a stream whose memory was another's, which was: nothing is sent again. */
void a_failover_knows_whose_switches(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream, *former;

	(void)state;
	config.retain = 1;
	make_bed(&config, 1);
	former = stream_of(&bed.pair[0].side[1]);
	atomic_store(&former->tx.want_link, false);
	former->tx.quick = false;
	put(0, 1, 100, 0);
	drain();
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 10; i++)
		turn();
	memset(bed.sent, 0, sizeof(bed.sent));
	memset(bed.received, 0, sizeof(bed.received));
	connect_pair(&bed.pair[0]);
	stream = stream_of(&bed.pair[0].side[1]);
	assert_ptr_equal(stream, former);
	put(0, 1, 1, 0);
	assert_int_equal(shunt_stream_shutdown(engines[1], bed.pair[0].side[1].fd, stream, SHUT_WR), 0);
	while (stream->rx.track == SHUNT_TCP) {
		put(0, 0, 1, 0);
		turn();
		get(0, 0, BUFFER);
	}
	get(0, 1, 1);
	shunt_link_fail(bed.lane[0]->link, "the test");
	for (int i = 0; i < 10; i++)
		turn();
	put(0, 0, 100, 0);
	all_arrived();
	leave_bed();
}

/* --- the channel is faster than the link --- */

/* One more pair, whose acceptor has granted the claim, which the other has not heard. */
static void grant(struct pair *pair)
{
	connect_pair(pair);
	send_some(&pair->side[0], "x", 1, MSG_DONTWAIT);
	for (int i = 0; i < 2; i++)	/* it is used, and claimed */
		shunt_service_step(engines[0], 0);
	receive_some(&pair->side[1], &(char) { 0 }, 1, MSG_DONTWAIT);
	for (int i = 0; i < 3; i++)
		shunt_service_step(engines[1], 0);
	assert_true(shunt_stream_is_linked(stream_of(&pair->side[1])));
	assert_false(shunt_stream_is_linked(stream_of(&pair->side[0])));
}

/* The acceptor has asked the other end to hand the stream back; that refuses it, and the link dies before it has answered. */
void a_question_goes_with_its_seat(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *stream;
	struct pair pair;
	char byte;

	(void)state;
	make_bed(&config, 1);
	grant(&pair);
	stream = stream_of(&pair.side[1]);
	shunt_retire_begin(engines[1], stream, SHUNT_REASON_SPLICE);
	assert_true(shunt_attach_revert(engines[1], stream));
	shunt_link_kill(stream->link, "the test");
	shunt_streams_vacate(stream);
	close_side(&pair.side[0]);
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), 0);
	close_side(&pair.side[1]);
	leave_bed();
}

/* The peer has switched, sent and ended; CONFIRM is not here. */
static void end_early(struct pair *pair, bool modelled)
{
	struct shunt_config config = small_config(HYBRID);
	static const uint8_t bytes[1000] = { 1 };

	make_bed(&config, 1);
	grant(pair);
	engines[1]->config.soft_model[0] = modelled;
	if (modelled)
		stall(true);
	else
		assert_int_equal(shunt_fault_set(engines[1], "stall", NULL, 0), 0);
	for (int i = 0; i < 3; i++)
		shunt_service_step(engines[0], 0);
	assert_int_equal(stream_of(&pair->side[0])->tx.track, SHUNT_LINK);
	assert_int_equal(send_some(&pair->side[0], bytes, sizeof(bytes), MSG_DONTWAIT), sizeof(bytes));
	close_side(&pair->side[0]);
	assert_false(atomic_load(&stream_of(&pair->side[1])->agreed));
}

static void find_all(struct pair *pair)
{
	uint8_t bytes[1001];

	assert_int_equal(receive_some(&pair->side[1], bytes, sizeof(bytes), MSG_DONTWAIT), 1000);
	assert_int_equal(receive_some(&pair->side[1], bytes, sizeof(bytes), MSG_DONTWAIT), 0);
	close_side(&pair->side[1]);
	leave_bed();
}

/* What a fault holds back is seen before the kernel's end is believed: the kernel's overtakes no device. */
void no_end_overtakes_what_is_held_back(void **state)
{
	struct pair pair;

	(void)state;
	end_early(&pair, false);
	find_all(&pair);
}

/* But the modelled one. */
void an_end_waits_for_the_confirmation(void **state)
{
	struct pair pair;
	uint8_t byte;

	(void)state;
	end_early(&pair, true);
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	stall(false);
	for (int i = 0; i < 10; i++)
		turn();
	find_all(&pair);
}

/* Nor does what a dead queue pair had to bring: who has sent it says that it did. */
void an_end_waits_for_what_a_dead_queue_pair_owes(void **state)
{
	struct pair pair;
	uint8_t byte;

	(void)state;
	end_early(&pair, true);
	engines[1]->config.soft_model[0] = 0;
	shunt_link_break(bed.lane[1]->link, "the test");
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -EAGAIN);
	stall(false);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(receive_some(&pair.side[1], &byte, 1, MSG_DONTWAIT), -ECONNRESET);
	close_side(&pair.side[1]);
	leave_bed();
}

static void leave_the_link(int side)
{
	struct shunt_stream *stream = stream_of(&bed.pair[0].side[side]);

	shunt_lock_take(&stream->tx.lock);
	atomic_store(&stream->tx.want_link, false);
	shunt_track_choose(engines[side], stream);
	shunt_lock_leave(&stream->tx.lock);
}

/* Who is asked to hand a stream back has done so at a byte that the reader has passed, and has not heard of that. */
void what_was_passed_is_not_sent_again(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader, *sender;
	uint64_t allowed;

	(void)state;
	make_bed(&config, 1);
	reader = stream_of(&bed.pair[0].side[0]);
	sender = stream_of(&bed.pair[0].side[1]);
	assert_int_equal(setsockopt(bed.pair[0].side[1].fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	leave_the_link(0);
	while (atomic_load(&reader->tx.unpassed))
		turn();
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	leave_the_link(1);
	allowed = atomic_exchange(&bed.lane[0]->allowed, 0);
	assert_int_equal(get(0, 1, BUFFER), 1000);
	assert_int_equal(get(0, 1, BUFFER), 0);
	assert_int_equal(reader->rx.track, SHUNT_TCP);
	shunt_retire_begin(engines[0], reader, SHUNT_REASON_SPLICE);
	while (atomic_load(&reader->retiring) == SHUNT_RETIRING)
		turn();
	assert_int_equal(atomic_load(&sender->asked), SHUNT_GIVEN);
	assert_true(atomic_load(&sender->tx.unpassed));
	assert_int_equal(get(0, 1, BUFFER), 0);
	atomic_store(&bed.lane[0]->allowed, allowed);
	shunt_lane_kick(bed.lane[0]);
	assert_int_equal(put(0, 1, 100, 0), 100);
	all_arrived();
	end_bed();
}

static void assert_owing(uint64_t owing)
{
	for (int i = 0; i < 10; i++)
		turn();
	for (int i = 0; i < 2; i++)
		assert_int_equal(atomic_load(&engines[i]->service->resends), owing);
}

/*
 * Neither program is there to read what the other's engine still has to send: what comes to a closed socket is refused.
 * While a nonce may be among it, that waits.
 */
void nobody_waits_for_who_has_closed(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream[2];
	uint8_t bytes[1000] = { 0 };
	int copy[2];

	(void)state;
	config.retain = true;
	make_bed(&config, 1);
	for (int i = 0; i < 2; i++) {
		stream[i] = stream_of(&side[i]);
		copy[i] = dup(side[i].fd);
		assert_true(copy[i] >= 0);
		soft_qp_fault(bed.lane[i]->qp, SOFT_FAULT_STALL);
		assert_int_equal(put(0, i, 1000, 0), 1000);
	}
	for (int i = 0; i < 2; i++)
		close_side(&side[i]);
	for (int i = 0; i < 2; i++) {	/* the kernel has no room */
		while (send(copy[i], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			;
		assert_int_equal(errno, EAGAIN);
		close(copy[i]);
		atomic_store(&stream[i]->rx.proof, SHUNT_EXPECTED);	/* behind bytes that are still to come */
	}
	shunt_link_break(bed.lane[0]->link, "the test");
	assert_owing(1);
	for (int i = 0; i < 2; i++) {
		atomic_store(&stream[i]->rx.proof, SHUNT_PROVEN);
		shunt_proof_heard(engines[i], stream[i]);
	}
	assert_owing(0);
	leave_closed_bed();
}

/* The sender's end is the kernel's since it asked for that, and closed: behind what the ring holds TCP has gone on. */
void who_has_gone_back_gives_nothing_back(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader, *sender;
	struct side *side = bed.pair[0].side;

	(void)state;
	make_bed(&config, 1);
	reader = stream_of(&side[0]);
	sender = stream_of(&side[1]);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	shunt_retire_begin(engines[1], sender, SHUNT_REASON_SPLICE);
	while (atomic_load(&sender->retiring) == SHUNT_RETIRING)
		turn();
	assert_int_equal(shunt_stream_retire(engines[1], side[1].fd, sender, SHUNT_REASON_SPLICE), 0);
	assert_int_equal(put(0, 1, 500, 0), 500);
	close_side(&side[1]);
	shunt_retire_begin(engines[0], reader, SHUNT_REASON_SPLICE);
	while (atomic_load(&reader->retiring) == SHUNT_RETIRING)
		turn();
	assert_int_equal(atomic_load(&reader->retiring), SHUNT_CANNOT_RETIRE);
	while (bed.received[0][1] < bed.sent[0][1])
		get(0, 1, BUFFER);
	close_side(&side[0]);
	leave_closed_bed();
}

/* The peer has reset it, the program has not heard of that, and wants the kernel's socket: then the kernel is to tell. */
void a_reset_is_told_by_the_kernel_then(void **state)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct shunt_config config = small_config(HYBRID);
	int set = epoll_create1(EPOLL_CLOEXEC);
	struct side *side = bed.pair[0].side;
	struct shunt_stream *stream;

	(void)state;
	make_bed(&config, 1);
	stream = stream_of(&side[1]);
	shunt_file_epoll(engines[1], set);
	assert_int_equal(shunt_epset_ctl(engines[1], set, EPOLL_CTL_ADD, side[1].fd, &event), 0);
	assert_int_equal(put(0, 1, 1000, 0), 1000);
	close_side(&side[0]);	/* with what it has not read */
	while (!atomic_load(&stream->rx.error))
		turn();
	shunt_retire_begin(engines[1], stream, SHUNT_REASON_SPLICE);
	while (atomic_load(&stream->retiring) == SHUNT_RETIRING)
		turn();
	assert_int_equal(atomic_load(&stream->retiring), SHUNT_CANNOT_RETIRE);
	assert_int_equal(shunt_epset_wait(engines[1], set, &event, 1, &(struct timespec) { 0, 0 }, NULL), 1);
	assert_true(event.events & EPOLLIN && event.events & EPOLLHUP);
	close_side(&side[1]);
	shunt_file_closing(engines[1], set);
	close(set);
	leave_closed_bed();
}

/* The link was faster, and has told the program of what the kernel hears then, or when nobody asks it. */
void a_reset_told_by_the_link_is_not_the_kernels(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	uint8_t byte;

	(void)state;
	for (int heard = 0; heard < 2; heard++) {
		struct shunt_stream *stream;
		int error = 0;

		make_bed(&config, 1);
		stream = stream_of(&side[1]);
		shunt_lane_request(stream_of(&side[0])->lane, stream_of(&side[0]), SHUNT_WORK_RESET);
		while (!atomic_load(&stream->rx.error))
			turn();
		assert_int_equal(receive_some(&side[1], &byte, 1, MSG_DONTWAIT), -ECONNRESET);
		if (heard)
			shunt_streams_reset_tcp(engines[0], side[0].fd);
		shunt_retire_begin(engines[1], stream, SHUNT_REASON_SPLICE);
		while (atomic_load(&stream->retiring) == SHUNT_RETIRING)
			turn();
		assert_int_equal(atomic_load(&stream->retiring), heard ? SHUNT_RETIRED : SHUNT_CANNOT_RETIRE);
		if (!heard)
			shunt_streams_reset_tcp(engines[0], side[0].fd);
		while (heard && !shunt_stream_is_plain(stream))
			turn();
		if (heard)
			getsockopt(side[1].fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) });
		else
			error = shunt_stream_take_error(engines[1], stream);
		assert_int_equal(error, 0);
		close_side(&side[0]);
		close_side(&side[1]);
		leave_closed_bed();
	}
}

/* A look past the end of the link is not told how the connection has ended: the next receive is. */
void a_look_takes_no_error(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *side = bed.pair[0].side;
	uint8_t bytes[BUFFER];

	(void)state;
	make_bed(&config, 1);
	assert_int_equal(put(0, 0, 1000, 0), 1000);
	shunt_link_kill(bed.lane[1]->link, "the test");
	assert_int_equal(setsockopt(side[0].fd, SOL_SOCKET, SO_LINGER, &(struct linger) { 1, 0 }, sizeof(struct linger)), 0);
	close_side(&side[0]);
	assert_int_equal(receive_some(&side[1], bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT), 1000);
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_true(receive_some(&side[1], bytes, sizeof(bytes), MSG_DONTWAIT) < 0);
	close_side(&side[1]);
	leave_closed_bed();
}

/* Who hands a stream back looks while the lane can post; of a queue pair that has died it sleeps until the link goes. */
void nothing_is_awaited_of_the_dead(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_stream *reader;

	(void)state;
	config.ring_min = config.ring_max = 16 << 10;
	make_bed(&config, 1);
	reader = stream_of(&bed.pair[0].side[1]);
	leave_the_link(1);	/* it has nothing to announce when it asks */
	while (atomic_load(&reader->tx.unpassed))
		turn();
	assert_int_equal(put(0, 0, 9000, 0), 9000);
	atomic_store(&bed.lane[1]->allowed, 0);
	assert_int_equal(get(0, 0, BUFFER), 9000);
	assert_true(atomic_load(&reader->lane_work) & SHUNT_WORK_CREDIT);
	shunt_retire_begin(engines[1], reader, SHUNT_REASON_SPLICE);
	assert_false(shunt_retire_goes_on(reader));
	while (atomic_load(&reader->retiring) != SHUNT_RETIRED)
		turn();
	assert_true(shunt_retire_goes_on(reader));
	atomic_store(&bed.lane[1]->failed, true);
	assert_false(shunt_retire_goes_on(reader));
	shunt_link_kill(reader->link, "the test");
	assert_true(shunt_retire_goes_on(reader));
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_bed();
}

/* Closed here before it was accepted there, and there at once: that and REFUSE come by different ways. */
void a_refusal_overtakes_what_was_sent(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct pair pair;

	(void)state;
	make_bed(&config, 1);
	grant(&pair);
	close_side(&pair.side[0]);
	close_side(&pair.side[1]);
	assert_int_equal(shunt_fault_set(engines[0], "stall:count=1", NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 2);
	assert_int_equal(shunt_fault_set(engines[0], "", NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(bed.lane[0]->link->seated, 1);
	end_bed();	/* nobody is distrusted */
}

/* Both directions have been on the link, and are on TCP again: there is nothing left to refuse. */
void a_refusal_comes_before_a_switch(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct shunt_message message = { .type = SHUNT_MSG_REFUSE };
	struct shunt_stream *accepted;

	(void)state;
	make_bed(&config, 1);
	accepted = stream_of(&bed.pair[0].side[1]);
	leave_the_link(0);
	leave_the_link(1);
	for (int i = 0; i < 10; i++) {
		get(0, 0, BUFFER);
		get(0, 1, BUFFER);
		turn();
	}
	assert_true(accepted->rx.track == SHUNT_TCP && accepted->tx.track == SHUNT_TCP);
	message.stream = accepted->id;
	shunt_link_send(bed.lane[0]->link, &message, NULL, 0);
	turn();
	assert_int_equal(atomic_load(&accepted->state), SHUNT_LINKED);
	assert_int_equal(counted(1, "links_distrusted"), 1);
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	leave_bed();
}
