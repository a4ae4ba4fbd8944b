/* SPDX-License-Identifier: MIT */
/* Signals that the connection itself sends: SIGIO and SIGURG. They are blocked and waited for. */
#include "cases.h"

static void block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* 1: it has come, 0: it has not within ms. */
static int came(int sig, int ms, siginfo_t *info)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return sigtimedwait(&set, info, &t) == sig;
}

static void none_left(int sig)
{
	siginfo_t info;

	while (came(sig, 0, &info))
		;
}

static void own(struct end *e, int fd)
{
	struct f_owner_ex me = {.type = F_OWNER_TID, .pid = gettid()};

	MUST(e, fcntl(fd, F_SETOWN_EX, &me));
}

static void on(struct end *e, int fd)
{
	MUST(e, fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC));
}

static void in(struct end *e)
{
	siginfo_t info;

	block(SIGIO);
	own(e, e->fd);
	on(e, e->fd);
	say(e, "async %d", (fcntl(e->fd, F_GETFL) & O_ASYNC) != 0);
	none_left(SIGIO);
	tell(e);
	say(e, "came %d", came(SIGIO, 5000, &info));
	show(e, e->fd, 5, MSG_WAITALL);
	none_left(SIGIO);
	tell(e);
	say(e, "came %d", came(SIGIO, 5000, &info));
	show(e, e->fd, 5, MSG_WAITALL);
}

static void in_peer(struct end *e)
{
	await(e);
	put(e, e->fd, "first");
	await(e);
	put(e, e->fd, "again");
}

/* With a number of its own the signal says which descriptor it is. */
static void numbered(struct end *e)
{
	siginfo_t info = {0};

	block(SIGRTMIN + 3);
	own(e, e->fd);
	TRY(e, fcntl(e->fd, F_SETSIG, SIGRTMIN + 3));
	say(e, "signal %d", fcntl(e->fd, F_GETSIG) - SIGRTMIN);
	on(e, e->fd);
	none_left(SIGRTMIN + 3);
	tell(e);
	do {
		say(e, "came %d", came(SIGRTMIN + 3, 5000, &info));
	} while (!(info.si_band & POLLIN));
	say(e, "descriptor %d, code %d", info.si_fd == e->fd, info.si_code == POLL_IN);
	show(e, e->fd, 5, MSG_WAITALL);
}

static void numbered_peer(struct end *e)
{
	await(e);
	put(e, e->fd, "first");
}

static void by_ioctl(struct end *e)
{
	siginfo_t info;
	int one = 1, pid = getpid(), owner = 0, off = 0;

	block(SIGIO);
	TRY(e, ioctl(e->fd, FIOSETOWN, &pid));
	TRY(e, ioctl(e->fd, FIOGETOWN, &owner));
	say(e, "owner %d %d", owner == pid, fcntl(e->fd, F_GETOWN) == pid);
	own(e, e->fd);
	TRY(e, ioctl(e->fd, FIOASYNC, &one));
	none_left(SIGIO);
	tell(e);
	say(e, "came %d", came(SIGIO, 5000, &info));
	show(e, e->fd, 5, MSG_WAITALL);
	TRY(e, ioctl(e->fd, FIOASYNC, &off));
	none_left(SIGIO);
	tell(e);
	show(e, e->fd, 5, MSG_WAITALL);
	say(e, "came %d", came(SIGIO, 0, &info));
	say(e, "async %d", (fcntl(e->fd, F_GETFL) & O_ASYNC) != 0);
}

static void at_end(struct end *e)
{
	siginfo_t info;

	block(SIGIO);
	own(e, e->fd);
	on(e, e->fd);
	none_left(SIGIO);
	tell(e);
	say(e, "came %d", came(SIGIO, 5000, &info));
	show(e, e->fd, 5, 0);
	TRY(e, send(e->fd, "answer", 6, 0));
	shutdown(e->fd, SHUT_WR);
}

static void at_end_peer(struct end *e)
{
	await(e);
	shutdown(e->fd, SHUT_WR);
	show(e, e->fd, 6, MSG_WAITALL);
	show(e, e->fd, 6, 0);
}

/* A new connection at the listener. */
static void listener(struct end *e)
{
	siginfo_t info;
	int fd;

	block(SIGIO);
	e->fd = make_listener(e, 0);
	own(e, e->fd);
	on(e, e->fd);
	none_left(SIGIO);
	fd = dial(e);
	say(e, "came %d", came(SIGIO, 5000, &info));
	e->lfd = e->fd;
	TRY(e, close(pick_up(e)));
	show(e, fd, 1, 0);
	close(fd);
	close(e->fd);
}

static void urgent(struct end *e)
{
	siginfo_t info;

	block(SIGURG);
	own(e, e->fd);
	tell(e);
	say(e, "came %d", came(SIGURG, 5000, &info));
	say(e, "mark %d", sockatmark(e->fd));
	show(e, e->fd, 3, MSG_WAITALL);
	say(e, "mark %d", sockatmark(e->fd));
	show(e, e->fd, 1, MSG_OOB);
	show(e, e->fd, 3, MSG_WAITALL);
	say(e, "mark %d", sockatmark(e->fd));
	meet(e);
}

static void urgent_peer(struct end *e)
{
	await(e);
	put_urgent(e);
	meet(e);
}

/* Asked for before there is a connection, and inherited by none. */
static void accepted(struct end *e)
{
	int l = make_listener(e, 0), fd, got;

	on(e, l);
	TRY(e, fcntl(l, F_SETSIG, SIGRTMIN + 2));
	block(SIGIO);
	fd = dial(e);
	e->lfd = l;
	got = pick_up(e);
	say(e, "async %d, signal %d", (fcntl(got, F_GETFL) & O_ASYNC) != 0, fcntl(got, F_GETSIG));
	close(fd);
	close(got);
	close(l);
}

const struct test cases_async[] = {
	{"async_in", 0, in, in_peer},
	{"async_numbered", 0, numbered, numbered_peer},
	{"async_by_ioctl", 0, by_ioctl, in_peer},
	{"async_at_end", 0, at_end, at_end_peer},
	{"async_listener", ALONE, listener, NULL},
	{"async_urgent", 0, urgent, urgent_peer},
	{"async_accepted", ALONE, accepted, NULL},
	{NULL, 0, NULL, NULL},
};
