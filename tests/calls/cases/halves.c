/* SPDX-License-Identifier: MIT */
/* The two halves of a connection, each ended by itself; closing with something left. */
#include "cases.h"

#include <sys/epoll.h>

static void states(struct end *e)
{
	ready(e, "new", e->fd);
	TRY(e, shutdown(e->fd, SHUT_RD));
	ready(e, "RD", e->fd);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	ready(e, "RD and WR", e->fd);
	meet(e);
	ended(e, e->fd, POLLHUP);
	ready(e, "both ends", e->fd);
	TRY(e, shutdown(e->fd, SHUT_RD));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, shutdown(e->fd, SHUT_RDWR));
}

static void states_peer(struct end *e)
{
	ended(e, e->fd, POLLRDHUP);
	ready(e, "the other's WR", e->fd);
	meet(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
}

/* Bytes from before the shutdown, and those after it, can both be read. */
static void read_after_rd(struct end *e)
{
	put(e, e->fd, "go");
	arrived(e, e->fd, 6);
	TRY(e, shutdown(e->fd, SHUT_RD));
	show(e, e->fd, 3, 0);
	show(e, e->fd, 3, 0);
	show(e, e->fd, 3, 0);
	meet(e);
	TRY(e, send(e->fd, "still", 5, 0));
	meet(e);
}

static void read_after_rd_peer(struct end *e)
{
	show(e, e->fd, 2, MSG_WAITALL);
	put(e, e->fd, "before");
	meet(e);
	show(e, e->fd, 5, MSG_WAITALL);
	meet(e);
}

static void late_after_rd(struct end *e)
{
	TRY(e, shutdown(e->fd, SHUT_RD));
	show(e, e->fd, 5, 0);
	meet(e);
	have(e, 4);
	show(e, e->fd, 5, 0);
	show(e, e->fd, 5, 0);
	TRY(e, send(e->fd, "echo", 4, 0));
	arrived(e, e->fd, 4);
	show(e, e->fd, 5, 0);
	shutdown(e->fd, SHUT_WR);
}

static void late_after_rd_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "late");
	meet(e);
	echo_peer(e);
}

/* Everything after the own end is refused, whatever the call. */
static void refused_after_wr(struct end *e)
{
	struct iovec v = {.iov_base = "abc", .iov_len = 3};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	count_sigpipe(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, write(e->fd, "abc", 3));
	TRY(e, writev(e->fd, &v, 1));
	TRY(e, send(e->fd, "abc", 3, 0));
	TRY(e, sendto(e->fd, "abc", 3, 0, NULL, 0));
	TRY(e, sendmsg(e->fd, &m, 0));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, send(e->fd, "abc", 3, MSG_NOSIGNAL | MSG_DONTWAIT));
	TRY(e, send(e->fd, "abc", 3, MSG_NOSIGNAL | MSG_MORE));
	say(e, "%d SIGPIPE", sigpipes());
	so_error(e, e->fd);
	show(e, e->fd, 5, MSG_WAITALL);
	show(e, e->fd, 5, 0);
}

static void refused_after_wr_peer(struct end *e)
{
	show(e, e->fd, 5, 0);
	put(e, e->fd, "fine!");
	shutdown(e->fd, SHUT_WR);
}

/* Much is on its way when the end is said: it all comes first. */
static void much_before_end(struct end *e)
{
	tell(e);
	send_pattern(e, e->fd, 0, 700000, 33333);
	TRY(e, shutdown(e->fd, SHUT_WR));
	recv_pattern(e, e->fd, 0, 500000, 40000);
	show(e, e->fd, 1, 0);
}

static void *sends(void *arg)
{
	struct end *e = arg;

	send_pattern(e, e->fd, 0, 500000, 11111);
	shutdown(e->fd, SHUT_WR);
	return NULL;
}

static void much_before_end_peer(struct end *e)
{
	pthread_t t;

	await(e);
	pthread_create(&t, NULL, sends, e);
	recv_pattern(e, e->fd, 0, 700000, 50000);
	show(e, e->fd, 1, 0);
	pthread_join(t, NULL);
}

/* close() with everything read is a quiet end, with something unread a reset. */
static void close_read(struct end *e)
{
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
	TRY(e, close(e->fd));
	meet(e);
}

static void close_part(struct end *e)
{
	show(e, e->fd, 2, MSG_WAITALL);
	meet(e);
	TRY(e, close(e->fd));
	meet(e);
}

static void close_peer(struct end *e)
{
	abc_peer(e);
	ended(e, e->fd, POLLRDHUP | POLLHUP);
	show(e, e->fd, 3, 0);
	so_error(e, e->fd);
	show(e, e->fd, 3, 0);
}

/* The answer was sent before the close with unread data: the reset may overtake it, the order not. */
static void close_answered(struct end *e)
{
	arrived(e, e->fd, 3);
	put(e, e->fd, "answer");
	meet(e);
	TRY(e, close(e->fd));
	meet(e);
}

static void close_answered_peer(struct end *e)
{
	put(e, e->fd, "abc");
	arrived(e, e->fd, 6);
	meet(e);
	meet(e);
	ended(e, e->fd, POLLHUP);
	show(e, e->fd, 6, 0);
	show(e, e->fd, 6, 0);
	show(e, e->fd, 6, 0);
}

static void linger(struct end *e, int seconds)
{
	struct linger l = {.l_onoff = 1, .l_linger = seconds};

	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
}

static void linger_zero(struct end *e)
{
	put(e, e->fd, "abc");
	meet(e);
	linger(e, 0);
	TRY(e, close(e->fd));
	meet(e);
}

static void linger_zero_peer(struct end *e)
{
	arrived(e, e->fd, 3);
	meet(e);
	meet(e);
	ended(e, e->fd, POLLERR | POLLHUP);
	show(e, e->fd, 3, 0);
	show(e, e->fd, 3, 0);
	show(e, e->fd, 3, 0);
}

/* Waits until the other end has everything. */
static void linger_long(struct end *e)
{
	double from = now();

	send_pattern(e, e->fd, 0, 100000, 10000);
	linger(e, 5);
	TRY(e, close(e->fd));
	say(e, "in time %d", now() - from < 4);
	meet(e);
}

static void linger_long_peer(struct end *e)
{
	recv_pattern(e, e->fd, 0, 100000, 10000);
	show(e, e->fd, 1, 0);
	meet(e);
}

/* shutdown() before close() with linger 0: the end may still be followed by a reset. */
static void linger_get(struct end *e)
{
	struct linger l = {.l_onoff = 5, .l_linger = 7};
	socklen_t len = sizeof(l);

	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say(e, "%d %d %u", l.l_onoff, l.l_linger, len);
	linger(e, 9);
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say(e, "%d %d %u", l.l_onoff, l.l_linger, len);
	l.l_onoff = 0;
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(int)));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say(e, "%d %d %u", l.l_onoff, l.l_linger, len);
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
}

/* Sockets without a connection, and listeners. */
static void unconnected(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0)), l = make_listener(e, 0);

	for (int how = 0; how < 4; how++) {
		TRY(e, shutdown(fd, how));
		bits(e, "new", polled(fd, POLLIN | POLLOUT, 0));
	}
	for (int how = 0; how < 3; how++) {
		TRY(e, shutdown(l, how));
		bits(e, "listener", polled(l, POLLIN | POLLOUT, 0));
	}
	TRY(e, accept4(l, NULL, NULL, SOCK_NONBLOCK));
	TRY(e, listen(l, 5));
	MUST(e, getsockname(l, (struct sockaddr *)&e->addr, &e->addrlen));	/* another port */
	close(dial(e));
	TRY(e, close(accept(l, NULL, NULL)));
	close(fd);
	close(l);
}

/* Both ends at the same moment. */
static void at_once(struct end *e)
{
	put(e, e->fd, "bye");
	meet(e);
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 3, MSG_WAITALL);
	show(e, e->fd, 3, 0);
	ended(e, e->fd, POLLHUP);
	ready(e, "in the end", e->fd);
	so_error(e, e->fd);
	TRY(e, close(e->fd));
}

/* A set sees each half go, one event at a time. */
static void seen_by_set(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLRDHUP);

	wait_on(e, ep, 0);
	TRY(e, shutdown(e->fd, SHUT_RD));
	wait_on(e, ep, -1);
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
	meet(e);
	ended(e, e->fd, POLLHUP);
	wait_on(e, ep, -1);
	close(ep);
}

static void seen_by_set_peer(struct end *e)
{
	meet(e);
	show(e, e->fd, 1, 0);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* The reader's end does not stop the writer; closing it does. */
static void write_to_rd(struct end *e)
{
	meet(e);
	TRY(e, send(e->fd, "one", 3, 0));
	meet(e);
	TRY(e, send(e->fd, "two", 3, 0));
	meet(e);
	ended(e, e->fd, POLLHUP);
	count_sigpipe(e);
	show(e, e->fd, 1, 0);
	TRY(e, send(e->fd, "three", 5, 0));
	say(e, "%d SIGPIPE", sigpipes());
}

static void write_to_rd_peer(struct end *e)
{
	TRY(e, shutdown(e->fd, SHUT_RD));
	have(e, 3);
	show(e, e->fd, 10, 0);
	have(e, 3);
	TRY(e, close(e->fd));
	meet(e);
}

const struct test cases_halves[] = {
	{"half_states", 0, states, states_peer},
	{"half_read_after_rd", 0, read_after_rd, read_after_rd_peer},
	{"half_late_after_rd", 0, late_after_rd, late_after_rd_peer},
	{"half_refused_after_wr", 0, refused_after_wr, refused_after_wr_peer},
	{"half_much_before_end", 0, much_before_end, much_before_end_peer},
	{"half_close_read", 0, close_read, close_peer},
	{"half_close_part", 0, close_part, close_peer},
	{"half_close_answered", 0, close_answered, close_answered_peer},
	{"half_linger_zero", 0, linger_zero, linger_zero_peer},
	{"half_linger_long", 0, linger_long, linger_long_peer},
	{"half_linger_get", 0, linger_get, echo_peer},
	{"half_unconnected", ALONE, unconnected, NULL},
	{"half_at_once", 0, at_once, at_once},
	{"half_seen_by_set", 0, seen_by_set, seen_by_set_peer},
	{"half_write_to_rd", 0, write_to_rd, write_to_rd_peer},
	{NULL, 0, NULL, NULL},
};
