/* SPDX-License-Identifier: MIT */
/*
 * Spares (core/stream/spare.h) of a peer that means no good, and how many of its births wait. Engine 0 connects, engine 1
 * accepts. A test makes one of them say what no engine says, and looks what becomes of the other.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/api.h"
#include "core/device/soft/soft.h"
#include "core/stream/births.h"
#include "core/stream/carried.h"
#include "core/stream/spare.h"
#include "core/stream/uring.h"

#define MANY 8

static struct shunt_stream *listening;
static struct shunt_stream *ends[MANY][2]; /* streams of connections that rest, or have */

static void settle(void)
{
	for (int i = 0; i < 4; i++)
		turn();
}

static void make(int pairs)
{
	struct shunt_config config = small_config(HYBRID);

	config.born = SHUNT_BORN_AUTO;
	freeze_clock(true);
	make_bed(&config, 0);
	connect_pair(&bed.pair[0]);
	listening = stream_of(&bed.pair[0].side[1])->rendezvous->listener;
	shunt_stream_set_nonblocking(listening, true);
	warm(bed.pairs++);
	while (bed.pairs < pairs)
		add_pair();
}

/* Both programs close connection i. */
static void both_close(int i)
{
	for (int side = 0; side < 2; side++)
		ends[i][side] = stream_of(&bed.pair[i].side[side]);
	for (int side = 0; side < 2; side++) {
		close_side(&bed.pair[i].side[side]);
		settle();
	}
}

static void make_spares(int pairs)
{
	make(pairs);
	for (int i = 0; i < pairs; i++)
		both_close(i);
	bed.pairs = 0;
}

static uint32_t resting(void)
{
	return atomic_load(&engines[0]->spares.resting);
}

static bool is_distrusted(int by)
{
	return atomic_load(&engines[by]->links.distrusted) == 1;
}

static int new_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	shunt_file_socket(engines[0], fd, false);
	return fd;
}

/* -1: it is the kernel's to connect. */
static int connect_at(int fd)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);
	int result = 0;

	assert_int_equal(getsockname(listening->fd, (struct sockaddr *)&address, &length), 0);
	if (shunt_born_connect(engines[0], fd, (struct sockaddr *)&address, length, &result)) {
		assert_int_equal(result, 0);
		return fd;
	}
	shunt_file_closing(engines[0], fd);
	close(fd);
	return -1;
}

static int connect_born(void)
{
	return connect_at(new_socket());
}

static int accept_born(void)
{
	return shunt_born_accept(engines[1], listening, true, 0, NULL);
}

static void close_of(int which, int fd)
{
	struct side side = { engines[which], fd };

	close_side(&side);
}

static void close_listener(void)
{
	close_of(1, listening->fd);
	settle();
}

static void nothing_is_left(void)
{
	pair_skew += 60000000000ull;
	settle();
	for (int which = 0; which < 2; which++) {
		assert_int_equal(atomic_load(&engines[which]->spares.count), 0);
		for (struct shunt_link *link = engines[which]->service->links; link;
		     link = link->next)
			assert_int_equal(link->seated, 0);
	}
	freeze_clock(false);
}

static void end_spares(void)
{
	close_listener();
	nothing_is_left();
}

/* The peer says something of a stream of its own. */
static void say(struct shunt_stream *stream, uint32_t work)
{
	stream_request(stream, work);
	settle();
}

/* --- as it should be --- */

static void a_birth_is_accepted(void **state)
{
	char byte = 0;
	int a, b;

	(void)state;
	make_spares(1);
	assert_int_equal(resting(), 1);
	a = connect_born();
	assert_true(a >= 0);
	b = accept_born(); /* engine 1 has not waited anywhere */
	assert_true(b >= 0);
	bed.pair[0] = (struct pair) { { { engines[0], a }, { engines[1], b } } };
	assert_int_equal(send_some(&bed.pair[0].side[0], "x", 1, 0), 1);
	turn();
	assert_int_equal(receive_some(&bed.pair[0].side[1], &byte, 1, MSG_DONTWAIT), 1);
	assert_int_equal(byte, 'x');
	both_close(0);
	end_spares();
}

static uint32_t told_of(int set)
{
	struct epoll_event told = { 0 };

	assert_int_equal(shunt_epset_wait(engines[0], set, &told, 1, 0, NULL), 1);
	assert_int_equal(told.data.u64, 7);
	return told.events;
}

/* nginx registers each socket before it connects. */
static void a_registered_socket_is_born(void **state)
{
	struct epoll_event asked = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = 7 };
	int set = epoll_create1(EPOLL_CLOEXEC), a, b;

	(void)state;
	make_spares(1);
	a = new_socket();
	shunt_file_epoll(engines[0], set);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_ADD, a, &asked), 0);
	assert_int_equal(connect_at(a), a);
	b = accept_born();
	bed.pair[0] = (struct pair) { { { engines[0], a }, { engines[1], b } } };
	assert_int_equal(told_of(set), EPOLLOUT);
	assert_int_equal(send_some(&bed.pair[0].side[1], "x", 1, 0), 1);
	turn();
	assert_int_equal(told_of(set), EPOLLIN | EPOLLOUT);
	assert_int_equal(shunt_epset_ctl(engines[0], set, EPOLL_CTL_DEL, a, NULL), 0);
	both_close(0);
	bed.pairs = 0;
	shunt_file_closing(engines[0], set);
	close(set);
	end_spares();
}

/* It sees the kernel's connections alone. A ring for other things changes nothing. */
static void a_ring_at_a_listener_ends_births(void **state)
{
	(void)state;
	make(1);
	for (int which = 0; which < 2; which++)
		shunt_uring_set(engines[which], SHUNT_URING_WATCHED);
	both_close(0);
	bed.pairs = 0;
	assert_int_equal(resting(), 1);
	assert_int_equal(shunt_uring_bar(engines[1], listening->fd, listening, false), 0);
	settle();
	assert_int_equal(connect_born(), -1);
	assert_int_equal(resting(), 0);
	end_spares();
}

/* They would count as sent past Shunt, and the program's next connections would stay on TCP. */
static void former_bytes_are_not_its_own(void **state)
{
	struct shunt_stream *first;
	int a, b;

	(void)state;
	make(1);
	first = stream_of(&bed.pair[0].side[0]);
	assert_true(stream_offset(first, STREAM_SENT) > stream_sent_by_link(first));
	both_close(0);
	a = connect_born();
	b = accept_born();
	bed.pair[0] = (struct pair) { { { engines[0], a }, { engines[1], b } } };
	for (int side = 0; side < 2; side++)
		assert_int_equal(shunt_carried_past(stream_of(&bed.pair[0].side[side])), 0);
	both_close(0);
	bed.pairs = 0;
	end_spares();
}

/* As many as the kernel's own queue may hold, one more than was asked for. */
static void no_more_are_kept_than_may_wait(void **state)
{
	(void)state;
	make(MANY);
	assert_int_equal(listen(listening->fd, 2), 0);
	shunt_file_listening(engines[1], listening->fd);
	for (int i = 0; i < MANY; i++)
		both_close(i);
	assert_int_equal(resting(), 3);
	assert_int_equal(atomic_load(&engines[1]->spares.count), 3);
	for (int i = 0; i < 3; i++)
		assert_true(connect_born() >= 0);
	assert_int_equal(connect_born(), -1);
	settle();
	for (int i = 0; i < 3; i++)
		close_of(1, accept_born());
	assert_int_equal(accept_born(), -EAGAIN);
	for (int fd = 0; fd < 1024; fd++)
		if (shunt_file(engines[0], fd) &&
		    shunt_file(engines[0], fd)->kind == SHUNT_FILE_STREAM)
			close_of(0, fd);
	settle();
	end_spares();
}

/* --- births that no program has made --- */

static void every_spare_is_a_birth(void **state)
{
	(void)state;
	make_spares(MANY);
	for (int i = 0; i < MANY; i++)
		say(ends[i][0], SHUNT_WORK_UPGRADE);
	assert_int_equal(listening->births->count, MANY);
	close_of(1, accept_born());
	settle();
	close_listener();
	assert_false(is_distrusted(0) || is_distrusted(1));
	nothing_is_left();
}

static void a_birth_comes_once(void **state)
{
	(void)state;
	make_spares(1);
	say(ends[0][0], SHUNT_WORK_UPGRADE);
	assert_false(is_distrusted(1));
	say(ends[0][0], SHUNT_WORK_UPGRADE);
	assert_true(is_distrusted(1));
	assert_true(shunt_births_wait(listening));	/* it is accepted, and finds that it has ended */
	close_of(1, accept_born());
	end_spares();
}

static void a_birth_begins_at_0(void **state)
{
	(void)state;
	make_spares(1);
	atomic_store(&ends[0][0]->seat->out.upgrade_at, 1);
	say(ends[0][0], SHUNT_WORK_UPGRADE);
	assert_true(is_distrusted(1));
	assert_false(shunt_births_wait(listening));
	end_spares();
}

static void an_acceptor_makes_no_birth(void **state)
{
	(void)state;
	make_spares(1);
	say(ends[0][1], SHUNT_WORK_UPGRADE);
	assert_true(is_distrusted(0));
	assert_int_equal(connect_born(), -1);
	end_spares();
}

/* Bytes before a connection: the connector finds that the spare is not what it was. */
static void bytes_come_before_no_birth(void **state)
{
	struct iovec iov = { "early", 5 };

	(void)state;
	make_spares(1);
	assert_int_equal(shunt_stream_send(engines[1], ends[0][1]->fd, ends[0][1], &iov, 1,
					   MSG_DONTWAIT | MSG_NOSIGNAL),
			 5);
	settle();
	assert_int_equal(connect_born(), -1);
	settle();
	end_spares();
}

/* The listener is closed while a birth is on its way, with as much as the ring holds: nobody reads that, and nobody is wrong. */
static void a_birth_at_a_closed_listener_is_reset(void **state)
{
	static char bytes[BUFFER];
	struct side side;

	(void)state;
	make_spares(1);
	side = (struct side) { engines[0], connect_born() };
	assert_true(side.fd >= 0);
	while (send_some(&side, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	close_listener();
	assert_false(is_distrusted(1));
	assert_int_equal(receive_some(&side, bytes, 1, MSG_DONTWAIT), -ECONNRESET);
	close_side(&side);
	nothing_is_left();
}

/* The link ends while a birth is on its way: nobody accepts it, and that is an error, and not the end of a stream. */
static void a_birth_on_a_dead_link_is_reset(void **state)
{
	struct side side;
	char byte;

	(void)state;
	make_spares(1);
	soft_qp_fault(ends[0][0]->seat->lane->qp, SOFT_FAULT_STALL);
	side = (struct side) { engines[0], connect_born() };
	assert_true(side.fd >= 0);
	role_kill_link(ends[0][1]->seat->link, "the test");
	for (int i = 0; i < 10; i++) {
		pair_skew += 1000000000;
		turn();
	}
	assert_int_equal(receive_some(&side, &byte, 1, MSG_DONTWAIT), -ECONNRESET);
	close_side(&side);
	end_spares();
}

/* --- RELEASE --- */

static void a_connector_does_not_rest_first(void **state)
{
	(void)state;
	make(1);
	for (int side = 0; side < 2; side++)
		ends[0][side] = stream_of(&bed.pair[0].side[side]);
	close_side(&bed.pair[0].side[0]);
	settle();
	atomic_fetch_and(&ends[0][0]->seat->release, (uint8_t)~SHUNT_RELEASE_POSTED);
	say(ends[0][0], SHUNT_WORK_REST);
	assert_true(is_distrusted(1));
	close_side(&bed.pair[0].side[1]);
	end_spares();
}

/* The value of the second, where the first has not been said: as RELEASE of an end that keeps, and has read all. */
static void a_rest_alone_is_a_release(void **state)
{
	(void)state;
	make(1);
	for (int side = 0; side < 2; side++)
		ends[0][side] = stream_of(&bed.pair[0].side[side]);
	say(ends[0][1], SHUNT_WORK_REST);
	assert_false(is_distrusted(0));
	assert_true(stream_is_released(ends[0][0]));
	say(ends[0][1], SHUNT_WORK_REST);	/* to an end that is open */
	assert_true(is_distrusted(0));
	close_side(&bed.pair[0].side[0]);
	close_side(&bed.pair[0].side[1]);
	end_spares();
}

/* The acceptor rests, and is given up, before the connector hears of its first RELEASE: which has the last one's value. */
static void a_rest_may_be_over_at_once(void **state)
{
	(void)state;
	make(1);
	for (int side = 0; side < 2; side++)
		ends[0][side] = stream_of(&bed.pair[0].side[side]);
	close_side(&bed.pair[0].side[0]);
	settle();
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 4; i++) {
		shunt_service_step(engines[1], 0);
		shunt_group_poll_fully(&engines[1]->group);
	}
	shunt_spare_end(engines[1], ends[0][1]);
	settle();
	assert_false(is_distrusted(0));
	assert_int_equal(resting(), 0);
	assert_int_equal(connect_born(), -1);
	end_spares();
}

/*
 * It rests for a while before the connector looks for that. Its ring has grown, and the connector's end, which has not begun
 * anew, takes no offer of another.
 */
static void a_rest_is_all_that_is_said(void **state)
{
	(void)state;
	make(1);
	for (int side = 0; side < 2; side++)
		ends[0][side] = stream_of(&bed.pair[0].side[side]);
	while (!engines[1]->grows) {
		while (put(0, 0, BUFFER, 0))
			;
		drain();
	}
	close_side(&bed.pair[0].side[0]);
	settle();
	close_side(&bed.pair[0].side[1]);
	for (int i = 0; i < 8; i++) {
		pair_skew += 1000000000;
		shunt_service_step(engines[1], 0);
		shunt_group_poll_fully(&engines[1]->group);
	}
	settle();
	assert_false(is_distrusted(0));
	assert_int_equal(resting(), 1);
	end_spares();
}

/* --- the seat that is left --- */

/*
 * Another thread has the lane while this end is closed, and its peer keeps nothing: FIN and RELEASE are posted at once, and the
 * kernel's end, which had been put off, is said before the seat goes.
 */
static void an_end_is_said_before_the_seat_goes(void **state)
{
	struct shunt_lane *lane;
	int other;
	char byte;

	(void)state;
	make(1);
	for (int side = 0; side < 2; side++)
		ends[0][side] = stream_of(&bed.pair[0].side[side]);
	lane = ends[0][0]->seat->lane;
	role_take_as_another(&lane->lock);
	close_side(&bed.pair[0].side[0]);
	other = dup(bed.pair[0].side[1].fd);
	engines[1]->config.born = SHUNT_BORN_OFF;
	close_side(&bed.pair[0].side[1]);
	turn();
	role_leave_as_another(&lane->lock);
	shunt_lane_kick(lane);
	settle();
	assert_int_equal(lane->seats, 0);
	assert_int_equal(recv(other, &byte, 1, MSG_DONTWAIT), 0);
	close(other);
	end_spares();
}

/* A fork's child has no such list, so its copy of the stream is in none. */
static void is_in_no_list_of_a_child(const struct shunt_stream *stream)
{
	int status = -1;
	pid_t child;

	child = fork();	/* this process goes on as one that has none */
	if (!child) {
		shunt_engine_fork_prepare(engines[0]);
		shunt_engine_fork_child(engines[0]);
		_exit(atomic_load(&stream->next_reap) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A list that had it twice would have no end. */
static void a_stream_is_reaped_once(void **state)
{
	struct shunt_stream *stream;

	(void)state;
	make(2);
	stream = stream_of(&bed.pair[0].side[0]);
	shunt_streams_reap_later(stream_of(&bed.pair[1].side[0]));
	shunt_streams_reap_later(stream);
	shunt_streams_reap_later(stream);
	is_in_no_list_of_a_child(stream);
	settle();
	shunt_streams_reap_later(stream);
	settle();
	assert_null(atomic_load(&engines[0]->reap));
	both_close(0);
	both_close(1);
	bed.pairs = 0;
	end_spares();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_birth_is_accepted),
		cmocka_unit_test(a_registered_socket_is_born),
		cmocka_unit_test(a_ring_at_a_listener_ends_births),
		cmocka_unit_test(former_bytes_are_not_its_own),
		cmocka_unit_test(no_more_are_kept_than_may_wait),
		cmocka_unit_test(every_spare_is_a_birth),
		cmocka_unit_test(a_birth_comes_once),
		cmocka_unit_test(a_birth_begins_at_0),
		cmocka_unit_test(an_acceptor_makes_no_birth),
		cmocka_unit_test(bytes_come_before_no_birth),
		cmocka_unit_test(a_birth_at_a_closed_listener_is_reset),
		cmocka_unit_test(a_birth_on_a_dead_link_is_reset),
		cmocka_unit_test(a_connector_does_not_rest_first),
		cmocka_unit_test(a_rest_alone_is_a_release),
		cmocka_unit_test(a_rest_may_be_over_at_once),
		cmocka_unit_test(a_rest_is_all_that_is_said),
		cmocka_unit_test(an_end_is_said_before_the_seat_goes),
		cmocka_unit_test(a_stream_is_reaped_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
