/* SPDX-License-Identifier: MIT */
/* Ways to connect, and what connect says when it is asked again. */
#include "cases.h"

static struct sockaddr *sa(struct end *e)
{
	return (struct sockaddr *)&e->addr;
}

static int new_socket(struct end *e, int type)
{
	return MUST(e, socket(e->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | type, 0));
}

static uint16_t port_of(const struct sockaddr_storage *s)
{
	return s->ss_family == AF_INET6 ? ((struct sockaddr_in6 *)s)->sin6_port :
					  ((struct sockaddr_in *)s)->sin_port;
}

static void names(struct end *e, int fd)
{
	struct sockaddr_storage me, you;
	socklen_t a = sizeof(me), b = sizeof(you);
	char text[64] = "";
	uint16_t port = port_of(&e->addr);

	TRY(e, getsockname(fd, (struct sockaddr *)&me, &a));
	TRY(e, getpeername(fd, (struct sockaddr *)&you, &b));
	if (you.ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&you)->sin6_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET, &((struct sockaddr_in *)&you)->sin_addr, text, sizeof(text));
	say(e, "family %d, lengths %u %u, peer address %s", me.ss_family, a, b, text);
	say(e, "the listener's port is %s", port_of(&me) == port ? "mine" : "not mine");
	say(e, "the listener's port is %s", port_of(&you) == port ? "the peer's" : "not the peer's");
}

static void answer_peer(struct end *e)
{
	int fd = pick_up(e);
	char buf[5];

	names(e, fd);
	warm(e, fd);
	get(e, fd, buf, 5);
	put(e, fd, "world");
	drain(e, fd);
	close(fd);
}

static void blocking(struct end *e)
{
	int fd = new_socket(e, 0);

	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, connect(fd, sa(e), e->addrlen));
	names(e, fd);
	so_error(e, fd);
	warm(e, fd);
	put(e, fd, "hello");
	show(e, fd, 5, MSG_WAITALL);
	names(e, fd);
	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, close(fd));
}

static void nonblocking(struct end *e)
{
	int fd = new_socket(e, SOCK_NONBLOCK);

	TRY(e, connect(fd, sa(e), e->addrlen));
	bits(e, "poll", polled(fd, POLLIN | POLLOUT, -1));
	so_error(e, fd);
	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, connect(fd, sa(e), e->addrlen));
	nonblock(e, fd, 0);
	warm(e, fd);
	put(e, fd, "hello");
	show(e, fd, 5, MSG_WAITALL);
	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, close(fd));
}

/* hiredis learns the outcome from the second connect alone. */
static void second_connect(struct end *e)
{
	int fd = new_socket(e, SOCK_NONBLOCK);

	TRY(e, connect(fd, sa(e), e->addrlen));
	bits(e, "poll", polled(fd, POLLOUT, -1));
	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, send(fd, "hello", 5, 0));
	nonblock(e, fd, 0);
	TRY(e, connect(fd, sa(e), e->addrlen));
	show(e, fd, 5, MSG_WAITALL);
	close(fd);
}

static void plain_peer(struct end *e)
{
	int fd = pick_up(e);

	show(e, fd, 5, MSG_WAITALL);
	put(e, fd, "world");
	drain(e, fd);
	close(fd);
}

/* A listener whose queue is full leaves the next connection half made. */
static void pending(struct end *e)
{
	int l = MUST(e, socket(AF_INET, SOCK_STREAM, 0)), fd[8];
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(e, bind(l, (struct sockaddr *)&a, len));
	MUST(e, listen(l, 0));
	MUST(e, getsockname(l, (struct sockaddr *)&a, &len));
	for (int i = 0; i < 8; i++) {
		fd[i] = MUST(e, socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		connect(fd[i], (struct sockaddr *)&a, len);
	}
	TRY(e, connect(fd[7], (struct sockaddr *)&a, len));
	bits(e, "poll", polled(fd[7], POLLIN | POLLOUT, 0));
	TRY(e, send(fd[7], "x", 1, MSG_NOSIGNAL));
	TRY(e, recv(fd[7], &len, 1, 0));
	so_error(e, fd[7]);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	close(l);
}

static void nobody(struct end *e)
{
	int l = make_listener(e, 0);

	close(l);
}

static void refused(struct end *e)
{
	int fd;
	char c;

	nobody(e);
	fd = new_socket(e, 0);
	TRY(e, connect(fd, sa(e), e->addrlen));
	so_error(e, fd);
	bits(e, "poll", polled(fd, POLLIN | POLLOUT, 0));
	TRY(e, connect(fd, sa(e), e->addrlen));
	TRY(e, recv(fd, &c, 1, 0));
	TRY(e, send(fd, &c, 1, MSG_NOSIGNAL));
	close(fd);
}

static void refused_nonblocking(struct end *e)
{
	int fd;
	long r;

	nobody(e);
	fd = new_socket(e, SOCK_NONBLOCK);
	r = connect(fd, sa(e), e->addrlen);
	if (r < 0 && errno == EINPROGRESS)
		bits(e, "poll", polled(fd, POLLIN | POLLOUT | POLLRDHUP, -1) & ~POLLIN);
	else
		bits(e, "poll", POLLOUT | POLLERR | POLLHUP | POLLRDHUP);
	say(e, "refused");
	so_error(e, fd);
	so_error(e, fd);
	close(fd);
}

static void unconnected(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char c = 0;

	count_sigpipe(e);
	TRY(e, recv(fd, &c, 1, 0));
	TRY(e, read(fd, &c, 1));
	TRY(e, recv(fd, &c, 1, MSG_DONTWAIT));
	TRY(e, send(fd, &c, 1, 0));
	TRY(e, write(fd, &c, 1));
	TRY(e, send(fd, &c, 1, MSG_NOSIGNAL));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, shutdown(fd, SHUT_WR));
	TRY(e, getpeername(fd, (struct sockaddr *)&a, &len));
	TRY(e, getsockname(fd, (struct sockaddr *)&a, &len));
	TRY(e, accept(fd, NULL, NULL));
	ready(e, "poll", fd);
	close(fd);
}

static void bad_addresses(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(1)};
	struct sockaddr_in u = {.sin_family = 77, .sin_port = htons(1)};

	TRY(e, connect(fd, (struct sockaddr *)&a, 4));
	TRY(e, connect(fd, (struct sockaddr *)&u, sizeof(u)));
	TRY(e, connect(fd, NULL, sizeof(a)));
	TRY(e, connect(fd, (struct sockaddr *)&a, 4000));
	TRY(e, connect(-1, (struct sockaddr *)&a, sizeof(a)));
	TRY(e, connect(1, (struct sockaddr *)&a, sizeof(a)));
	close(fd);
}

static void to_itself(struct end *e)
{
	int l = make_listener(e, 0), fd = dial(e), c;

	e->lfd = l;
	c = pick_up(e);
	for (int i = 0; i < 100; i++) {
		put(e, fd, "ping");
		arrived(e, c, 4);
		if (!i)
			show(e, c, 100, 0);
		else
			recv(c, &(char[4]){0}, 4, 0);
		put(e, c, "pong!");
		if (i > 97)
			show(e, fd, 5, MSG_WAITALL);
		else
			get(e, fd, &(char[5]){0}, 5);
	}
	TRY(e, close(fd));
	drain(e, c);
	close(c);
	close(l);
}

/* One socket, both ends: bound, then connected to its own address. */
static void to_own_port(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	struct sockaddr_in a = {.sin_family = AF_INET};
	socklen_t len = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(e, bind(fd, (struct sockaddr *)&a, len));
	MUST(e, getsockname(fd, (struct sockaddr *)&a, &len));
	TRY(e, connect(fd, (struct sockaddr *)&a, len));
	for (int i = 0; i < 3; i++) {
		TRY(e, send(fd, "echo", 4, 0));
		show(e, fd, 4, MSG_WAITALL);
	}
	TRY(e, shutdown(fd, SHUT_WR));
	show(e, fd, 4, 0);
	close(fd);
}

/* connect(AF_UNSPEC) undoes a connection; the peer sees a reset. */
static void dissolve(struct end *e)
{
	struct sockaddr u = {.sa_family = AF_UNSPEC};
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char c;

	put(e, e->fd, "hello");
	meet(e);
	TRY(e, connect(e->fd, &u, sizeof(u)));
	meet(e);
	TRY(e, getpeername(e->fd, (struct sockaddr *)&a, &len));
	TRY(e, recv(e->fd, &c, 1, 0));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	if (!e->client)
		return;
	TRY(e, connect(e->fd, sa(e), e->addrlen));
	put(e, e->fd, "again");
	show(e, e->fd, 5, MSG_WAITALL);
}

static void dissolve_peer(struct end *e)
{
	int fd;

	arrived(e, e->fd, 5);
	meet(e);
	meet(e);
	ended(e, e->fd, POLLERR | POLLHUP);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, 0);
	if (e->client)
		return;
	fd = pick_up(e);
	show(e, fd, 5, MSG_WAITALL);
	put(e, fd, "there");
	close(fd);
}

const struct test cases_connect[] = {
	{"connect_blocking", RAW, blocking, answer_peer},
	{"connect_blocking_v6", RAW | IPV6, blocking, answer_peer},
	{"connect_blocking_dual", RAW | DUAL, blocking, answer_peer},
	{"connect_nonblocking", RAW, nonblocking, answer_peer},
	{"connect_second", RAW, second_connect, plain_peer},
	{"connect_pending", ALONE, pending, NULL},
	{"connect_refused", ALONE, refused, NULL},
	{"connect_refused_nonblocking", ALONE, refused_nonblocking, NULL},
	{"connect_unconnected", ALONE, unconnected, NULL},
	{"connect_bad_addresses", ALONE, bad_addresses, NULL},
	{"connect_to_itself", ALONE, to_itself, NULL},
	{"connect_to_own_port", ALONE, to_own_port, NULL},
	{"connect_dissolve", 0, dissolve, dissolve_peer},
	{NULL, 0, NULL, NULL},
};
