/* The channel of a link and the gate for channels from other hosts. Real sockets, and a clock of our own. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/engine.h"
#include "core/gate.h"

#define MS 1000000ull

static uint64_t clock_ns = 1;
static size_t at_most;	/* bytes that one sendmsg or recvmsg moves; 0: as many as it likes */
static bool full;	/* sendmsg finds no room */
static struct shunt_engine *engine;
static const uint8_t cookie[SHUNT_COOKIE_BYTES] = "0123456789abcde";

static uint64_t now(void)
{
	return clock_ns;
}

static ssize_t send_some(int fd, const struct msghdr *message, int flags)
{
	struct iovec iov = *message->msg_iov;
	struct msghdr cut = *message;

	if (full) {
		errno = EAGAIN;
		return -1;
	}
	cut.msg_iov = &iov;
	if (at_most && iov.iov_len > at_most)
		iov.iov_len = at_most;
	return sendmsg(fd, &cut, flags);
}

static ssize_t receive_some(int fd, struct msghdr *message, int flags)
{
	struct iovec whole = *message->msg_iov;
	ssize_t got;

	if (at_most && whole.iov_len > at_most)
		message->msg_iov->iov_len = at_most;
	got = recvmsg(fd, message, flags);
	*message->msg_iov = whole;
	return got;
}

static const struct shunt_sys sys = {
	.now = now, .sendmsg = send_some, .recvmsg = receive_some, .setsockopt = setsockopt,
	.getsockopt = getsockopt, .getsockname = getsockname, .shutdown = shutdown, .fcntl = fcntl,
	.socket = socket, .bind = bind, .listen = listen, .accept4 = accept4, .connect = connect,
	.close = close, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl, .epoll_pwait = epoll_pwait,
};

static int descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 65536; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static int set_up(void **state)
{
	static struct shunt_config config;

	(void)state;
	at_most = 0;
	full = false;
	if (!engine)
		engine = shunt_engine_create(&config, &sys);
	return !engine;
}

static void make_pair(struct shunt_channel pair[2], enum shunt_channel_kind kind)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, (kind == SHUNT_CHANNEL_UNIX ? SOCK_SEQPACKET : SOCK_STREAM) |
				    SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	for (int i = 0; i < 2; i++)
		shunt_channel_init(&pair[i], engine, kind, shunt_private_make(engine, fds[i]));
}

static void close_pair(struct shunt_channel pair[2])
{
	shunt_channel_close(&pair[0]);
	shunt_channel_close(&pair[1]);
}

static struct shunt_message hello(void)
{
	return (struct shunt_message) { .type = SHUNT_MSG_HELLO, .hello.magic = SHUNT_WIRE_MAGIC };
}

static int take(struct shunt_channel *channel, struct shunt_message *message)
{
	int fds[SHUNT_CHANNEL_FDS], count, result = shunt_channel_receive(channel, message, fds, &count);

	assert_int_equal(count, 0);
	return result;
}

/* Until a message has come: a stream may need several calls. */
static int take_whole(struct shunt_channel *channel, struct shunt_message *message)
{
	for (unsigned int i = 0; i < sizeof(*message); i++) {
		int result = take(channel, message);

		if (result)
			return result;
	}
	return 0;
}

/* The same from a sender that may have to wait for room. */
static int take_sent(struct shunt_channel pair[2], struct shunt_message *message)
{
	int result = take_whole(&pair[1], message);

	for (int i = 0; i < 1000 && !result && shunt_channel_waits(&pair[0]); i++) {
		shunt_channel_flush(&pair[0]);
		result = take_whole(&pair[1], message);
	}
	return result;
}

static void descriptors_travel(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS] = { 0, 1 }, count, before;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	before = descriptors();
	assert_int_equal(shunt_channel_send(&pair[0], &message, fds, 2), 0);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 1);
	assert_int_equal(count, 2);
	assert_int_equal(descriptors(), before + 2);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 0);
	close_pair(pair);
}

static void kept_messages_hold_their_descriptors(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fds[SHUNT_CHANNEL_FDS] = { dup(0), -1 }, count, before = descriptors();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	full = true;
	assert_int_equal(shunt_channel_send(&pair[0], &message, fds, 1), 0);
	close(fds[0]);
	assert_true(shunt_channel_waits(&pair[0]));
	shunt_channel_flush(&pair[0]);
	assert_true(shunt_channel_waits(&pair[0]));
	full = false;
	shunt_channel_flush(&pair[0]);
	assert_false(shunt_channel_waits(&pair[0]));
	assert_int_equal(shunt_channel_receive(&pair[1], &message, fds, &count), 1);
	assert_int_equal(count, 1);
	close(fds[0]);
	full = true;
	fds[0] = 0;
	shunt_channel_send(&pair[0], &message, fds, 1);
	close_pair(pair);
	assert_int_equal(descriptors(), before - 1);
}

static void packets_of_another_size(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = { 0 };

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_UNIX);
	assert_int_equal(send(pair[0].fd, &message, 5, 0), 5);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(pair[1].wrong);
	shunt_channel_close(&pair[0]);
	assert_true(take(&pair[1], &message) < 0);
	assert_int_not_equal(take(&pair[1], &message), -EPROTO);
	close_pair(pair);
}

static void streams_have_no_descriptors(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	int fd = 0;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	assert_int_equal(shunt_channel_send(&pair[0], &message, &fd, 1), -EINVAL);
	assert_int_equal(take(&pair[1], &message), 0);
	close_pair(pair);
}

/* However the bytes are cut, at both ends, messages come whole and in order. */
static void a_stream_in_pieces(void **state)
{
	static const size_t pieces[] = { 1, 3, 7, 64, sizeof(struct shunt_message) - 1, 0 };

	(void)state;
	for (size_t piece = 0; piece < sizeof(pieces) / sizeof(pieces[0]); piece++) {
		struct shunt_channel pair[2];
		struct shunt_message message = hello();

		make_pair(pair, SHUNT_CHANNEL_TCP);
		at_most = pieces[piece];
		for (uint32_t i = 0; i < 20; i++) {
			message.stream = i;
			assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
			if (i == 10)
				shunt_channel_flush(&pair[0]);
			message.type = SHUNT_MSG_CLAIM;
		}
		for (uint32_t i = 0; i < 20; i++) {
			assert_int_equal(take_sent(pair, &message), 1);
			assert_int_equal(message.stream, i);
		}
		assert_false(shunt_channel_waits(&pair[0]));
		assert_int_equal(take_whole(&pair[1], &message), 0);
		close_pair(pair);
	}
}

/* A peer that does not read: everything waits, and comes in order when it does. */
static void a_full_stream(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();
	uint32_t sent = 0;

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	while (!shunt_channel_waits(&pair[0]) || sent % 1000) {
		message.stream = sent++;
		assert_int_equal(shunt_channel_send(&pair[0], &message, NULL, 0), 0);
	}
	for (uint32_t i = 0; i < sent; i++) {
		assert_int_equal(take_sent(pair, &message), 1);
		assert_int_equal(message.stream, i);
	}
	assert_false(shunt_channel_waits(&pair[0]));
	close_pair(pair);
}

static void another_byte_order(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	message.type = __builtin_bswap32(message.type);
	message.hello.magic = __builtin_bswap32(message.hello.magic);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	message = hello();
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(strstr(pair[1].wrong, "byte order"));
	assert_int_equal(take(&pair[1], &message), -EPROTO); /* and nothing behind it is read */
	close_pair(pair);
}

static void garbage_comes_first(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = { .type = SHUNT_MSG_CLAIM };

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(take(&pair[1], &message), -EPROTO);
	assert_non_null(pair[1].wrong);
	close_pair(pair);
}

static void a_stream_that_ends(void **state)
{
	struct shunt_channel pair[2];
	struct shunt_message message = hello();

	(void)state;
	make_pair(pair, SHUNT_CHANNEL_TCP);
	shunt_channel_send(&pair[0], &message, NULL, 0);
	assert_int_equal(send(pair[0].fd, &message, 5, 0), 5); /* half a message */
	shunt_channel_close(&pair[0]);
	assert_int_equal(take(&pair[1], &message), 1);
	assert_int_equal(take(&pair[1], &message), 0);
	assert_int_equal(take(&pair[1], &message), -EPIPE);
	assert_int_equal(shunt_channel_send(&pair[1], &message, NULL, 0), -EPIPE);
	close_pair(pair);
	close_pair(pair);
}

/* --- the gate --- */

struct door {
	struct shunt_gate gate;
	struct sockaddr_in address;
	void *let_in, *expired;
	int fd, ins, outs;
};

static void note_in(void *arg, void *ticket, int fd)
{
	struct door *door = arg;

	door->let_in = ticket;
	door->fd = fd;
	door->ins++;
}

static void note_out(void *arg, void *ticket)
{
	struct door *door = arg;

	door->expired = ticket;
	door->outs++;
}

static void open_door(struct door *door)
{
	*door = (struct door) { .address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
				.fd = -1 };
	door->gate.engine = engine;
	door->gate.patience = 1000 * MS;
	door->gate.silence_ms = 3000;
	door->gate.arg = door;
	door->gate.let_in = note_in;
	door->gate.expired = note_out;
	assert_int_equal(shunt_gate_open(&door->gate, (struct sockaddr *)&door->address), 0);
	door->address.sin_port = door->gate.port;
}

static void close_door(struct door *door)
{
	shunt_private_close(engine, door->fd);
	shunt_gate_close(&door->gate);
}

/* Loopback is quick, but not at once. */
static void step(struct door *door)
{
	struct pollfd pfd = { .fd = door->gate.fd, .events = POLLIN };

	poll(&pfd, 1, 200);
	shunt_gate_step(&door->gate);
}

static int knock(struct door *door, const void *shown, size_t bytes)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&door->address, sizeof(door->address)), 0);
	assert_int_equal(send(fd, shown, bytes, MSG_NOSIGNAL), bytes);
	return fd;
}

/* Has the other end been closed? */
static bool is_closed(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&pfd, 1, 200) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
}

static void both_ways(struct shunt_channel *client, struct shunt_channel *server)
{
	struct pollfd pfd = { .events = POLLIN };
	struct shunt_message message = hello();

	pfd.fd = client->fd;
	assert_int_equal(shunt_channel_send(server, &message, NULL, 0), 0);
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	assert_int_equal(take(client, &message), 1);
	pfd.fd = server->fd;
	assert_int_equal(shunt_channel_send(client, &message, NULL, 0), 0);
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	assert_int_equal(take_whole(server, &message), 1);
	assert_int_equal(take(server, &message), 0);
}

static void option_is(int fd, int level, int name, int expected)
{
	int value = -1;
	socklen_t length = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &length), 0);
	assert_int_equal(value, expected);
}

static void who_has_a_ticket_comes_in(void **state)
{
	struct door door;
	struct shunt_channel client, server;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int before = descriptors();

	(void)state;
	open_door(&door);
	assert_int_equal(shunt_gate_expect(&door.gate, &before, shown), 0);
	assert_int_equal(shunt_channel_connect(&client, engine, NULL, (struct sockaddr *)&door.address, shown, 3000), 0);
	assert_true(shunt_channel_waits(&client));
	step(&door);
	assert_int_equal(door.ins, 0);
	at_most = 5;
	shunt_channel_flush(&client);
	for (int i = 0; i < 10 && !door.ins; i++)
		step(&door);
	at_most = 0;
	assert_int_equal(door.ins, 1);
	assert_ptr_equal(door.let_in, &before);
	shunt_channel_init(&server, engine, SHUNT_CHANNEL_TCP, door.fd);
	both_ways(&client, &server);
	for (int i = 0; i < 2; i++) {
		int fd = i ? server.fd : client.fd;

		option_is(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		option_is(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
		option_is(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
		option_is(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	}
	assert_int_equal(shunt_gate_due(&door.gate), UINT64_MAX);
	shunt_channel_close(&client);
	shunt_channel_close(&server);
	shunt_gate_close(&door.gate);
	assert_int_equal(door.outs, 0);
	assert_int_equal(descriptors(), before);
}

static void a_wrong_cookie(void **state)
{
	struct door door;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int fd;

	(void)state;
	open_door(&door);
	fd = knock(&door, cookie, SHUNT_COOKIE_BYTES); /* nobody is expected; and zero is no ticket either */
	step(&door);
	assert_true(is_closed(fd));
	close(fd);
	shunt_gate_expect(&door.gate, &door, shown);
	shown[15] ^= 1;
	fd = knock(&door, shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_true(is_closed(fd));
	close(fd);
	fd = knock(&door, (uint8_t[SHUNT_COOKIE_BYTES]) { 0 }, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_true(is_closed(fd));
	close(fd);
	assert_int_equal(door.gate.turned_away, 3);
	assert_int_equal(door.ins, 0);
	close_door(&door);
	assert_int_equal(door.outs, 1);
}

static void a_ticket_is_good_once(void **state)
{
	struct door door;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int first, second;

	(void)state;
	open_door(&door);
	shunt_gate_expect(&door.gate, &door, shown);
	first = knock(&door, shown, SHUNT_COOKIE_BYTES);
	second = knock(&door, shown, SHUNT_COOKIE_BYTES);
	for (int i = 0; i < 3; i++)
		step(&door);
	assert_int_equal(door.ins, 1);
	assert_int_equal(door.gate.turned_away, 1);
	close(first);
	close(second);
	close_door(&door);
}

static void tickets_end(void **state)
{
	struct door door;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int fd;

	(void)state;
	open_door(&door);
	for (int i = 0; i < SHUNT_GATE_TICKETS; i++)
		assert_int_equal(shunt_gate_expect(&door.gate, &door.gate.tickets[i], shown), 0);
	assert_int_equal(shunt_gate_expect(&door.gate, &door, shown), -ENOSPC);
	assert_int_equal(shunt_gate_due(&door.gate), clock_ns + 1000 * MS);
	shunt_gate_cancel(&door.gate, &door.gate.tickets[3]);
	assert_int_equal(shunt_gate_expect(&door.gate, &door, shown), 0);
	clock_ns += 1000 * MS;
	shunt_gate_step(&door.gate);
	assert_int_equal(door.outs, SHUNT_GATE_TICKETS);
	fd = knock(&door, shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_int_equal(door.ins, 0);
	assert_true(is_closed(fd));
	close(fd);
	close_door(&door);
	assert_int_equal(door.outs, SHUNT_GATE_TICKETS);
}

static void who_says_nothing_must_go(void **state)
{
	struct door door;
	int silent, slow;

	(void)state;
	open_door(&door);
	silent = knock(&door, "", 0);
	slow = knock(&door, "abc", 3);
	step(&door);
	step(&door);
	assert_int_equal(shunt_gate_due(&door.gate), clock_ns + 1000 * MS);
	clock_ns += 999 * MS;
	shunt_gate_step(&door.gate);
	assert_int_equal(door.gate.turned_away, 0);
	clock_ns += 1 * MS;
	shunt_gate_step(&door.gate);
	assert_true(is_closed(silent));
	assert_true(is_closed(slow));
	assert_int_equal(shunt_gate_due(&door.gate), UINT64_MAX);
	close(silent);
	close(slow);
	close_door(&door);
}

/* Who comes with a ticket is not kept out by a crowd that says nothing. */
static void a_crowd(void **state)
{
	struct door door;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int crowd[3 * SHUNT_GATE_GUESTS], fd, before = descriptors();

	(void)state;
	open_door(&door);
	shunt_gate_expect(&door.gate, &door, shown);
	for (int i = 0; i < 3 * SHUNT_GATE_GUESTS; i++) {
		crowd[i] = knock(&door, "", 0);
		clock_ns++;
		step(&door);
	}
	assert_int_equal(door.gate.turned_away, 2 * SHUNT_GATE_GUESTS);
	assert_true(is_closed(crowd[0]));
	fd = knock(&door, shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_int_equal(door.ins, 1);
	for (int i = 0; i < 3 * SHUNT_GATE_GUESTS; i++)
		close(crowd[i]);
	close(fd);
	close_door(&door);
	assert_int_equal(descriptors(), before);
}

static void without_descriptors_the_gate_rests(void **state)
{
	struct rlimit before, none;
	struct door door;
	int fd;

	(void)state;
	open_door(&door);
	fd = knock(&door, "", 0);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit) { .rlim_cur = 3, .rlim_max = before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	shunt_gate_step(&door.gate);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_not_equal(shunt_gate_due(&door.gate), UINT64_MAX);
	assert_int_equal(poll(&(struct pollfd) { .fd = door.gate.fd, .events = POLLIN }, 1, 0), 0);
	clock_ns = shunt_gate_due(&door.gate);
	shunt_gate_step(&door.gate);
	assert_int_equal(shunt_gate_due(&door.gate), clock_ns + 1000 * MS); /* the guest's */
	close(fd);
	close_door(&door);
}

static void nobody_at_the_gate(void **state)
{
	struct door door;
	struct shunt_channel client;
	struct shunt_message message;
	struct pollfd pfd = { .events = POLLIN };
	int result;

	(void)state;
	open_door(&door);
	close_door(&door);
	result = shunt_channel_connect(&client, engine, NULL, (struct sockaddr *)&door.address, cookie, 3000);
	if (result) {
		assert_int_equal(result, -ECONNREFUSED);
		return;
	}
	pfd.fd = client.fd;
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	assert_int_equal(take(&client, &message), -ECONNREFUSED);
	shunt_channel_flush(&client);
	assert_false(shunt_channel_waits(&client));
	shunt_channel_close(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(descriptors_travel, set_up),
		cmocka_unit_test_setup(kept_messages_hold_their_descriptors, set_up),
		cmocka_unit_test_setup(packets_of_another_size, set_up),
		cmocka_unit_test_setup(streams_have_no_descriptors, set_up),
		cmocka_unit_test_setup(a_stream_in_pieces, set_up),
		cmocka_unit_test_setup(a_full_stream, set_up),
		cmocka_unit_test_setup(another_byte_order, set_up),
		cmocka_unit_test_setup(garbage_comes_first, set_up),
		cmocka_unit_test_setup(a_stream_that_ends, set_up),
		cmocka_unit_test_setup(who_has_a_ticket_comes_in, set_up),
		cmocka_unit_test_setup(a_wrong_cookie, set_up),
		cmocka_unit_test_setup(a_ticket_is_good_once, set_up),
		cmocka_unit_test_setup(tickets_end, set_up),
		cmocka_unit_test_setup(who_says_nothing_must_go, set_up),
		cmocka_unit_test_setup(a_crowd, set_up),
		cmocka_unit_test_setup(without_descriptors_the_gate_rests, set_up),
		cmocka_unit_test_setup(nobody_at_the_gate, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
