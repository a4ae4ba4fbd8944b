/* SPDX-License-Identifier: MIT */
/* A lane whose QP refuses, or whose link ends, and its remains in the statistics. */
#include "tests/engine/bed.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include "core/device/soft/soft.h"
#include "core/lane/roster.h"
#include "core/peer/link_end.h"
#include "core/service.h"

/* --- the end of a link --- */

/* The result of a read once the reader's link has died; `accepted`: the sender had bytes that it could not post. */
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
		role_leave_as_another(&bed.lane[0]->lock);
	}
	role_kill_link(bed.lane[1]->link, "the test");
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
	stream_want_link(stream_of(&bed.pair[0].side[0]), false);
	do {
		assert_int_equal(put(0, 0, 100, 0), 0);
	} while (reported(set));
	role_kill_link(bed.lane[0]->link, "the test");
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

/* Retirement for the kernel's socket must not succeed while the ring of a dead link still holds bytes. */
void a_retirement_keeps_what_is_unread(void **state)
{
	struct shunt_config config = small_config(HYBRID);
	struct side *reader = &bed.pair[0].side[1];

	(void)state;
	make_bed(&config, 1);
	put(0, 0, 1000, 0);
	role_kill_link(bed.lane[1]->link, "the test");
	assert_int_equal(shunt_stream_retire(reader->engine, reader->fd, stream_of(reader),
					     SHUNT_CAUSE_SPLICE),
			 -EBUSY);
	assert_int_equal(get(0, 0, BUFFER), 1000);
	assert_int_equal(shunt_stream_retire(reader->engine, reader->fd, stream_of(reader),
					     SHUNT_CAUSE_SPLICE),
			 0);
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
	stream_want_link(stream_of(reader), false);
	for (int n = 0; stream_receives_on_link(stream_of(sender)); n++) {
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
		assert_true(stream_keeps_end(stream_of(sender)));
	}
	role_kill_link(bed.lane[0]->link, "the test");
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
		shunt_group_poll_fully(&engines[0]->group);
		shunt_group_poll_fully(&engines[1]->group);
	}
	assert_non_null(atomic_load(&engines[0]->reap));
	role_take_as_another(&engines[0]->group.seats_lock);
	connect_pair(pair);
	role_leave_as_another(&engines[0]->group.seats_lock);
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
	role_kill_link(bed.lane[0]->link, "the test");
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
	shunt_engine_surround(engines[0], &resting);
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

/* Counts of a link's lane stay in the statistics when the link is gone. */
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
	shunt_roster_remove(&engines[0]->group, bed.lane[0]);
	assert_int_equal(counted(0, "wr"), wrs);
	assert_int_equal(counted(0, "doorbells"), doorbells);
	shunt_roster_remove(&engines[0]->group, bed.lane[0]);	/* it is not there any more */
	assert_int_equal(counted(0, "wr"), wrs);
}

/* A program has closed while its bytes were on the way, and then its link dies. The peer must see ECONNRESET. */
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
	role_kill_link(bed.lane[0]->link, "the test");
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
	stream_want_link(former, false);
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
	while (!stream_receives_on_link(stream)) {
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
