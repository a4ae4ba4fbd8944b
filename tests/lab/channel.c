/* SPDX-License-Identifier: MIT */
/*
 * Link channels over TCP across the lab's cable (guest/channel.sh), and what becomes of them when the other
 * end of it is silent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/engine.h"
#include "core/peer/remote_listener.h"

#define MS 1000000ull
#define SILENCE 4000	/* ms */
#define LATE 100000	/* ms more: only what hangs takes so long */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static const struct shunt_sys sys = {
	.now = now, .sendmsg = sendmsg, .recvmsg = recvmsg, .setsockopt = setsockopt,
	.getsockopt = getsockopt, .getsockname = getsockname, .shutdown = shutdown, .fcntl = fcntl,
	.socket = socket, .bind = bind, .listen = listen, .accept4 = accept4, .connect = connect,
	.close = close, .epoll_create1 = epoll_create1, .epoll_ctl = epoll_ctl, .epoll_pwait = epoll_pwait,
	.getrandom = getrandom,
};

static struct shunt_engine *engine;
static struct shunt_remote_listener gate;
static struct shunt_channel near, far;
static int let_in;

static void note_in(void *arg, void *ticket, int fd)
{
	(void)arg;
	(void)ticket;
	let_in = fd;
}

static void note_expired(void *arg, void *ticket)
{
	(void)arg;
	(void)ticket;
}

static struct sockaddr_in at(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = port };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static void say(struct shunt_channel *channel)
{
	struct shunt_message message = { .type = SHUNT_MSG_HELLO, .hello.magic = SHUNT_WIRE_MAGIC };

	assert_int_equal(shunt_channel_send(channel, &message, NULL, 0), 0);
}

/* The next message or the end, and how many ms it took. */
static int hear(struct shunt_channel *channel, uint64_t *ms)
{
	uint64_t since = now();
	struct shunt_message message;
	int fds[SHUNT_CHANNEL_FDS], count, result = 0;

	while (!result && now() - since < (SILENCE + LATE) * MS) {
		struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

		poll(&pfd, 1, 100);
		shunt_channel_flush(channel);
		result = shunt_channel_receive(channel, &message, fds, &count);
	}
	*ms = (now() - since) / MS;
	return result;
}

/* Cut, packets vanish in either direction. */
static void cable(const char *verb)
{
	char command[128];

	snprintf(command, sizeof(command), "for v in v0 v1; do tc qdisc %s dev $v root netem loss 100%%; done", verb);
	assert_int_equal(system(command), 0);
}

static bool is_cut;

static void cut(void)
{
	cable("add");
	is_cut = true;
}

static int set_up(void **state)
{
	struct sockaddr_in here = at("10.77.0.1", 0), there = at("10.77.0.2", 99);
	uint8_t cookie[SHUNT_COOKIE_BYTES];
	uint64_t ms;

	(void)state;
	let_in = -1;
	gate = (struct shunt_remote_listener) { .engine = engine, .patience = 5000 * MS, .silence_ms = SILENCE,
				     .let_in = note_in, .expired = note_expired };
	assert_int_equal(shunt_remote_listener_open(&gate, (struct sockaddr *)&there), 0);
	there.sin_port = gate.port;
	assert_int_equal(shunt_remote_listener_expect(&gate, &gate, cookie), 0);
	assert_int_equal(shunt_channel_connect(&near, &engine->links, (struct sockaddr *)&here,
					       (struct sockaddr *)&there, cookie, SILENCE),
			 0);
	say(&near);
	for (int i = 0; i < 6000 && let_in < 0; i++) {
		poll(&(struct pollfd) { .fd = near.fd, .events = POLLOUT }, 1, 10);
		shunt_channel_flush(&near);
		poll(&(struct pollfd) { .fd = gate.fd, .events = POLLIN }, 1, 10);
		shunt_remote_listener_step(&gate);
	}
	assert_true(let_in >= 0);
	shunt_channel_init(&far, &engine->links, SHUNT_CHANNEL_TCP, let_in);
	assert_int_equal(hear(&far, &ms), 1);
	say(&far);
	assert_int_equal(hear(&near, &ms), 1);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	shunt_channel_close(&near);
	shunt_channel_close(&far);
	shunt_remote_listener_close(&gate);
	if (is_cut)
		cable("del");
	is_cut = false;
	return 0;
}

/* Nothing but silence can be why. */
static void ends(struct shunt_channel *channel, const char *what)
{
	uint64_t ms;
	int result = hear(channel, &ms);

	print_message("# %s: %s after %llu ms\n", what, strerror(-result), (unsigned long long)ms);
	assert_true(result < 0);
	assert_int_not_equal(result, -EPROTO);
}

static void lives_on_when_nothing_is_said(void **state)
{
	uint64_t ms;

	(void)state;
	sleep(2 * SILENCE / 1000);
	say(&near);
	assert_int_equal(hear(&far, &ms), 1);
}

static void an_idle_one_ends(void **state)
{
	(void)state;
	cut();
	ends(&far, "idle");
}

static void one_that_waits_for_an_acknowledgement_ends(void **state)
{
	(void)state;
	cut();
	say(&near);
	ends(&near, "unacknowledged");
}

static void connecting_ends(void **state)
{
	struct sockaddr_in nobody = at("10.77.0.50", htons(7000));
	uint8_t cookie[SHUNT_COOKIE_BYTES] = { 0 };

	(void)state;
	shunt_channel_close(&near);
	assert_int_equal(shunt_channel_connect(&near, &engine->links, NULL,
					       (struct sockaddr *)&nobody, cookie, SILENCE),
			 0);
	say(&near);
	ends(&near, "connecting");
}

/* A peer process that reads nothing, while there is more to say than fits. */
static void one_that_reads_nothing_ends(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++)
		say(&near);
	assert_true(shunt_channel_waits(&near));
	ends(&near, "the peer reads nothing");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static struct shunt_config config;
	const struct CMUnitTest tests[] = {
		TEST(lives_on_when_nothing_is_said),
		TEST(an_idle_one_ends),
		TEST(one_that_waits_for_an_acknowledgement_ends),
		TEST(connecting_ends),
		TEST(one_that_reads_nothing_ends),
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	engine = shunt_engine_create(&config, &sys);
	return !engine || cmocka_run_group_tests(tests, NULL, NULL);
}
