/* SPDX-License-Identifier: MIT */
/* The gate for channels from other hosts. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/base/keyfile.h"
#include "core/fd/own_fds.h"
#include "core/peer/remote_guest.h"
#include "core/peer/remote_listener.h"
#include "core/service.h"
#include "tests/unit/sockets.h"

static const uint8_t cookie[SHUNT_COOKIE_BYTES] = "0123456789abcde";

struct door {
	struct shunt_remote_listener gate;
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

static int try_door(struct door *door, uint16_t first, uint16_t last)
{
	*door = (struct door) { .address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
				.fd = -1 };
	door->gate.engine = engine;
	door->gate.patience = 1000 * MS;
	door->gate.silence_ms = 3000;
	door->gate.arg = door;
	door->gate.let_in = note_in;
	door->gate.expired = note_out;
	door->gate.first_port = first;
	door->gate.last_port = last;
	return shunt_remote_listener_open(&door->gate, (struct sockaddr *)&door->address);
}

static void open_door(struct door *door)
{
	assert_int_equal(try_door(door, 0, 0), 0);
	door->address.sin_port = door->gate.port;
}

static void close_door(struct door *door)
{
	shunt_own_fds_close(&engine->fds, door->fd);
	shunt_remote_listener_close(&door->gate);
}

/* Loopback is quick, but not at once. */
static void step(struct door *door)
{
	struct pollfd pfd = { .fd = door->gate.fd, .events = POLLIN };

	poll(&pfd, 1, 200);
	shunt_remote_listener_step(&door->gate);
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
	assert_int_equal(shunt_remote_listener_expect(&door.gate, &before, shown), 0);
	assert_int_equal(shunt_channel_connect(&client, &engine->links, NULL,
					       (struct sockaddr *)&door.address, shown, 3000),
			 0);
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
	shunt_channel_init(&server, &engine->links, SHUNT_CHANNEL_TCP, door.fd);
	both_ways(&client, &server);
	for (int i = 0; i < 2; i++) {
		int fd = i ? server.fd : client.fd;

		option_is(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		option_is(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000);
		option_is(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
		option_is(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	}
	assert_int_equal(shunt_remote_listener_due(&door.gate), UINT64_MAX);
	shunt_channel_close(&client);
	shunt_channel_close(&server);
	shunt_remote_listener_close(&door.gate);
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
	shunt_remote_listener_expect(&door.gate, &door, shown);
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
	shunt_remote_listener_expect(&door.gate, &door, shown);
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
	for (int i = 0; i < SHUNT_REMOTE_LISTENER_TICKETS; i++)
		assert_int_equal(shunt_remote_listener_expect(&door.gate, &door.gate.tickets[i], shown), 0);
	assert_int_equal(shunt_remote_listener_expect(&door.gate, &door, shown), -ENOSPC);
	assert_int_equal(shunt_remote_listener_due(&door.gate), clock_ns + 1000 * MS);
	clock_ns += 1000 * MS;
	shunt_remote_listener_step(&door.gate);
	assert_int_equal(door.outs, SHUNT_REMOTE_LISTENER_TICKETS);
	fd = knock(&door, shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_int_equal(door.ins, 0);
	assert_true(is_closed(fd));
	close(fd);
	close_door(&door);
	assert_int_equal(door.outs, SHUNT_REMOTE_LISTENER_TICKETS);
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
	assert_int_equal(shunt_remote_listener_due(&door.gate), clock_ns + 1000 * MS);
	clock_ns += 999 * MS;
	shunt_remote_listener_step(&door.gate);
	assert_int_equal(door.gate.turned_away, 0);
	clock_ns += 1 * MS;
	shunt_remote_listener_step(&door.gate);
	assert_true(is_closed(silent));
	assert_true(is_closed(slow));
	assert_int_equal(shunt_remote_listener_due(&door.gate), UINT64_MAX);
	close(silent);
	close(slow);
	close_door(&door);
}

/* A client with a ticket is let in despite a crowd that says nothing. */
static void a_crowd(void **state)
{
	struct door door;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	int crowd[3 * SHUNT_REMOTE_LISTENER_GUESTS], fd, before = descriptors();

	(void)state;
	open_door(&door);
	shunt_remote_listener_expect(&door.gate, &door, shown);
	for (int i = 0; i < 3 * SHUNT_REMOTE_LISTENER_GUESTS; i++) {
		crowd[i] = knock(&door, "", 0);
		clock_ns++;
		step(&door);
	}
	assert_int_equal(door.gate.turned_away, 2 * SHUNT_REMOTE_LISTENER_GUESTS);
	assert_true(is_closed(crowd[0]));
	fd = knock(&door, shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_int_equal(door.ins, 1);
	for (int i = 0; i < 3 * SHUNT_REMOTE_LISTENER_GUESTS; i++)
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
	shunt_remote_listener_step(&door.gate);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_not_equal(shunt_remote_listener_due(&door.gate), UINT64_MAX);
	assert_int_equal(poll(&(struct pollfd) { .fd = door.gate.fd, .events = POLLIN }, 1, 0), 0);
	clock_ns = shunt_remote_listener_due(&door.gate);
	shunt_remote_listener_step(&door.gate);
	assert_int_equal(shunt_remote_listener_due(&door.gate), clock_ns + 1000 * MS); /* the guest's */
	close(fd);
	close_door(&door);
}

/* --- with the tickets of peers that have asked --- */

struct asker {
	struct remote_question question;
	struct remote_answer answer;
	uint8_t shown[SHUNT_COOKIE_BYTES];
	struct shunt_seal seal;
};

static const uint8_t key[SHUNT_KEY_BYTES] = "a key", another[SHUNT_KEY_BYTES] = "another key";

static const struct shunt_course nowhere;

static void ask(struct door *door, struct asker *asker, const uint8_t *of)
{
	asker->answer = (struct remote_answer) { .port = 0 };
	engine->key = of;
	shunt_remote_question_make(&asker->question, of, cookie);
	assert_true(shunt_remote_guest_expect(&door->gate, &nowhere, &asker->question,
					      &asker->answer) > 0);
	assert_int_equal(asker->answer.port, door->gate.port);
	shunt_remote_words_bind(of, &asker->question, &asker->answer, true, &asker->seal,
				asker->shown);
	engine->key = NULL;
}

/* With a key the cookie that the answer has, in clear, opens nothing; and what opens is not to be had without the key. */
static void a_cookie_is_worth_nothing_without_the_key(void **state)
{
	struct asker asker;
	uint8_t guessed[SHUNT_COOKIE_BYTES];
	struct shunt_seal seal;
	struct door door;
	int fd;

	(void)state;
	open_door(&door);
	ask(&door, &asker, key);
	fd = knock(&door, asker.answer.cookie, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_true(is_closed(fd));
	close(fd);
	shunt_remote_words_bind(another, &asker.question, &asker.answer, true, &seal, guessed);
	fd = knock(&door, guessed, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_true(is_closed(fd));
	close(fd);
	assert_int_equal(door.ins, 0);
	fd = knock(&door, asker.shown, SHUNT_COOKIE_BYTES);
	step(&door);
	assert_int_equal(door.ins, 1);
	close(fd);
	shunt_remote_guest_over(NULL, door.let_in);
	close_door(&door);
}

/* --- with the tickets of an owner --- */

static struct shunt_onward sent_on(const struct door *door)
{
	struct shunt_onward onward = { .process = engine->identity, .gate = door->gate.port };

	memcpy(onward.ticket, cookie, sizeof(onward.ticket));
	return onward;
}

static void is_let_in(struct door *door, const uint8_t *shown, bool expected)
{
	int fd = knock(door, shown, SHUNT_COOKIE_BYTES);

	step(door);
	assert_int_equal(door->ins, expected);
	assert_int_equal(is_closed(fd), !expected);
	close(fd);
	if (expected)
		shunt_remote_guest_over(NULL, door->let_in);
}

/* Its key, its ticket and its gate: with any other nobody comes in. */
static void a_claimant_is_sent_on(void **state)
{
	(void)state;
	for (int keyed = 0; keyed < 2; keyed++)
		for (int wrong = 0; wrong < 4; wrong++) {
			const uint8_t *of = keyed ? key : NULL;
			uint8_t shown[SHUNT_COOKIE_BYTES];
			struct shunt_onward onward;
			struct shunt_seal seal;
			struct door door;

			open_door(&door);
			door.gate.expired = shunt_remote_guest_over;
			onward = sent_on(&door);
			engine->key = of;
			assert_int_equal(shunt_remote_guest_invited(&door.gate, &nowhere, cookie),
					 0);
			engine->key = NULL;
			onward.ticket[0] ^= wrong == 1;
			onward.process.bytes[0] ^= wrong == 2;
			shunt_remote_words_onward(wrong == 3 ? another : of, &onward, true, &seal,
						  shown);
			/* Without a key the ticket is all. */
			is_let_in(&door, shown, !wrong || (wrong == 2 && !keyed));
			close_door(&door);
		}
}

static void the_seals_of_both_ends_fit(void **state)
{
	uint8_t shown[2][SHUNT_COOKIE_BYTES];
	struct shunt_onward onward = { .gate = 1 };
	struct shunt_seal seal[2];

	(void)state;
	for (int asker = 0; asker < 2; asker++)
		shunt_remote_words_onward(key, &onward, asker, &seal[asker], shown[asker]);
	assert_memory_equal(shown[0], shown[1], sizeof(shown[0]));
	assert_memory_equal(seal[0].sending.key, seal[1].receiving.key, SHUNT_SEAL_KEY_BYTES);
	assert_memory_equal(seal[1].sending.key, seal[0].receiving.key, SHUNT_SEAL_KEY_BYTES);
	assert_memory_not_equal(seal[0].sending.key, seal[0].receiving.key, SHUNT_SEAL_KEY_BYTES);
	assert_memory_not_equal(shown[0], onward.ticket, sizeof(shown[0]));
}

static int asked_owners;

static void hear_owner(void *arg)
{
	struct door *door = arg;

	asked_owners++;
	assert_int_equal(shunt_remote_guest_invited(&door->gate, &nowhere, cookie), 0);
}

/* The owner's word and the claimant are there at the same time, and the gate is looked at first. */
static void a_claimant_may_be_faster_than_the_word_of_it(void **state)
{
	struct door door;

	(void)state;
	open_door(&door);
	door.gate.unknown = hear_owner;
	is_let_in(&door, cookie, true);
	assert_int_equal(asked_owners, 1);
	close_door(&door);
}

/* A client of this host with a cookie could only come for connections that are not between hosts. */
static void nobody_comes_from_within(void **state)
{
	struct shunt_service service = { .engine = engine };
	struct asker asker;
	struct door door;
	int before = descriptors();

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t away = atomic_load(&engine->turned_away);
		int fd;

		open_door(&door);
		ask(&door, &asker, i ? key : NULL);
		door.gate.arg = &service;
		door.gate.let_in = shunt_remote_guest_come;
		fd = knock(&door, asker.shown, SHUNT_COOKIE_BYTES);
		step(&door);
		assert_true(is_closed(fd));
		assert_int_equal(atomic_load(&engine->turned_away), away + 1);
		assert_null(service.links);
		close(fd);
		close_door(&door);
		assert_int_equal(descriptors(), before);
	}
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
	result = shunt_channel_connect(&client, &engine->links, NULL,
				       (struct sockaddr *)&door.address, cookie, 3000);
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

/* A firewall lets two ports in. The third gate has none; a port whose last channel the kernel remembers is free. */
static void gates_have_the_ports_they_may(void **state)
{
	struct door first, second, third;
	int before = descriptors(), knocker;
	uint16_t from = 20000; /* below those that the system gives out by itself */

	(void)state;
	while (try_door(&first, from, from))
		from++;
	while (try_door(&second, from, from + 1)) { /* another program has the one behind it */
		close_door(&first);
		from += 2;
		assert_int_equal(try_door(&first, from, from), 0);
	}
	assert_int_equal(ntohs(first.gate.port), from);
	assert_int_equal(ntohs(second.gate.port), from + 1);
	first.address.sin_port = first.gate.port;
	assert_int_equal(try_door(&third, from, from + 1), -EADDRINUSE);
	assert_int_equal(third.gate.fd, -1);

	knocker = knock(&first, "nothing that anybody knows", SHUNT_COOKIE_BYTES);
	step(&first);
	step(&first);
	assert_int_equal(first.gate.turned_away,
			 1); /* we have closed it: it is TIME_WAIT, or will be */
	close(knocker);
	close_door(&first);
	assert_int_equal(try_door(&third, from, from + 1), 0);
	assert_int_equal(ntohs(third.gate.port), from);
	close_door(&third);
	close_door(&second);
	assert_int_equal(descriptors(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_has_a_ticket_comes_in, set_up),
		cmocka_unit_test_setup(a_wrong_cookie, set_up),
		cmocka_unit_test_setup(a_ticket_is_good_once, set_up),
		cmocka_unit_test_setup(tickets_end, set_up),
		cmocka_unit_test_setup(who_says_nothing_must_go, set_up),
		cmocka_unit_test_setup(a_crowd, set_up),
		cmocka_unit_test_setup(without_descriptors_the_gate_rests, set_up),
		cmocka_unit_test_setup(a_cookie_is_worth_nothing_without_the_key, set_up),
		cmocka_unit_test_setup(a_claimant_is_sent_on, set_up),
		cmocka_unit_test_setup(the_seals_of_both_ends_fit, set_up),
		cmocka_unit_test_setup(a_claimant_may_be_faster_than_the_word_of_it, set_up),
		cmocka_unit_test_setup(nobody_comes_from_within, set_up),
		cmocka_unit_test_setup(nobody_at_the_gate, set_up),
		cmocka_unit_test_setup(gates_have_the_ports_they_may, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
