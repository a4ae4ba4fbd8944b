/* SPDX-License-Identifier: MIT */
/* Programs that close a lot, or at the wrong moment. */
#include "cases.h"

#include <dirent.h>

/* Everything above the standard three, then nothing is left. */
static void range_all(struct end *e)
{
	ask(e, e->fd);
	TRY(e, close_range(3, ~0U, 0));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	TRY(e, close(e->fd));
	TRY(e, poll(&(struct pollfd){.fd = -1}, 1, 0));
}

/* The same, and then a new connection. */
static void range_and_on(struct end *e)
{
	int fd = dial_warm(e);

	ask(e, fd);
	TRY(e, close_range(3, ~0U, 0));
	fd = dial(e);
	ask(e, fd);
	ask_often(e, fd, 1000);
	ask(e, fd);
}

static void range_and_on_peer(struct end *e)
{
	e->fd = pick_up_warm(e);
	echo_peer(e);
	close(e->fd);
	e->fd = pick_up(e);
	echo_peer(e);
}

/* As daemons do: every number but the one that matters. */
static void loop_kept(struct end *e)
{
	int closed = 0;

	ask(e, e->fd);
	for (int i = 3; i < 20000; i++)
		if (i != e->fd)
			closed += close(i) == 0;
	say(e, "closed %s", closed <= 1 ? "what was mine" : "more than was mine");
	ask_often(e, e->fd, 1000);
	ask(e, e->fd);
	TRY(e, close(e->fd));
}

static void closefrom_kept(struct end *e)
{
	int fd = MUST(e, dup2(e->fd, 3));

	if (e->fd != 3)
		close(e->fd);
	closefrom(4);
	ask(e, fd);
	send_pattern(e, fd, 0, 90, 90);
	recv_pattern(e, fd, 0, 90, 7);
	TRY(e, close(fd));
}

static void bad_numbers(struct end *e)
{
	TRY(e, close(-1));
	TRY(e, close(19999));
	TRY(e, close_range(5, 4, 0));
	TRY(e, close_range(3, 4, 0x100));
	TRY(e, close_range(e->fd, e->fd, CLOSE_RANGE_CLOEXEC));
	say(e, "FD_CLOEXEC %d", fcntl(e->fd, F_GETFD));
	ask(e, e->fd);
	TRY(e, close_range(e->fd, e->fd, 0));
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
}

/* Nor is it open when something else was there meanwhile: whatever else goes on in the process, calls on the number say so. */
static void stays_closed(struct end *e)
{
	int null = MUST(e, open("/dev/null", O_RDWR)), others = 0;
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	double until = now() + settle() * 1e-3;
	char c;

	put(e, e->fd, "once");
	TRY(e, close(e->fd));
	TRY(e, dup2(null, e->fd) == e->fd);
	TRY(e, write(e->fd, "x", 1));
	TRY(e, close(e->fd));
	while (now() < until) {
		others += send(e->fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != -1 || errno != EBADF;
		others += recv(e->fd, &c, 1, MSG_DONTWAIT) != -1 || errno != EBADF;
		others += poll(&p, 1, 0) != 1 || p.revents != POLLNVAL;
	}
	say(e, "other answers: %d", others);
	await(e);
	close(null);
}

static void stays_closed_peer(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 10, 0);
	tell(e);
}

/* close does not end a recv that is blocked in another thread: that one still gets its data. */
static void under_recv(struct end *e)
{
	struct job j;
	int spare;

	job_sleeps(e, &j, job_recv, e->fd);
	TRY(e, close(e->fd));
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	spare = MUST(e, open("/dev/null", O_RDONLY));
	tell(e);
	job_report(e, "recv", &j);
	await(e);
	close(spare);
}

static void under_recv_peer(struct end *e)
{
	supply(e, "late");
	show(e, e->fd, 10, 0);
}

/* Nor a poll. */
static void under_poll(struct end *e)
{
	int fd = MUST(e, dup(e->fd));
	struct job j;

	job_sleeps(e, &j, job_polled, fd);
	TRY(e, close(fd));
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	tell(e);
	job_join(e, &j);
	bits(e, "poll", j.result);
	show(e, e->fd, 4, MSG_WAITALL);
	await(e);
	close(e->fd);
}

static void dup_under_recv(struct end *e)
{
	int null = MUST(e, open("/dev/null", O_RDONLY));
	struct job j;

	job_sleeps(e, &j, job_recv, e->fd);
	TRY(e, dup2(null, e->fd) == e->fd);
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	tell(e);
	job_report(e, "recv", &j);
	await(e);
	close(null);
}

/* Descriptors of a program that opened one connection: 0 to 2, the connection, nothing else low. */
static void listed(struct end *e)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *de;
	int low = 0;

	ask(e, e->fd);
	while (d && (de = readdir(d)))
		if (atoi(de->d_name) > 2 && atoi(de->d_name) < 500)
			low += atoi(de->d_name) != e->fd && atoi(de->d_name) != e->lfd;
	say(e, "low numbers of others: %d", low - 1);
	if (d)
		closedir(d);
	finish(e, e->fd);
}

const struct test cases_close[] = {
	{"close_range_all", PROCS, range_all, echo_peer},
	{"close_range_and_on", PROCS | RAW, range_and_on, range_and_on_peer},
	{"close_loop", PROCS, loop_kept, echo_peer},
	{"close_closefrom", PROCS, closefrom_kept, echo_peer},
	{"close_bad_numbers", PROCS, bad_numbers, echo_peer},
	{"close_stays_closed", 0, stays_closed, stays_closed_peer},
	{"close_under_recv", 0, under_recv, under_recv_peer},
	{"close_under_poll", 0, under_poll, under_recv_peer},
	{"close_dup_under_recv", 0, dup_under_recv, under_recv_peer},
	{"close_listed", PROCS, listed, echo_peer},
	{NULL, 0, NULL, NULL},
};
