/* SPDX-License-Identifier: MIT */
/* poll and select. */
#include "cases.h"

#include <sys/resource.h>
#include <sys/select.h>

/* Few enough that a sanitizer that looks at each of them stays within the stack, nearly always. */
static nfds_t too_many(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : hidden(limit.rlim_cur + 1);
}

static void table(struct end *e)
{
	int p[2];
	struct pollfd f[6];

	MUST(e, pipe2(p, O_CLOEXEC));
	f[0] = (struct pollfd){.fd = -1, .events = POLLIN, .revents = 77};
	f[1] = (struct pollfd){.fd = e->fd, .events = POLLIN};
	f[2] = (struct pollfd){.fd = 19998, .events = POLLIN};
	f[3] = (struct pollfd){.fd = -e->fd, .events = POLLOUT, .revents = 77};
	f[4] = (struct pollfd){.fd = e->fd, .events = POLLOUT | POLLWRNORM};
	f[5] = (struct pollfd){.fd = p[0], .events = POLLIN};
	have(e, 3);
	TRY(e, poll(f, 6, -1));
	for (int i = 0; i < 6; i++)
		bits(e, "revents", f[i].revents);
	TRY(e, poll(f, 1, 0));
	TRY(e, poll(NULL, 0, 0));
	TRY(e, poll(f, too_many(), 0));
	show(e, e->fd, 10, 0);
	f[1].events = POLLIN | POLLRDNORM | POLLRDBAND | POLLPRI;
	f[2].fd = -1;
	f[4].fd = -1;
	TRY(e, poll(f, 6, 0));
	bits(e, "revents", f[1].revents);
	meet(e);
	MUST(e, write(p[1], "x", 1));
	TRY(e, poll(f, 6, -1));
	bits(e, "pipe", f[5].revents);
	close_both(p);
}

static void closed_in_poll(struct end *e)
{
	struct pollfd f = {.fd = MUST(e, dup(e->fd)), .events = POLLIN};

	close(f.fd);
	TRY(e, poll(&f, 1, 0));
	bits(e, "revents", f.revents);
	meet(e);
}

static void sets(struct end *e, fd_set *r, fd_set *w, fd_set *x)
{
	say(e, "read %d write %d except %d", !!FD_ISSET(e->fd, r), !!FD_ISSET(e->fd, w),
	    !!FD_ISSET(e->fd, x));
}

static void fresh(struct end *e, fd_set *r, fd_set *w, fd_set *x)
{
	FD_ZERO(r);
	FD_ZERO(w);
	FD_ZERO(x);
	FD_SET(e->fd, r);
	FD_SET(e->fd, w);
	FD_SET(e->fd, x);
}

static void select_sets(struct end *e)
{
	struct timeval none = {0};
	fd_set r, w, x;
	int gone;

	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd + 1, &r, &w, &x, NULL));
	sets(e, &r, &w, &x);
	have(e, 3);
	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd + 1, &r, &w, &x, NULL));
	sets(e, &r, &w, &x);
	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, NULL));
	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd, &r, &w, &x, &none));
	fresh(e, &r, &w, &x);
	TRY(e, select(FD_SETSIZE, &r, &w, &x, &none));
	TRY(e, select(-1, NULL, NULL, NULL, &none));
	none.tv_usec = -1;
	TRY(e, select(0, NULL, NULL, NULL, &none));
	none.tv_usec = 0;
	show(e, e->fd, 10, 0);
	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd + 1, &r, NULL, &x, &none));
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	fresh(e, &r, &w, &x);
	TRY(e, select(e->fd + 1, &r, NULL, &x, NULL));
	sets(e, &r, &w, &x);
	gone = MUST(e, dup(e->fd));
	close(gone);
	FD_SET(gone, &r);
	TRY(e, select(gone + 1, &r, NULL, NULL, &none));
}

static void select_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	meet(e);
	shutdown(e->fd, SHUT_WR);
}

/* poll is asked about one descriptor twice, once each way, while the peer makes it change. */
static void poll_job(struct job *j)
{
	struct pollfd f[2] = {{.fd = j->fd, .events = POLLIN}, {.fd = j->fd, .events = POLLRDHUP}};

	j->result = poll(f, 2, -1);
	j->buf[0] = f[0].revents;
	j->err = f[1].revents;
}

static void waiting(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, poll_job, e->fd);
	tell(e);
	job_join(e, &j);
	say(e, "poll = %ld", j.result);
	bits(e, "first", j.buf[0]);
	bits(e, "second", j.err);
	await(e);
	arrived(e, e->fd, 3);
	show(e, e->fd, 10, 0);
	job_sleeps(e, &j, poll_job, e->fd);
	tell(e);
	await(e);
	job_join(e, &j);
	bits(e, "first", j.buf[0]);
}

static void waiting_peer(struct end *e)
{
	supply(e, "abc");
	await(e);
	reset_on_close(e, e->fd);
	close(e->fd);
	tell(e);
}

static void select_high(struct end *e)
{
	struct rlimit l;
	int fd;

	MUST(e, getrlimit(RLIMIT_NOFILE, &l));
	fd = MUST(e, fcntl(e->fd, F_DUPFD, 1500));
	say(e, "high: %d", fd >= 1500);
	bits(e, "poll", polled(fd, POLLIN | POLLOUT, 0));
	TRY(e, send(fd, "hello", 5, 0));
	show(e, fd, 5, MSG_WAITALL);
	close(fd);
}

static void hello_peer(struct end *e)
{
	show(e, e->fd, 5, MSG_WAITALL);
	put(e, e->fd, "world");
}

const struct test cases_poll[] = {
	{"poll_table", 0, table, abc_later_peer},
	{"poll_closed", 0, closed_in_poll, meet_only},
	{"poll_waiting", 0, waiting, waiting_peer},
	{"poll_high_number", 0, select_high, hello_peer},
	{"select_sets", 0, select_sets, select_peer},
	{NULL, 0, NULL, NULL},
};
