/* SPDX-License-Identifier: MIT */
/* Several descriptors for one connection, and the flags that belong to which. */
#include "cases.h"

#include <sys/stat.h>

static void dups(struct end *e)
{
	int a = MUST(e, dup(e->fd)), b = MUST(e, dup2(e->fd, 200));
	int c = MUST(e, dup3(e->fd, 201, O_CLOEXEC)), d = MUST(e, fcntl(e->fd, F_DUPFD, 300));

	say(e, "%d %d %d", b, c, d);
	ask(e, a);
	TRY(e, close(e->fd));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	ask(e, b);
	TRY(e, close(a));
	ask(e, c);
	TRY(e, send(d, "half", 4, 0));
	show(e, c, 2, MSG_WAITALL);
	show(e, d, 2, MSG_WAITALL);
	say(e, "FD_CLOEXEC %d %d", fcntl(b, F_GETFD), fcntl(c, F_GETFD));
	close(c);
	close(d);
	TRY(e, dup2(b, b));
	TRY(e, dup3(b, b, 0));
	TRY(e, dup2(-1, 5));
	TRY(e, dup(199));
	ask(e, b);
	TRY(e, close(b));
	TRY(e, close(b));
}

/* dup2 over a connection closes it; the peer sees the end. */
static void dup_over(struct end *e)
{
	int null = MUST(e, open("/dev/null", O_RDWR)), old = e->fd;

	ask(e, e->fd);
	TRY(e, dup2(null, e->fd) == e->fd);
	TRY(e, write(old, "into nothing", 12));
	TRY(e, read(old, &(char){0}, 1));
	TRY(e, recv(old, &(char){0}, 1, 0));
	close(null);
}

/* One connection over another: the number now means the other one. */
static void dup_connection(struct end *e)
{
	int a = dial_warm(e), b = dial_warm(e);

	put(e, a, "A");
	put(e, b, "B");
	show(e, a, 1, 0);
	show(e, b, 1, 0);
	TRY(e, dup2(b, a) == a);
	put(e, a, "C");
	show(e, a, 1, 0);
	TRY(e, close(b));
	put(e, a, "D");
	show(e, a, 1, 0);
	TRY(e, close(a));
}

static void dup_connection_peer(struct end *e)
{
	int a = pick_up_warm(e), b = pick_up_warm(e);

	show(e, a, 1, 0);
	put(e, a, "a");
	show(e, b, 1, 0);
	put(e, b, "b");
	show(e, a, 1, 0);
	show(e, b, 1, 0);
	put(e, b, "c");
	show(e, b, 1, 0);
	put(e, b, "d");
	show(e, b, 1, 0);
}

/* O_NONBLOCK belongs to the connection, FD_CLOEXEC to the number. */
static void flags(struct end *e)
{
	int a = MUST(e, dup(e->fd)), on = 1, off = 0;

	say(e, "flags %o", fcntl(e->fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND));
	TRY(e, fcntl(e->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	say(e, "flags %o", fcntl(a, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND));
	TRY(e, recv(a, &(char){0}, 1, 0));
	TRY(e, ioctl(a, FIONBIO, &off));
	say(e, "flags %o", fcntl(e->fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND));
	TRY(e, ioctl(e->fd, FIONBIO, &on));
	TRY(e, read(a, &(char){0}, 1));
	TRY(e, ioctl(e->fd, FIONBIO, &off));
	TRY(e, fcntl(e->fd, F_SETFD, FD_CLOEXEC));
	TRY(e, fcntl(a, F_GETFD));
	TRY(e, ioctl(e->fd, FIOCLEX));
	TRY(e, ioctl(a, FIONCLEX));
	TRY(e, fcntl(e->fd, 12345));
	TRY(e, ioctl(e->fd, 0x12345678, &on));
	ask(e, a);
	shutdown(e->fd, SHUT_WR);
	show(e, a, 1, 0);
	close(a);
}

static void kinds(struct end *e)
{
	struct stat s;

	TRY(e, fstat(e->fd, &s));
	say(e, "a socket: %d", S_ISSOCK(s.st_mode));
	TRY(e, ftruncate(e->fd, 0));
	TRY(e, fsync(e->fd));
	TRY(e, isatty(e->fd));
	say(e, "ttyname %s", strerrorname_np(ttyname(e->fd) ? 0 : errno));
	TRY(e, fchmod(e->fd, 0600));
	TRY(e, listen(e->fd, 5));
	TRY(e, accept(e->fd, NULL, NULL));
	finish(e, e->fd);
}

/* A number given back and used for a file is a file. */
static void number_again(struct end *e)
{
	int file, old = e->fd;

	ask(e, e->fd);
	TRY(e, close(e->fd));
	file = MUST(e, open("/proc/self/comm", O_RDONLY));
	say(e, "same number: %d", file == old);
	TRY(e, recv(file, &(char){0}, 1, 0));
	say(e, "read %s", read(file, &(char){0}, 1) == 1 ? "works" : "fails");
	TRY(e, shutdown(file, SHUT_WR));
	close(file);
	TRY(e, recv(old, &(char){0}, 1, 0));
	TRY(e, fcntl(old, F_GETFL));
}

const struct test cases_fds[] = {
	{"fd_dup", 0, dups, echo_peer},
	{"fd_dup_over", 0, dup_over, echo_peer},
	{"fd_dup_connection", RAW, dup_connection, dup_connection_peer},
	{"fd_flags", 0, flags, echo_peer},
	{"fd_kinds", 0, kinds, echo_peer},
	{"fd_number_again", PROCS, number_again, echo_peer},
	{NULL, 0, NULL, NULL},
};
