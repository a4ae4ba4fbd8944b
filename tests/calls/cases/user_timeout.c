/* SPDX-License-Identifier: MIT */
/* TCP_USER_TIMEOUT: bytes that the peer does not take in time end the connection. */
#include "cases.h"

#include <sys/epoll.h>

#define PATIENCE 1500	/* ms */

/* Not long before its time, nor long after. */
static void took(struct end *e, double start)
{
	double t = (now() - start) * 1e3;

	say(e, "%s", t < PATIENCE * 3 / 4 ? "too early" : t > PATIENCE * 4 + 500 ? "too late" : "in time");
}

/*
 * Until nothing more goes in; once may be because the receiver's window was just growing. When the last that did began. On a
 * busy machine the time may be over by then.
 */
static double fill(struct end *e)
{
	static char buf[1 << 16];
	int refused = 0;
	double since = 0, before;

	nonblock(e, e->fd, 1);
	while (refused < 3) {
		struct pollfd pfd = {.fd = e->fd, .events = POLLOUT};

		before = now();
		if (send(e->fd, buf, sizeof(buf), MSG_NOSIGNAL) <= 0 &&
		    poll(&pfd, 1, settle()) <= 0) {
			refused++;
			continue;
		}
		if (pfd.revents & POLLHUP)
			break;
		refused = 0;
		since = before;
	}
	return since;
}

static void set_patience(struct end *e)
{
	SET(e->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, PATIENCE);
	GET(e->fd, IPPROTO_TCP, TCP_USER_TIMEOUT);
}

static void after(struct end *e)
{
	ready(e, "poll", e->fd);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	ready(e, "poll", e->fd);
	TRY(e, shutdown(e->fd, SHUT_RDWR));
}

static void polled_for(struct end *e)
{
	double since;

	set_patience(e);
	since = fill(e);
	ended(e, e->fd, POLLHUP);
	took(e, since);
	after(e);
	tell(e);
}

static void with_bytes(struct end *e)
{
	have(e, 4);
	set_patience(e);
	fill(e);
	ended(e, e->fd, POLLHUP);
	so_error(e, e->fd);
	so_error(e, e->fd);
	after(e);
	tell(e);
}

static void with_bytes_peer(struct end *e)
{
	put(e, e->fd, "left");
	meet(e);
	await(e);
}

static void blocked(struct end *e)
{
	struct job writer, reader;

	set_patience(e);
	job_sleeps(e, &reader, job_recv, e->fd);
	job_start(e, &writer, job_send, e->fd);
	job_join(e, &writer);
	job_join(e, &reader);
	say(e, "one of the two was told: %d", (writer.err == ETIMEDOUT) + (reader.result < 0 && reader.err == ETIMEDOUT));
	ready(e, "poll", e->fd);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	tell(e);
}

static void in_set(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLRDHUP);

	set_patience(e);
	fill(e);
	wait_on(e, ep, -1);
	so_error(e, e->fd);
	wait_on(e, ep, 0);
	after(e);
	tell(e);
}

/* A peer that takes some now and then is patient enough. */
static void taken(struct end *e)
{
	set_patience(e);
	fill(e);
	for (int i = 0; i < 4; i++) {
		tell(e);
		await(e);
		bits(e, "poll", polled(e->fd, POLLOUT, -1));
		fill(e);
	}
	bits(e, "poll", polled(e->fd, POLLRDHUP, 0));
	so_error(e, e->fd);
	tell(e);
}

static void taken_peer(struct end *e)
{
	static char buf[1 << 16];

	for (int i = 0; i < 4; i++) {
		await(e);
		while (polled(e->fd, POLLIN, settle()))
			MUST(e, recv(e->fd, buf, sizeof(buf), 0));
		tell(e);
	}
	await(e);
}

/* Nobody who has nothing to send has to be patient. */
static void idle(struct end *e)
{
	set_patience(e);
	ask(e, e->fd);
	bits(e, "poll", polled(e->fd, POLLIN | POLLRDHUP, 2 * PATIENCE));
	ask(e, e->fd);
	TRY(e, shutdown(e->fd, SHUT_WR));
}

const struct test cases_user_timeout[] = {
	{"user_timeout_polled_for", 0, polled_for, await},
	{"user_timeout_with_bytes", 0, with_bytes, with_bytes_peer},
	{"user_timeout_blocked", 0, blocked, await},
	{"user_timeout_in_set", 0, in_set, await},
	{"user_timeout_taken", 0, taken, taken_peer},
	{"user_timeout_idle", 0, idle, echo_peer},
	{NULL, 0, NULL, NULL},
};
