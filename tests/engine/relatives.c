/* SPDX-License-Identifier: MIT */
/*
 * A fork while a stream is on its way to a link. The parent is what these tests look at, and there is no child. Only
 * the handlers of fork() run, and each test changes the socket as a child would.
 */
#include "tests/engine/bed.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>

#define CLAIMANT 0

static struct shunt_sys passing;
static bool forks;	/* at the next look at the kernel's counts */
static int for_ever;	/* sleeps without a timeout */

static void fork_here(void)
{
	shunt_engine_fork_prepare(engines[CLAIMANT]);
	shunt_engine_fork_parent(engines[CLAIMANT]);
}

/* Each end has used it, and the connecting end has claimed it. */
static struct side *make_claimed(void)
{
	struct shunt_config config = small_config(HYBRID);

	make_bed(&config, 0);
	passing = *engines[CLAIMANT]->sys;
	shunt_engine_surround(engines[CLAIMANT], &passing);
	connect_pair(&bed.pair[0]);
	bed.pairs = 1;
	put(0, 0, 1, 0);
	put(0, 1, 1, 0);
	get(0, 0, 1);
	get(0, 1, 1);
	return &bed.pair[0].side[CLAIMANT];
}

static void until_claimed(struct side *side)
{
	for (int n = 0; !stream_of(side)->seat->link; n++) {
		assert_true(n < 100000);
		shunt_service_step(engines[CLAIMANT], 0);
		if (engines[1]->service && !stream_of(side)->seat->link)
			shunt_service_step(engines[1], 0);
	}
	assert_int_equal(stream_state(stream_of(side)), SHUNT_CANDIDATE);
}

/* A receive without a timeout is ended by the peer's byte. */
static int sleep_a_little(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			  const sigset_t *mask)
{
	if (!timeout) {
		for_ever++;
		send_some(&bed.pair[0].side[!CLAIMANT], "x", 1, 0);
	}
	return ppoll(fds, count, timeout, mask);
}

static ssize_t receive_one(struct side *side)
{
	char byte;

	return receive_some(side, &byte, 1, 0);
}

/* A child owns the socket as much, and may change what the parent has asked the kernel for before. */
void a_fork_during_a_claim(void **state)
{
	struct timeval brief = { 0, 1000 }, never = { 0, 0 };
	struct side *side;

	(void)state;
	side = make_claimed();
	passing.ppoll = sleep_a_little;
	for_ever = 0;
	assert_int_equal(receive_one(side), 1);
	assert_int_equal(for_ever, 1);
	until_claimed(side);
	fork_here();
	setsockopt(side->fd, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
	assert_int_equal(receive_one(side), -EAGAIN);
	setsockopt(side->fd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never));
	fcntl(side->fd, F_SETFL, O_RDWR | O_NONBLOCK);
	assert_int_equal(receive_one(side), -EAGAIN);
	assert_int_equal(for_ever, 1);
	fcntl(side->fd, F_SETFL, O_RDWR);
	assert_int_equal(receive_one(side), 1);
	assert_int_equal(for_ever, 2);
	leave_bed();
}

/*
 * The claim is answered after the fork, and the child reads some of the peer's bytes. So the parent never comes to the
 * link, and the peer's offset of its end is none of the parent's.
 */
void a_fork_before_the_answer(void **state)
{
	struct side *side, *peer = &bed.pair[0].side[!CLAIMANT];
	char bytes[8];

	(void)state;
	for (int told_first = 0; told_first < 2; told_first++) {
		side = make_claimed();
		until_claimed(side);
		fork_here();
		assert_int_equal(send_some(peer, "abc", 3, 0), 3);
		assert_int_equal(recv(side->fd, bytes, sizeof(bytes), 0), 3);	/* the child */
		for (int n = 0; stream_state(stream_of(peer)) != SHUNT_LINKED; n++) {
			assert_true(n < 100000);
			shunt_service_step(engines[!CLAIMANT], 0);
		}
		assert_int_equal(send_some(peer, "echo", 4, 0), 4);
		assert_int_equal(receive_some(side, bytes, sizeof(bytes), 0), 4);
		if (told_first) {
			assert_int_equal(shutdown(peer->fd, SHUT_WR), 0);
			assert_int_equal(receive_some(side, bytes, sizeof(bytes), 0), 0);
		}
		close_side(peer);
		assert_int_equal(receive_some(side, bytes, sizeof(bytes), 0), 0);
		assert_int_equal(stream_state(stream_of(side)), SHUNT_CANDIDATE);
		turn();
		assert_int_equal(receive_some(side, bytes, sizeof(bytes), 0), 0);
		assert_int_equal(atomic_load(&engines[CLAIMANT]->links.distrusted), 0);
		close_side(side);
		leave_closed_bed();
	}
}

/* The acceptor has attached it, and its answer is under way. */
static struct side *make_accepted(void)
{
	struct side *side = make_claimed();

	until_claimed(side);
	while (stream_state(stream_of(&bed.pair[0].side[!CLAIMANT])) != SHUNT_LINKED)
		shunt_service_step(engines[!CLAIMANT], 0);
	return side;
}

/* Nobody has forked: the end that the link has told before the answer counts, and the kernel's does not have to. */
void an_end_before_the_answer(void **state)
{
	struct side *side, *peer = &bed.pair[0].side[!CLAIMANT];
	char byte;

	(void)state;
	side = make_accepted();
	assert_int_equal(
		shunt_stream_shutdown(engines[!CLAIMANT], peer->fd, stream_of(peer), SHUT_WR), 0);
	shunt_group_poll_fully(&engines[CLAIMANT]->group);
	assert_int_equal(stream_state(stream_of(side)), SHUNT_CANDIDATE);
	while (stream_state(stream_of(side)) != SHUNT_LINKED)
		shunt_service_step(engines[CLAIMANT], 0);
	assert_int_equal(receive_some(side, &byte, 1, MSG_DONTWAIT), 0);
	close_side(side);
	close_side(peer);
	leave_closed_bed();
}

/* The same with a reset behind the end: it is told as the kernel tells it then. */
void a_reset_behind_an_end_before_the_answer(void **state)
{
	struct side *side, *peer = &bed.pair[0].side[!CLAIMANT];
	char byte;

	(void)state;
	side = make_accepted();
	assert_int_equal(send_some(side, "x", 1, 0), 1);
	assert_int_equal(
		shunt_stream_shutdown(engines[!CLAIMANT], peer->fd, stream_of(peer), SHUT_WR), 0);
	close_side(peer);	/* with an unread byte */
	shunt_group_poll_fully(&engines[CLAIMANT]->group);
	assert_int_equal(send_some(side, "x", 1, 0), -EPIPE);
	assert_int_equal(receive_some(side, &byte, 1, MSG_DONTWAIT), 0);
	close_side(side);
	leave_closed_bed();
}

static void *fork_in_thread(void *none)
{
	fork_here();
	return none;
}

static int counts_then_fork(int fd, int level, int name, void *value, socklen_t *length)
{
	pthread_t thread;

	if (forks && level == IPPROTO_TCP && name == TCP_INFO) {
		forks = false;
		assert_int_equal(pthread_create(&thread, NULL, fork_in_thread, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	return getsockopt(fd, level, name, value, length);
}

/* The fork has taken it for a candidate, so the child has a socket of the kernel's. */
void a_fork_during_an_attachment(void **state)
{
	struct side *side;

	(void)state;
	side = make_claimed();
	passing.getsockopt = counts_then_fork;
	until_claimed(side);
	forks = true;
	for (int n = 0; stream_state(stream_of(side)) != SHUNT_PLAIN; n++) {
		assert_true(n < 100000);
		assert_int_not_equal(stream_state(stream_of(side)), SHUNT_LINKED);
		turn();
	}
	assert_false(forks);
	put(0, 0, 1000, 0);
	put(0, 1, 1000, 0);
	all_arrived();
	leave_bed();
}
