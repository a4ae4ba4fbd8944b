/* SPDX-License-Identifier: MIT */
/* poll and select with arrays and sets that are not quite as expected. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>

static void set_fds(fd_set *s, int a, int b)
{
	FD_ZERO(s);
	FD_SET(a, s);
	if (b >= 0)
		FD_SET(b, s);
}

/* One descriptor in all three sets counts for each. */
static void three_sets(struct end *e)
{
	struct timeval none = {0};
	fd_set r, w, x;

	have(e, 3);
	set_fds(&r, e->fd, -1);
	w = x = r;
	TRY(e, select(e->fd + 1, &r, &w, &x, &none));
	say(e, "%d %d %d", FD_ISSET(e->fd, &r) != 0, FD_ISSET(e->fd, &w) != 0, FD_ISSET(e->fd, &x) != 0);
	meet(e);
}

/* A closed number spoils it all, and the sets stay as they were. */
static void closed_number(struct end *e)
{
	struct timeval none = {0};
	int gone = MUST(e, dup(e->fd));
	fd_set r;

	have(e, 3);
	close(gone);
	set_fds(&r, e->fd, gone);
	TRY(e, select(gone + 1, &r, NULL, NULL, &none));
	say(e, "%d %d", FD_ISSET(e->fd, &r) != 0, FD_ISSET(gone, &r) != 0);
	TRY(e, select(gone, &r, NULL, NULL, &none));
	meet(e);
}

/* Descriptors from nfds on are not looked at, and not touched. */
static void above(struct end *e)
{
	struct timeval none = {0};
	fd_set r;

	have(e, 3);
	set_fds(&r, e->fd, e->fd + 1);
	TRY(e, select(e->fd, &r, NULL, NULL, &none));
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &none));
	say(e, "%d", FD_ISSET(e->fd, &r) != 0);
	meet(e);
}

/* Nothing ready: the sets become empty and nothing is left of the time. */
static void empty(struct end *e)
{
	struct timeval t = {.tv_usec = 20000};
	struct timespec ts = {.tv_nsec = 20000000};
	fd_set r;

	set_fds(&r, e->fd, -1);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &t));
	say(e, "%d, left %ld", FD_ISSET(e->fd, &r) != 0, (long)(t.tv_sec + t.tv_usec));
	set_fds(&r, e->fd, -1);
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, &ts, NULL));
	say(e, "%d, given %ld", FD_ISSET(e->fd, &r) != 0, ts.tv_nsec);
	t = (struct timeval){.tv_sec = 1000};
	meet(e);
	set_fds(&r, e->fd, -1);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &t));
	say(e, "%d, left %d", FD_ISSET(e->fd, &r) != 0, t.tv_sec > 900);
	meet(e);
}

/* Only the exceptional set: urgent data. */
static void exceptional(struct end *e)
{
	struct timeval none = {0};
	fd_set x;

	set_fds(&x, e->fd, -1);
	TRY(e, select(e->fd + 1, NULL, NULL, &x, &none));
	meet(e);
	set_fds(&x, e->fd, -1);
	TRY(e, select(e->fd + 1, NULL, NULL, &x, NULL));
	say(e, "%d", FD_ISSET(e->fd, &x) != 0);
	show(e, e->fd, 1, MSG_OOB);
	meet(e);
}

static void exceptional_peer(struct end *e)
{
	meet(e);
	TRY(e, send(e->fd, "!", 1, MSG_OOB));
	meet(e);
}

/* With a pipe and a listener in the same sets. */
static void mixed(struct end *e)
{
	int l = make_listener(e, 0), p[2], fd;
	struct timeval none = {0};
	fd_set r, w;

	MUST(e, pipe2(p, O_CLOEXEC));
	have(e, 3);
	for (int i = 0; i < 4; i++) {
		fd = i == 2 ? dial(e) : -1;
		if (i == 1)
			MUST(e, write(p[1], "x", 1));
		FD_ZERO(&r);
		FD_ZERO(&w);
		FD_SET(e->fd, &r);
		FD_SET(l, &r);
		FD_SET(p[0], &r);
		FD_SET(p[1], &w);
		FD_SET(e->fd, &w);
		if (i == 2)
			ended(e, l, POLLIN);
		TRY(e, select(FD_SETSIZE, &r, &w, NULL, &none));
		say(e, "stream %d %d, listener %d, pipe %d %d", FD_ISSET(e->fd, &r) != 0,
		    FD_ISSET(e->fd, &w) != 0, FD_ISSET(l, &r) != 0, FD_ISSET(p[0], &r) != 0,
		    FD_ISSET(p[1], &w) != 0);
		if (i == 2)
			show(e, e->fd, 3, 0);
		if (fd >= 0)
			close(fd);
	}
	close(l);
	close_both(p);
	meet(e);
}

/* The same descriptor several times, each for itself; negative ones are left out. */
static void duplicates(struct end *e)
{
	struct pollfd f[5] = {
		{.fd = e->fd, .events = POLLIN}, {.fd = -1, .events = POLLIN, .revents = 77},
		{.fd = e->fd, .events = POLLOUT}, {.fd = e->fd}, {.fd = -e->fd, .events = POLLOUT},
	};

	have(e, 3);
	TRY(e, poll(f, 5, -1));
	for (int i = 0; i < 5; i++)
		bits(e, "revents", f[i].revents);
	TRY(e, poll(f + 3, 2, 10));
	TRY(e, poll(f, 0, 0));
	TRY(e, poll(NULL, 0, 5));
	meet(e);
}

/* Bits that nobody asked for come only when they are errors. */
static void asked_bits(struct end *e)
{
	static const short asked[] = {0, POLLIN, POLLRDNORM, POLLOUT, POLLWRNORM, POLLPRI, POLLRDBAND,
				      POLLWRBAND, POLLMSG, POLLRDHUP, POLLERR, POLLHUP, POLLNVAL, 0x7fff};

	have(e, 3);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		bits(e, "revents", (unsigned short)polled(e->fd, asked[i], 0));
	meet(e);
}

/* poll on a set of epoll, on a set in a set, and on both with the stream. */
static void sets_polled(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), out = set_of(e, in, EPOLLIN);
	struct pollfd f[3] = {{.fd = in, .events = POLLIN}, {.fd = out, .events = POLLIN},
			      {.fd = e->fd, .events = POLLIN}};

	TRY(e, poll(f, 3, 0));
	have(e, 3);
	TRY(e, poll(f, 2, -1));
	TRY(e, poll(f, 3, -1));
	for (int i = 0; i < 3; i++)
		bits(e, "revents", f[i].revents);
	show(e, e->fd, 3, 0);
	TRY(e, poll(f, 3, 0));
	close(in);
	bits(e, "outer", polled(out, POLLIN, 0));
	close(out);
	meet(e);
}

static void in_set_select(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLET);
	struct timeval none = {0};
	fd_set r;

	have(e, 3);
	set_fds(&r, ep, e->fd);
	TRY(e, select(FD_SETSIZE, &r, NULL, NULL, NULL));
	wait_on(e, ep, 0);
	set_fds(&r, ep, -1);
	TRY(e, select(FD_SETSIZE, &r, NULL, NULL, &none));
	close(ep);
	meet(e);
}

/* A signal that is pending and let in by the mask ends the wait, even when something is ready. */
static void pending(struct end *e)
{
	struct timespec none = {0};
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	sigset_t blocked, open;
	fd_set r;

	catch_signal(e, 0);
	block_signal(&blocked, &open);
	raise(SIGUSR1);
	TRY(e, ppoll(&p, 1, NULL, &open));
	say(e, "%d", (int)caught);
	raise(SIGUSR1);
	set_fds(&r, e->fd, -1);
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, NULL, &open));
	say(e, "%d", (int)caught);
	TRY(e, ppoll(&p, 1, &none, &open));
	have(e, 3);
	TRY(e, ppoll(&p, 1, NULL, &open));
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, NULL, &blocked));
	say(e, "%d", (int)caught);
	meet(e);
}

/* More numbers than a table can have. */
static void limits(struct end *e)
{
	static struct pollfd f[3000];
	struct rlimit few, were;

	for (int i = 0; i < 3000; i++)
		f[i] = (struct pollfd){.fd = i % 2 ? e->fd : -1, .events = POLLIN};
	have(e, 3);
	TRY(e, poll(f, 3000, -1));
	MUST(e, getrlimit(RLIMIT_NOFILE, &were));
	few = were;
	few.rlim_cur = 1000;
	MUST(e, setrlimit(RLIMIT_NOFILE, &few));
	TRY(e, poll(f, 1000, 0));
	TRY(e, poll(f, 1001, 0));
	MUST(e, setrlimit(RLIMIT_NOFILE, &were));
	meet(e);
}

/* Two threads wait for the same: both see it, one gets it. */
static void two_wait(struct end *e)
{
	struct job a, b;

	job_start(e, &a, job_polled, e->fd);
	job_start(e, &b, job_polled, e->fd);
	asleep(e, a.tid);
	asleep(e, b.tid);
	meet(e);
	job_join(e, &a);
	job_join(e, &b);
	bits(e, "a", a.result);
	bits(e, "b", b.result);
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
}

const struct test cases_select[] = {
	{"select_three_sets", 0, three_sets, abc_peer},
	{"select_closed_number", 0, closed_number, abc_peer},
	{"select_above", 0, above, abc_peer},
	{"select_empty", 0, empty, abc_later_peer},
	{"select_exceptional", 0, exceptional, exceptional_peer},
	{"select_mixed", 0, mixed, abc_peer},
	{"select_of_set", 0, in_set_select, abc_peer},
	{"poll_duplicates", 0, duplicates, abc_peer},
	{"poll_asked_bits", 0, asked_bits, abc_peer},
	{"poll_sets", 0, sets_polled, abc_later_peer},
	{"poll_pending_signal", 0, pending, abc_later_peer},
	{"poll_limits", PROCS, limits, abc_peer},
	{"poll_two_wait", 0, two_wait, abc_later_peer},
	{NULL, 0, NULL, NULL},
};
