/* SPDX-License-Identifier: MIT */
/* Calls by the names that a compiler chooses with _FORTIFY_SOURCE, and by glibc's second names of some. */
#include "cases.h"

#include <sys/resource.h>
#include <sys/select.h>

extern ssize_t __read_chk(int fd, void *buf, size_t len, size_t room);
extern ssize_t __recv_chk(int fd, void *buf, size_t len, size_t room, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags,
			      struct sockaddr *addr, socklen_t *addrlen);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room);
extern int __dprintf_chk(int fd, int flag, const char *fmt, ...);
extern ssize_t __read(int fd, void *buf, size_t len);
extern ssize_t __write(int fd, const void *buf, size_t len);
extern ssize_t __send(int fd, const void *buf, size_t len, int flags);
extern int __poll(struct pollfd *fds, nfds_t n, int timeout);
extern int __select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout);

static void fortified_receive(struct end *e)
{
	char buf[100];
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);

	have(e, 10);
	text(e, "__recv_chk PEEK", buf, __recv_chk(e->fd, buf, 4, sizeof(buf), MSG_PEEK));
	text(e, "__recv_chk", buf, __recv_chk(e->fd, buf, 2, 2, 0));
	text(e, "__read_chk", buf, __read_chk(e->fd, buf, 3, sizeof(buf)));
	text(e, "__recvfrom_chk", buf,
	     __recvfrom_chk(e->fd, buf, 1, sizeof(buf), 0, (struct sockaddr *)&a, &len));
	say(e, "address length %u", len);
	text(e, "__read_chk", buf, __read_chk(e->fd, buf, sizeof(buf), sizeof(buf)));
	TRY(e, __recv_chk(e->fd, buf, 1, sizeof(buf), MSG_DONTWAIT));
	meet(e);
	text(e, "__recvfrom_chk", buf,
	     __recvfrom_chk(e->fd, buf, 10, sizeof(buf), MSG_WAITALL, NULL, NULL));
}

static void ten_twice_peer(struct end *e)
{
	ten_peer(e);
	put(e, e->fd, "abcdefghij");
}

/* Nothing has come, and then something; the call waits for it. */
static void fortified_poll(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct timespec none = {0}, long_enough = {.tv_sec = 300};
	sigset_t mask;

	sigemptyset(&mask);
	TRY(e, __poll_chk(&p, 1, 0, sizeof(p)));
	TRY(e, __ppoll_chk(&p, 1, &none, &mask, sizeof(p)));
	meet(e);
	TRY(e, __poll_chk(&p, 1, 300000, sizeof(p)));
	bits(e, "__poll_chk", p.revents);
	p.revents = 0;
	TRY(e, __ppoll_chk(&p, 1, &long_enough, &mask, sizeof(p)));
	bits(e, "__ppoll_chk", p.revents);
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
}

static void abc_after_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	meet(e);
}

static void fortified_print(struct end *e)
{
	TRY(e, __dprintf_chk(e->fd, 1, "%s %d\n", "printed", 42));
	finish(e, e->fd);
}

static void until_end_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	close(e->fd);
}

/* The length is more than the buffer has: the C library ends the process, and takes nothing. */
static void fortified_too_long(struct end *e)
{
	const struct rlimit none = {0, 0};
	char buf[4];

	have(e, 10);
	for (int i = 0; i < 4; i++) {
		struct pollfd p = {.fd = e->fd, .events = POLLIN};
		pid_t pid = MUST(e, fork());

		if (!pid) {
			setrlimit(RLIMIT_CORE, &none);
			if (i == 0)
				__read_chk(e->fd, buf, hidden(5), sizeof(buf));
			else if (i == 1)
				__recv_chk(e->fd, buf, hidden(5), sizeof(buf), 0);
			else if (i == 2)
				__recvfrom_chk(e->fd, buf, hidden(5), sizeof(buf), 0, NULL, NULL);
			else
				__poll_chk(&p, hidden(2), 0, sizeof(p));
			_exit(0);
		}
		reap(e, pid);
	}
	show(e, e->fd, 100, 0);
	meet(e);
}

static void second_names(struct end *e)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };
	struct timeval none = { 0 };
	fd_set in;
	char buf[100];

	have(e, 10);
	TRY(e, __poll(&p, 1, -1));
	bits(e, "__poll", p.revents);
	FD_ZERO(&in);
	FD_SET(e->fd, &in);
	TRY(e, __select(e->fd + 1, &in, NULL, NULL, &none));
	say(e, "in it: %d", !!FD_ISSET(e->fd, &in));
	text(e, "__read", buf, __read(e->fd, buf, sizeof(buf)));
	TRY(e, __write(e->fd, "abc", 3));
	TRY(e, __send(e->fd, "def", 3, 0));
	meet(e);
}

static void second_names_peer(struct end *e)
{
	ten_peer(e);
	show(e, e->fd, 6, MSG_WAITALL);
}

const struct test cases_variants[] = {
	{"variant_fortified_receive", 0, fortified_receive, ten_twice_peer},
	{"variant_fortified_poll", 0, fortified_poll, abc_after_peer},
	{"variant_fortified_print", 0, fortified_print, until_end_peer},
	{"variant_fortified_too_long", PROCS, fortified_too_long, ten_peer},
	{"variant_second_names", 0, second_names, second_names_peer},
	{NULL, 0, NULL, NULL},
};
