/* SPDX-License-Identifier: MIT */
/* epoll: many descriptors, sets within sets, sets in poll and select, sets before the connection. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>

#define MANY 6

/* Registered before it is connected: what an unconnected socket says, then the connection. */
static void before_connect(struct end *e)
{
	int ep = MUST(e, epoll_create1(0));
	int fd = MUST(e, socket(e->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0));
	struct epoll_event ev = {0};

	add(e, ep, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 7);
	TRY(e, epoll_wait(ep, &ev, 1, 0));
	bits(e, "event", ev.events);
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	do
		MUST(e, epoll_wait(ep, &ev, 1, -1));
	while (ev.events & EPOLLHUP);
	bits(e, "event", ev.events);
	nonblock(e, fd, 0);
	warm(e, fd);
	meet(e);
	arrived(e, fd, 5);
	TRY(e, epoll_wait(ep, &ev, 1, -1));
	bits(e, "event", ev.events);
	say(e, "data %d", (int)ev.data.u64);
	show(e, fd, 5, 0);
	close(fd);
	close(ep);
}

static void before_connect_peer(struct end *e)
{
	int fd = pick_up_warm(e);

	meet(e);
	put(e, fd, "hello");
	drain(e, fd);
}

/* With room for one event each of several ready descriptors gets its turn. */
static void fair(struct end *e)
{
	int ep = MUST(e, epoll_create1(0)), fd[MANY], ev_fd = MUST(e, eventfd(1, 0));
	int seen[MANY + 1] = {0};
	struct epoll_event ev = {0}, all[MANY + 1];

	for (int i = 0; i < MANY; i++)
		fd[i] = dial_warm(e);
	meet(e);
	for (int i = 0; i < MANY; i++) {
		arrived(e, fd[i], 3);
		add(e, ep, fd[i], EPOLLIN, i);
	}
	add(e, ep, ev_fd, EPOLLIN, MANY);
	for (int i = 0; i < 3 * (MANY + 1); i++) {
		MUST(e, epoll_wait(ep, &ev, 1, -1));
		seen[ev.data.u64]++;
	}
	for (int i = 0; i <= MANY; i++)
		say(e, "descriptor %d was seen %s", i, seen[i] ? "" : "never");
	TRY(e, epoll_wait(ep, all, MANY + 1, -1));
	for (int i = 0; i < MANY; i++) {
		show(e, fd[i], 3, 0);
		TRY(e, epoll_wait(ep, all, MANY + 1, 0));
	}
	say(e, "left: %d", (int)all[0].data.u64);
	for (int i = 0; i < MANY; i++)
		close(fd[i]);
	close(ep);
	close(ev_fd);
}

static void fair_peer(struct end *e)
{
	int fd[MANY];

	for (int i = 0; i < MANY; i++)
		fd[i] = pick_up_warm(e);
	for (int i = 0; i < MANY; i++)
		put(e, fd[i], "abc");
	meet(e);
	for (int i = 0; i < MANY; i++)
		drain(e, fd[i]);
}

/* A set in a set, in poll and in select. */
static void nested(struct end *e)
{
	int in = MUST(e, epoll_create1(0)), out = MUST(e, epoll_create1(0));
	struct epoll_event ev = {0};
	struct timeval none = {0};
	fd_set r;

	add(e, in, e->fd, EPOLLIN, 1);
	add(e, out, in, EPOLLIN, 2);
	TRY(e, epoll_wait(out, &ev, 1, 0));
	bits(e, "poll of the inner set", polled(in, POLLIN, 0));
	bits(e, "poll of the outer set", polled(out, POLLIN, 0));
	tell(e);
	TRY(e, epoll_wait(out, &ev, 1, -1));
	say(e, "data %d", (int)ev.data.u64);
	TRY(e, epoll_wait(in, &ev, 1, 0));
	say(e, "data %d", (int)ev.data.u64);
	bits(e, "poll of the inner set", polled(in, POLLIN, 0));
	bits(e, "poll of the outer set", polled(out, POLLIN, 0));
	FD_ZERO(&r);
	FD_SET(in, &r);
	TRY(e, select(in + 1, &r, NULL, NULL, &none));
	await(e);
	arrived(e, e->fd, 1);
	show(e, e->fd, 10, 0);
	TRY(e, epoll_wait(out, &ev, 1, 0));
	bits(e, "poll of the outer set", polled(out, POLLIN, 0));
	TRY(e, epoll_ctl(in, EPOLL_CTL_ADD, out, &ev));
	close(in);
	close(out);
}

/* Threads asleep on a set in different ways all learn of the same byte. */
static void sleepers(struct end *e)
{
	int in = MUST(e, epoll_create1(0)), out = MUST(e, epoll_create1(0));
	struct job j[4];

	add(e, in, e->fd, EPOLLIN, 1);
	add(e, out, in, EPOLLIN, 2);
	job_start(e, &j[0], job_polled, in);
	job_start(e, &j[1], job_select, in);
	job_start(e, &j[2], job_wait, out);
	job_start(e, &j[3], job_polled, e->fd);
	for (int i = 0; i < 4; i++)
		asleep(e, j[i].tid);
	tell(e);
	for (int i = 0; i < 4; i++) {
		job_join(e, &j[i]);
		say(e, "sleeper %d: %ld", i, j[i].result);
	}
	await(e);
	close(in);
	close(out);
}

/* Added to a set on which a thread already sleeps. */
static void added_late(struct end *e)
{
	int ep = MUST(e, epoll_create1(0));
	struct job j;

	job_sleeps(e, &j, job_wait, ep);
	add(e, ep, e->fd, EPOLLIN, 1);
	asleep(e, j.tid);
	tell(e);
	job_join(e, &j);
	say(e, "woken: %ld", j.result);
	job_start(e, &j, job_wait, ep);
	job_join(e, &j);
	await(e);
	arrived(e, e->fd, 1);
	show(e, e->fd, 10, 0);
	job_sleeps(e, &j, job_wait, ep);
	MUST(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &(struct epoll_event){.events = EPOLLOUT}));
	job_join(e, &j);
	say(e, "woken by MOD: %ld", j.result);
	close(ep);
}

/* A pipe and a stream in one set, each wakes. */
static void mixed(struct end *e)
{
	int ep = MUST(e, epoll_create1(0)), p[2];
	struct epoll_event ev[2] = {{0}};

	MUST(e, pipe2(p, O_CLOEXEC));
	add(e, ep, e->fd, EPOLLIN, 1);
	add(e, ep, p[0], EPOLLIN, 2);
	for (int i = 0; i < 3; i++) {
		MUST(e, write(p[1], "p", 1));
		TRY(e, epoll_wait(ep, ev, 2, -1));
		say(e, "data %d", (int)ev[0].data.u64);
		MUST(e, read(p[0], &(char){0}, 1));
		tell(e);
		TRY(e, epoll_wait(ep, ev, 2, -1));
		say(e, "data %d", (int)ev[0].data.u64);
		await(e);
		arrived(e, e->fd, 1);
		MUST(e, write(p[1], "p", 1));
		TRY(e, epoll_wait(ep, ev, 2, -1));
		show(e, e->fd, 10, 0);
		MUST(e, read(p[0], &(char){0}, 1));
		TRY(e, epoll_wait(ep, ev, 2, 0));
	}
	close(ep);
	close_both(p);
}

static void three_bytes_peer(struct end *e)
{
	for (int i = 0; i < 3; i++)
		one_byte_peer(e);
}

static JOB(job_wait_a_while, epoll_wait(j->fd, &(struct epoll_event){0}, 1, 300))

/* A set is closed in which a thread sleeps: that one sleeps on, and others learn of what comes. Its number is another's then. */
static void closed_asleep(struct end *e)
{
	struct epoll_event ev = {0};
	struct job j;
	int ep, other;

	for (int i = 0; i < 3; i++) {
		ep = MUST(e, epoll_create1(0));
		add(e, ep, e->fd, EPOLLIN, 1);
		job_sleeps(e, &j, job_wait_a_while, ep);
		TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
		TRY(e, close(ep));
		other = MUST(e, epoll_create1(0));
		add(e, other, e->fd, EPOLLIN, 2);
		tell(e);
		TRY(e, epoll_wait(other, &ev, 1, -1));
		say(e, "data %d", (int)ev.data.u64);
		show(e, e->fd, 10, 0);
		await(e);
		job_join(e, &j);
		say(e, "asleep: %ld", j.result);
		TRY(e, epoll_wait(other, &ev, 1, 0));
		TRY(e, close(other));
	}
}

const struct test cases_epoll_sets[] = {
	{"epoll_before_connect", RAW, before_connect, before_connect_peer},
	{"epoll_fair", RAW, fair, fair_peer},
	{"epoll_nested", 0, nested, one_byte_peer},
	{"epoll_sleepers", 0, sleepers, one_byte_peer},
	{"epoll_added_late", 0, added_late, one_byte_peer},
	{"epoll_mixed", 0, mixed, three_bytes_peer},
	{"epoll_closed_asleep", 0, closed_asleep, three_bytes_peer},
	{NULL, 0, NULL, NULL},
};
