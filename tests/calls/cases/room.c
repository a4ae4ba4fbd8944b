/* SPDX-License-Identifier: MIT */
/* How much a connection takes that nobody reads. Amounts differ, so the transcript has none. */
#include "cases.h"

#include <sched.h>

#define ROUND 3000000	/* bytes: less than tcp_wmem lets a socket's send buffer take */
#define LITTLE 65536	/* a send buffer */

/* Blocking: everything goes in. */
static void send_all(struct end *e, size_t bytes)
{
	static char buf[1 << 16];
	ssize_t got = 1;

	while (bytes && got > 0) {
		got = send(e->fd, buf, bytes < sizeof(buf) ? bytes : sizeof(buf), MSG_NOSIGNAL);
		bytes -= got > 0 ? (size_t)got : 0;
	}
	say(e, "%zu bytes left: %s", bytes, got > 0 ? "all sent" : strerror(errno));
}

static void read_all(struct end *e, size_t bytes)
{
	static char buf[1 << 16];
	ssize_t got = 1;

	while (bytes && got > 0) {
		got = recv(e->fd, buf, bytes < sizeof(buf) ? bytes : sizeof(buf), 0);
		bytes -= got > 0 ? (size_t)got : 0;
	}
	say(e, "%zu bytes left: %s", bytes, got > 0 ? "all read" : got ? strerror(errno) : "end");
}

/* Both send before they read, three times. */
static void both_first(struct end *e)
{
	for (int i = 0; i < 3; i++) {
		send_all(e, ROUND);
		read_all(e, ROUND);
	}
	meet(e);
}

/* The peer reads nothing before everything has been sent, and the end behind it. */
static void unread(struct end *e)
{
	meet(e);
	send_all(e, ROUND);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	show(e, e->fd, 10, 0);
}

static void unread_peer(struct end *e)
{
	meet(e);
	meet(e);
	read_all(e, ROUND);
	show(e, e->fd, 10, 0);
	put(e, e->fd, "read");
}

/* The same, and the sender has closed its end and is gone. */
static void left(struct end *e)
{
	meet(e);
	send_all(e, ROUND);
	TRY(e, close(e->fd));
	meet(e);
}

static void left_peer(struct end *e)
{
	meet(e);
	meet(e);
	read_all(e, ROUND);
	show(e, e->fd, 10, 0);
}

/* Until nothing more goes in. */
static void fill(struct end *e)
{
	static char buf[1 << 16];
	int refused = 0;

	nonblock(e, e->fd, 1);
	while (refused < 3) {
		struct pollfd pfd = {.fd = e->fd, .events = POLLOUT};

		if (send(e->fd, buf, sizeof(buf), MSG_NOSIGNAL) > 0 || poll(&pfd, 1, settle()) > 0)
			refused = 0;
		else
			refused++;
	}
	nonblock(e, e->fd, 0);
}

struct sender {
	struct end *e;
	_Atomic pid_t tid;
	long sent;
};

static void *send_one(void *arg)
{
	struct sender *sender = arg;

	sender->tid = gettid();
	sender->sent = send(sender->e->fd, "y", 1, MSG_NOSIGNAL);
	return NULL;
}

/* A sender without room goes on when another thread sets a larger buffer, though nobody reads. */
static void buffer_grows(struct end *e)
{
	struct sender sender = {.e = e};
	pthread_t thread;

	SET(e->fd, SOL_SOCKET, SO_SNDBUF, LITTLE);
	fill(e);
	ready(e, "poll", e->fd);
	MUST(e, -pthread_create(&thread, NULL, send_one, &sender));
	while (!sender.tid)
		sched_yield();
	asleep(e, sender.tid);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, LITTLE * 16);
	MUST(e, -pthread_join(thread, NULL));
	say(e, "%ld", sender.sent);
	ready(e, "poll", e->fd);
	meet(e);
}

/* poll() reports the larger buffer, too. */
static void buffer_grows_polled(struct end *e)
{
	struct pollfd pfd = {.fd = e->fd, .events = POLLOUT};

	SET(e->fd, SOL_SOCKET, SO_SNDBUF, LITTLE);
	fill(e);
	SET(e->fd, SOL_SOCKET, SO_SNDBUF, LITTLE * 16);
	TRY(e, poll(&pfd, 1, -1));
	bits(e, "poll", pfd.revents);
	TRY(e, send(e->fd, "y", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
	meet(e);
}

const struct test cases_room[] = {
	{"room_both_first", 0, both_first, both_first},
	{"room_unread", 0, unread, unread_peer},
	{"room_left", PROCS, left, left_peer},
	{"room_buffer_grows", 0, buffer_grows, meet_only},
	{"room_buffer_grows_polled", 0, buffer_grows_polled, meet_only},
	{NULL, 0, NULL, NULL},
};
