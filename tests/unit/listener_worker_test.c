/* SPDX-License-Identifier: MIT */
/* A worker that accepts at an address whose rendezvous another process owns, here the test. */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/fd/own_fds.h"
#include "core/peer/listener_message.h"
#include "core/peer/listener_owner.h"
#include "core/service.h"
#include "core/stream/offer.h"
#include "core/stream/tuple.h"
#include "tests/unit/sockets.h"

#define STEPS 1000
#define USES 16		/* of a connection that is expected to last */

struct owner {
	int fd, worker_fd;	/* both names */
	int joined;		/* who has come; -1 */
};

static int listener;
static struct shunt_stream *stream;
static struct shunt_tuple tuple;

static void step(void)
{
	shunt_service_step(engine, 0);
	clock_ns += MS;
}

static struct shunt_rendezvous *rendezvous(void)
{
	return ((struct shunt_stream *)shunt_file(engine, listener))->rendezvous;
}

static void own(struct owner *owner, const struct shunt_name *name)
{
	struct shunt_name have;

	shunt_rendezvous_workers(name, &have);
	owner->worker_fd = shunt_rendezvous_offer(engine, &have);
	owner->fd = shunt_rendezvous_offer(engine, name);
	owner->joined = -1;
	assert_true(owner->worker_fd >= 0 && owner->fd >= 0);
}

static void end(struct owner *owner)
{
	shunt_own_fds_close(&engine->fds, owner->worker_fd);
	shunt_own_fds_close(&engine->fds, owner->fd);
	shunt_own_fds_close(&engine->fds, owner->joined);
}

/* Messages since the last call. */
static uint32_t heard(struct owner *owner, struct shunt_have *have)
{
	int result;

	for (int i = 0; i < 3; i++)
		step();
	result = shunt_listener_message_receive(engine, owner->joined, have);
	assert_in_range(result, 0, 1);
	return result ? have->type : 0;
}

static void welcome(struct owner *owner)
{
	struct shunt_have have;

	for (int i = 0; i < STEPS && owner->joined < 0; i++) {
		step();
		owner->joined = shunt_rendezvous_accept(engine, owner->worker_fd,
							&(bool) { false });
	}
	assert_true(owner->joined >= 0);
	assert_int_equal(heard(owner, &have), SHUNT_HAVE_JOIN);
}

static void want(struct owner *owner)
{
	struct shunt_have have = { .type = SHUNT_HAVE_WANTED, .on = 1 };

	assert_int_equal(shunt_listener_message_send(engine, owner->joined, &have), 0);
	step();
}

static void assert_told(struct owner *owner)
{
	struct shunt_have have;

	for (int i = 0; i < USES; i++)
		shunt_offer_used(engine, stream);
	assert_int_equal(heard(owner, &have), SHUNT_HAVE_TUPLE);
	assert_memory_equal(&have.tuple, &tuple, sizeof(tuple));
}

static void assert_silent(struct owner *owner)
{
	struct shunt_have have;

	shunt_offer_used(engine, stream);
	assert_int_equal(heard(owner, &have), 0);
}

/* A listener, the name of its rendezvous, and a connection that was accepted there. */
static void listen_somewhere(struct shunt_name *name)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 5), 0);
	assert_int_equal(shunt_rendezvous_of(engine, listener, name), 0);
	shunt_file_socket(engine, listener, false);
}

static void accept_one(int fds[2])
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(connect(fds[0], (struct sockaddr *)&address, length), 0);
	fds[1] = accept(listener, NULL, NULL);
	assert_true(fds[1] >= 0);
	memset(&tuple, 0, sizeof(tuple));
	assert_int_equal(shunt_tuple_of(engine->sys, fds[1], &tuple), 0);
	shunt_file_accepted(engine, listener, fds[1], false, 0);
	stream = (struct shunt_stream *)shunt_file(engine, fds[1]);
	assert_non_null(stream);
}

static void close_all(int fds[2])
{
	const int ours[] = { fds[1], listener };

	for (int i = 0; i < 2; i++) {
		shunt_file_closing(engine, ours[i]);
		close(ours[i]);
	}
	close(fds[0]);
	step();
}

/* A new owner does not know the messages to the former one. */
static void next_owner_is_told(void **state)
{
	struct owner first, second;
	struct shunt_name name;
	int fds[2];

	(void)state;
	listen_somewhere(&name);
	own(&first, &name);
	shunt_file_listening(engine, listener);
	welcome(&first);
	accept_one(fds);
	assert_silent(&first);		/* not before it wants to know */
	want(&first);
	assert_silent(&first);		/* it may be a short one */
	assert_told(&first);
	assert_silent(&first);		/* once is enough */
	end(&first);
	own(&second, &name);
	welcome(&second);
	assert_silent(&second);
	want(&second);
	assert_told(&second);
	assert_silent(&second);
	end(&second);
	close_all(fds);
}

static void joiner_takes_over(void **state)
{
	struct shunt_name name;
	struct owner first;

	(void)state;
	listen_somewhere(&name);
	own(&first, &name);
	shunt_file_listening(engine, listener);
	welcome(&first);
	assert_int_equal(rendezvous()->fd, -1);
	end(&first);
	for (int i = 0; i < STEPS && rendezvous()->fd < 0; i++)
		step();
	assert_true(rendezvous()->fd >= 0 && rendezvous()->worker_fd >= 0);
	close_all((int[2]) { -1, -1 });
}

/* As on a process of another user. It is not asked again at once, and ever more rarely. */
static void owner_that_hangs_up_is_left_alone(void **state)
{
	struct shunt_name name;
	struct owner owner;
	int came = 0;

	(void)state;
	listen_somewhere(&name);
	own(&owner, &name);
	shunt_file_listening(engine, listener);
	for (int i = 0; i < STEPS; i++) {
		int fd;

		step();
		fd = shunt_rendezvous_accept(engine, owner.worker_fd, &(bool) { false });
		came += fd >= 0;
		shunt_own_fds_close(&engine->fds, fd);
	}
	assert_in_range(came, 2, 8);
	for (int i = 0; i < 2 && owner.joined < 0; i++)	/* it may wait longer than that now */
		for (int j = 0; j < STEPS; j++)
			step();
	welcome(&owner);
	end(&owner);
	close_all((int[2]) { -1, -1 });
}

static int set_up_manual(void **state)
{
	int failed = set_up(state);

	engine->loop.manual = true;
	return failed || !shunt_service_start(engine);
}

static void invite(struct owner *owner, const struct shunt_have *invitation)
{
	struct shunt_have have = *invitation;

	assert_int_equal(shunt_listener_message_send(engine, owner->joined, &have), 0);
	step();
	step();
}

static bool is_joined(void)
{
	return rendezvous()->owner_fd >= 0;
}

/* Without a gate an invitation is of no use, and no fault. One that makes no sense ends the connection to the owner. */
static void invitations_are_looked_at(void **state)
{
	for (int wrong = 0; wrong < 4; wrong++) {
		struct shunt_have have = { .type = SHUNT_HAVE_INVITE };
		struct shunt_name name;
		struct owner owner;
		int fds[2];

		assert_int_equal(set_up_manual(state), 0);
		listen_somewhere(&name);
		own(&owner, &name);
		shunt_file_listening(engine, listener);
		welcome(&owner);
		accept_one(fds);
		have.tuple = tuple;
		memcpy(have.invitation.device, "none", sizeof("none"));
		if (wrong == 1)
			have.tuple.local_port ^= 1;
		if (wrong == 2)
			memset(have.invitation.device, 'x', sizeof(have.invitation.device));
		if (wrong == 3)
			have.type = SHUNT_HAVE_INVITE + 1;
		invite(&owner, &have);
		assert_int_equal(is_joined(), !wrong);
		end(&owner);
		close_all(fds);
	}
}

/* A connection of another port each time: the test has it, and the owner is ours. */
static void tell_next(int fd)
{
	struct shunt_have have = { .type = SHUNT_HAVE_TUPLE };

	tuple.peer_port++;
	have.tuple = tuple;
	assert_int_equal(shunt_listener_message_send(engine, fd, &have), 0);
	step();
}

static bool finds_last(void)
{
	struct shunt_tuple claimed = shunt_tuple_reverse(&tuple);
	struct shunt_worker worker;

	return shunt_listener_owner_find(engine->service, &claimed, &worker);
}

/* The owner forgets the oldest of those in one bucket, and writes nowhere else. */
static void last_one_is_remembered(void **state)
{
	struct shunt_have join = { .type = SHUNT_HAVE_JOIN };
	struct shunt_name name, have;
	int fds[2], fd;
	bool strange;

	(void)state;
	engine->config.claim_ms = 1000000;
	listen_somewhere(&name);
	shunt_file_listening(engine, listener);
	for (int i = 0; i < STEPS && rendezvous()->worker_fd < 0; i++)
		step();
	accept_one(fds);
	shunt_rendezvous_workers(&name, &have);
	fd = shunt_rendezvous_knock(engine, &have, &strange);
	assert_true(fd >= 0);
	assert_int_equal(shunt_listener_message_send(engine, fd, &join), 0);
	step();
	for (int i = 0; i < 4096; i++)
		tell_next(fd);
	for (int i = 0; i < 512; i++) {
		tell_next(fd);
		assert_true(finds_last());
		for (int j = 0; j < 8; j++)
			tell_next(fd);
	}
	shunt_own_fds_close(&engine->fds, fd);
	close_all(fds);
	engine->config.claim_ms = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(last_one_is_remembered, set_up_manual),
		cmocka_unit_test_setup(next_owner_is_told, set_up_manual),
		cmocka_unit_test(invitations_are_looked_at),
		cmocka_unit_test_setup(joiner_takes_over, set_up_manual),
		cmocka_unit_test_setup(owner_that_hangs_up_is_left_alone, set_up_manual),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
