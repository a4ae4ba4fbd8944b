/* SPDX-License-Identifier: MIT */
/* Packets of strangers: which are let through, and how many descriptors wait to be closed for one that is not. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/scm_rights.h"
#include "core/fd/own_fds.h"
#include "core/link/channel.h"
#include "core/link/screen.h"
#include "core/loop/porter.h"
#include "tests/unit/sockets.h"

#define MANY 253	/* as many as one packet may have */

static void send_bytes(int to, size_t bytes, const int *fds, int count)
{
	char space[CMSG_SPACE(MANY * sizeof(int))] = { 0 };
	struct iovec iov = { "x", bytes };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	shunt_scm_rights_attach(&message, space, fds, count);
	assert_int_equal(sendmsg(to, &message, 0), bytes);
}

static void send_packet(int to, const int *fds, int count)
{
	send_bytes(to, 1, fds, count);
}

static int screened(const int *fds, int count)
{
	int ends[2], result;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	send_packet(ends[0], fds, count);
	shunt_own_fds_begin(&engine->fds);
	result = shunt_screen_packet(&engine->loop, ends[1], 2, false);
	shunt_own_fds_end(&engine->fds);
	close(ends[0]);
	close(ends[1]);
	return result;
}

/* Nothing is closed: the thread is said to be at work, and is not there. */
static void fill(uint32_t count)
{
	engine->porter.count = count;
	engine->loop.manual = false;
	engine->porter.at_work = true;
}

static void memory_and_pairs_pass(void **state)
{
	int memory = memfd_create("memory", MFD_ALLOW_SEALING), event = eventfd(0, EFD_NONBLOCK),
	    pair[2], tcp;
	int good[2], more[3];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	good[0] = more[0] = memory;
	good[1] = more[1] = more[2] = pair[1];
	fill(0);
	assert_int_equal(screened(good, 0), 1);
	assert_int_equal(screened(good, 2), 1);
	assert_int_equal(screened(more, 3), -EBADMSG);
	assert_int_equal(screened(&event, 1), -EBADMSG);
	while (engine->porter.count)
		close(engine->porter.waiting[--engine->porter.count]);
	assert_int_equal(screened(&tcp, 1), -EBADMSG);
	assert_int_equal(engine->porter.count, 0);
	close(memory);
	close(event);
	close(tcp);
	close(pair[0]);
	close(pair[1]);
}

/* The peer's end of a pair that a peer has made, and one that has descriptors in its queue. */
static void pairs_are_closed_in_no_time(void **state)
{
	int channel[2], pair[2], file = open("/", O_RDONLY | O_DIRECTORY), copy;

	(void)state;
	fill(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(shunt_screen_sockets(&engine->links, channel[0], &pair[1], 1));
	assert_int_equal(send(pair[0], "x", 1, MSG_NOSIGNAL), -1);	/* nothing more comes into its queue */
	assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	send_bytes(pair[0], 0, &file, 1);
	copy = dup(pair[1]);
	assert_false(shunt_screen_sockets(&engine->links, channel[0], &copy, 1));
	assert_int_equal(engine->porter.count, 1);
	shunt_own_fds_close(&engine->fds, engine->porter.waiting[--engine->porter.count]);
	close(pair[0]);
	close(pair[1]);
	close(channel[0]);
	close(channel[1]);
	close(file);
}

static void few_of_many_wait(void **state)
{
	int file = open("/", O_RDONLY | O_DIRECTORY), fds[MANY];

	(void)state;
	fill(0);
	for (int i = 0; i < MANY; i++)
		fds[i] = file;
	assert_int_equal(screened(fds, 1), -EBADMSG);
	assert_int_equal(engine->porter.count, 1);
	assert_int_equal(screened(fds, MANY), -EBADMSG);
	assert_in_range(engine->porter.count, 2, 1 + 16);
	while (engine->porter.count)
		close(engine->porter.waiting[--engine->porter.count]);
	close(file);
}

static void full_porter_gets_no_more(void **state)
{
	int file = open("/", O_RDONLY | O_DIRECTORY), next, again;

	(void)state;
	fill(SHUNT_PORTER_MOST);
	next = dup(file);
	close(next);
	assert_int_equal(screened(&file, 1), -EBUSY);
	assert_int_equal(engine->porter.count, SHUNT_PORTER_MOST);
	again = dup(file);
	assert_int_equal(again, next);
	close(again);
	close(file);
	fill(0);
}

/* How many wait to be closed when the channel of a stranger that has proven a connection ends with this in its queue. */
static uint32_t left_by_channel(bool packet, size_t bytes, const int *fds, int count)
{
	struct shunt_channel channel;
	int ends[2], adopted;
	uint32_t left;

	fill(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	adopted = shunt_own_fds_adopt(&engine->fds, ends[1]);
	assert_true(adopted >= 0);
	shunt_channel_init(&channel, &engine->links, SHUNT_CHANNEL_UNIX, adopted);
	shunt_channel_strange(&channel);
	shunt_channel_proven(&channel);
	if (packet)
		send_bytes(ends[0], bytes, fds, count);
	shunt_channel_close(&channel);
	left = engine->porter.count;
	while (engine->porter.count)
		shunt_own_fds_close(&engine->fds, engine->porter.waiting[--engine->porter.count]);
	assert_int_equal(fcntl(adopted, F_GETFD), -1);
	close(ends[0]);
	return left;
}

static void channel_with_packets_is_closed_apart(void **state)
{
	int file = open("/", O_RDONLY | O_DIRECTORY);

	(void)state;
	assert_int_equal(left_by_channel(true, 1, &file, 1), 1);
	assert_int_equal(left_by_channel(true, 0, &file, 1), 1);
	assert_int_equal(left_by_channel(true, 0, NULL, 0), 1);
	assert_int_equal(left_by_channel(false, 0, NULL, 0), 0);
	close(file);
}

/* Hands one end of a pipe to the porter, and sees it closed: by which thread. */
static pid_t closed_by(void)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	shunt_porter_close_later(&engine->porter, shunt_own_fds_adopt(&engine->fds, ends[1]));
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	return atomic_load(&engine->porter.tid);
}

/* A program that forbids itself threads has one that rests between strangers, and ends when the program confines itself. */
static void a_porter_that_stays_is_one_thread(void **state)
{
	pid_t tid;

	(void)state;
	fill(0);
	engine->porter.at_work = false;
	atomic_store(&engine->porter.shut, false);	/* there is no service thread to be told */
	shunt_porter_stay(&engine->porter);
	tid = closed_by();
	assert_true(tid > 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(closed_by(), tid);
	assert_true(engine->porter.at_work);
	assert_true(shunt_porter_await(&engine->porter, UINT64_MAX));
	assert_false(engine->porter.at_work);
}

/* Links end when the doors are shut already: none of what is in their queues is closed by the service thread. */
static void all_wait(void **state)
{
	int file = open("/", O_RDONLY | O_DIRECTORY);

	(void)state;
	fill(0);
	for (int i = 0; i < 4 * SHUNT_PORTER_MOST; i++)
		shunt_porter_close_later(&engine->porter,
					 shunt_own_fds_adopt(&engine->fds, dup(file)));
	assert_int_equal(engine->porter.count, 4 * SHUNT_PORTER_MOST);
	assert_true(shunt_porter_is_full(&engine->porter));
	for (int i = 0; i < 4 * SHUNT_PORTER_MOST; i++)
		shunt_own_fds_close(&engine->fds, engine->porter.waiting[i]);
	engine->porter.count = 0;
	close(file);
}

/* A message for which no descriptors are due: it is not received, and its descriptor stays in the queue. */
static void none_is_received_that_is_not_due(void **state)
{
	struct shunt_message message = { .type = SHUNT_MSG_LEFT };
	struct shunt_channel channel;
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };
	int ends[2], fds[SHUNT_CHANNEL_FDS], count, file = open("/", O_RDONLY | O_DIRECTORY);

	(void)state;
	fill(0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	shunt_channel_init(&channel, &engine->links, SHUNT_CHANNEL_UNIX,
			   shunt_own_fds_adopt(&engine->fds, ends[1]));
	shunt_channel_strange(&channel);
	shunt_channel_proven(&channel);
	shunt_scm_rights_attach(&header, space, &file, 1);
	assert_int_equal(sendmsg(ends[0], &header, 0), sizeof(message));	/* while a HELLO is due */
	shunt_channel_expect_no_fd(&channel);
	assert_int_equal(shunt_channel_receive(&channel, &message, fds, &count), -EPROTO);
	assert_int_equal(count, 0);
	assert_int_equal(shunt_scm_rights_look(engine->sys, channel.fd, false), -EBADMSG);
	shunt_channel_close(&channel);
	assert_int_equal(engine->porter.count, 1);
	shunt_own_fds_close(&engine->fds, engine->porter.waiting[--engine->porter.count]);
	close(ends[0]);
	close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(memory_and_pairs_pass, set_up),
		cmocka_unit_test_setup(pairs_are_closed_in_no_time, set_up),
		cmocka_unit_test_setup(few_of_many_wait, set_up),
		cmocka_unit_test_setup(full_porter_gets_no_more, set_up),
		cmocka_unit_test_setup(all_wait, set_up),
		cmocka_unit_test_setup(a_porter_that_stays_is_one_thread, set_up),
		cmocka_unit_test_setup(none_is_received_that_is_not_due, set_up),
		cmocka_unit_test_setup(channel_with_packets_is_closed_apart, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
