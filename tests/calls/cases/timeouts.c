/* SPDX-License-Identifier: MIT */
/* Waits that end by the clock. Never how long they took, only that it was not too short. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>

static void set_timeout(struct end *e, int option, int ms)
{
	struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	socklen_t len = sizeof(t);

	TRY(e, setsockopt(e->fd, SOL_SOCKET, option, &t, sizeof(t)));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, option, &t, &len));
	say(e, "%ld.%06ld", (long)t.tv_sec, (long)t.tv_usec);
}

/*
 * At least ms milliseconds since start; a minute more would be a wait that nothing ends. The kernel counts a socket's
 * timeouts in ticks, and the first tick may be nearly over. So a wait ends up to one tick early, 10 ms at HZ=100.
 */
static void took(struct end *e, double start, int ms)
{
	double t = (now() - start) * 1e3;

	say(e, "%s", t < ms - 10 ? "too early" : t > ms * 10 + 60000 ? "too late" : "in time");
}

static void quiet(struct end *e)
{
	meet(e);
}

static void rcvtimeo(struct end *e)
{
	char buf[10];
	double start;

	set_timeout(e, SO_RCVTIMEO, 60);
	start = now();
	TRY(e, recv(e->fd, buf, 1, 0));
	took(e, start, 60);
	start = now();
	TRY(e, read(e->fd, buf, 1));
	took(e, start, 60);
	start = now();
	TRY(e, recv(e->fd, buf, 10, MSG_WAITALL));
	took(e, start, 60);
	more(e, 3);
	start = now();
	show(e, e->fd, 10, MSG_WAITALL);
	took(e, start, 60);
	set_timeout(e, SO_RCVTIMEO, 0);
	tell(e);
	show(e, e->fd, 3, MSG_WAITALL);
	meet(e);
}

static void rcvtimeo_peer(struct end *e)
{
	supply(e, "abc");
	await(e);
	put(e, e->fd, "def");
	meet(e);
}

static void sndtimeo(struct end *e)
{
	size_t len = 64 << 20;
	unsigned char *buf = calloc(1, len);
	uint64_t sum = 0;
	ssize_t r;
	double start;
	int refused = 0;

	set_timeout(e, SO_SNDTIMEO, 60);
	r = send(e->fd, buf, len, 0);
	say(e, "a part was sent: %d", r > 0 && r < (ssize_t)len);
	for (sum = r; refused < 2;) {	/* once may be because the receiver's window was just growing */
		r = send(e->fd, buf, 65536, 0);
		sum += r > 0 ? r : 0;
		refused = r > 0 ? 0 : refused + 1;
	}
	result(e, "send in the end", r);
	start = now();
	TRY(e, send(e->fd, buf, 65536, 0));
	took(e, start, 60);
	pass(e, &sum, sizeof(sum));
	TRY(e, shutdown(e->fd, SHUT_WR));
	await(e);
	free(buf);
}

static void sndtimeo_peer(struct end *e)
{
	static char buf[1 << 16];
	uint64_t sum, n = 0;
	ssize_t r;

	take(e, &sum, sizeof(sum));
	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0)
		n += r;
	say(e, "as many bytes as were sent: %d, then %zd", n == sum, r);
	tell(e);
}

static void rcvlowat(struct end *e)
{
	struct job j;
	int n = 10;
	socklen_t len = sizeof(n);

	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n)));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &n, &len));
	say(e, "SO_RCVLOWAT %d", n);
	more(e, 5);
	bits(e, "poll with 5", polled(e->fd, POLLIN, 0));
	show(e, e->fd, 100, MSG_DONTWAIT);
	job_start(e, &j, job_recv, e->fd);
	job_in_parts(e, &j, 2);
	job_report(e, "recv", &j);
	nonblock(e, e->fd, 1);
	show(e, e->fd, 10, 0);
	more(e, 3);
	bits(e, "poll with 3", polled(e->fd, POLLIN, 0));
	show(e, e->fd, 10, 0);
	n = 1;
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n)));
	have(e, 1);
	bits(e, "poll with 1", polled(e->fd, POLLIN, -1));
}

static void rcvlowat_peer(struct end *e)
{
	supply(e, "12345");
	supply(e, "67890");
	supply(e, "fghij");
	supply(e, "abc");
	meet(e);
	put(e, e->fd, "z");
}

static void poll_times(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct timespec ts = {.tv_nsec = 20000000};
	double start = now();

	TRY(e, poll(&p, 1, 0));
	TRY(e, poll(&p, 1, 20));
	took(e, start, 20);
	start = now();
	TRY(e, ppoll(&p, 1, &ts, NULL));
	took(e, start, 20);
	say(e, "timespec untouched: %d", ts.tv_nsec == 20000000);
	start = now();
	TRY(e, poll(NULL, 0, 20));
	took(e, start, 20);
	meet(e);
}

static void epoll_times(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct timespec ts = {.tv_nsec = 20000000};
	int ep = MUST(e, epoll_create1(EPOLL_CLOEXEC));
	double start = now();

	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_wait(ep, &ev, 1, 0));
	TRY(e, epoll_wait(ep, &ev, 1, 20));
	took(e, start, 20);
	start = now();
	TRY(e, epoll_pwait(ep, &ev, 1, 20, NULL));
	took(e, start, 20);
	start = now();
	TRY(e, epoll_pwait2(ep, &ev, 1, &ts, NULL));
	took(e, start, 20);
	close(ep);
	meet(e);
}

static void select_times(struct end *e)
{
	struct timeval t = {.tv_usec = 30000};
	struct timespec ts = {.tv_nsec = 20000000};
	fd_set r;
	double start = now();
	int whole = 0;

	FD_ZERO(&r);
	FD_SET(e->fd, &r);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &t));
	took(e, start, 30);
	say(e, "remaining %ld.%06ld, set %d", (long)t.tv_sec, (long)t.tv_usec, FD_ISSET(e->fd, &r));
	FD_SET(e->fd, &r);
	start = now();
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, &ts, NULL));
	took(e, start, 20);
	say(e, "timespec untouched: %d", ts.tv_nsec == 20000000);
	tell(e);
	t = (struct timeval){.tv_sec = 60};
	FD_SET(e->fd, &r);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &t));
	say(e, "much remains: %d, set %d", t.tv_sec >= 50 && t.tv_sec < 60, FD_ISSET(e->fd, &r));
	for (int i = 0; i < 100; i++) {	/* what is ready at once has taken some time, too */
		t = (struct timeval){.tv_sec = 60};
		select(e->fd + 1, &r, NULL, NULL, &t);
		whole += t.tv_sec == 60;
	}
	say(e, "all remains: %d times", whole);
	show(e, e->fd, 10, 0);
	t = (struct timeval){0};
	FD_SET(e->fd, &r);
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &t));
	await(e);
}

/* Data that comes during a long wait ends it. */
static void early_end(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(EPOLL_CLOEXEC));
	double start = now();

	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	tell(e);
	TRY(e, epoll_wait(ep, &ev, 1, 20000));
	bits(e, "epoll", ev.events);
	say(e, "%s", now() - start < 10 ? "ended early" : "waited for the clock");
	show(e, e->fd, 1, 0);
	close(ep);
	await(e);
}

/*
 * A library before libc's may let its clock stand still (libfaketime, debuggers). The kernel's goes on, and so do the
 * kernel's timeouts.
 */
static volatile int stands;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	static struct timespec last;

	if (!stands && (clock != CLOCK_MONOTONIC || syscall(SYS_clock_gettime, clock, &last)))
		return (int)syscall(SYS_clock_gettime, clock, t);
	*t = last;
	return 0;
}

static void clock_stands(struct end *e)
{
	struct timespec span = {.tv_nsec = 60000000};
	struct timeval t = {.tv_usec = 60000};
	int ep = set_of(e, e->fd, EPOLLIN), fd;
	char buf[10];
	fd_set set;

	set_timeout(e, SO_RCVTIMEO, 60);
	stands = 1;
	say(e, "poll %d", polled(e->fd, POLLIN, 60));
	TRY(e, ppoll(&(struct pollfd){.fd = e->fd, .events = POLLIN}, 1, &span, NULL));
	FD_ZERO(&set);
	FD_SET(e->fd, &set);
	TRY(e, select(e->fd + 1, &set, NULL, NULL, &t));
	say(e, "left %ld", (long)t.tv_usec);
	wait_on(e, ep, 60);
	TRY(e, recv(e->fd, buf, 1, 0));
	fd = make_listener(e, 0);	/* the first of a process begins what looks for peers */
	close(fd);
	stands = 0;
	close(ep);
	meet(e);
}

const struct test cases_timeouts[] = {
	{"timeout_rcvtimeo", 0, rcvtimeo, rcvtimeo_peer},
	{"timeout_sndtimeo", 0, sndtimeo, sndtimeo_peer},
	{"timeout_rcvlowat", 0, rcvlowat, rcvlowat_peer},
	{"timeout_poll", 0, poll_times, quiet},
	{"timeout_epoll", 0, epoll_times, quiet},
	{"timeout_select", 0, select_times, one_byte_peer},
	{"timeout_ended_early", 0, early_end, one_byte_peer},
	{"timeout_clock_stands", 0, clock_stands, quiet},
	{NULL, 0, NULL, NULL},
};
