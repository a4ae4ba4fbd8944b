/* SPDX-License-Identifier: MIT */
/* epoll: edges, ONESHOT, EXCLUSIVE. */
#include "cases.h"

#include <sys/epoll.h>

/* Answers each question with three bytes; the tested end says when it has had enough. */
static void three_peer(struct end *e, int times)
{
	for (int i = 0; i < times; i++)
		supply(e, "abc");
}

static void three1(struct end *e)
{
	three_peer(e, 1);
}

static void three2(struct end *e)
{
	three_peer(e, 2);
}

static void three3(struct end *e)
{
	three_peer(e, 3);
}

/* One report for each arrival, none for what was there before. */
static void edge_in(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLET);

	wait_on(e, ep, 0);
	more(e, 3);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	more(e, 6);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	show(e, e->fd, 2, 0);
	wait_on(e, ep, 0);
	more(e, 7);
	wait_on(e, ep, -1);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, MSG_DONTWAIT);
	wait_on(e, ep, 0);
	close(ep);
}

/* Two arrivals before the wait are one report. */
static void edge_two_arrivals(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLET);

	more(e, 3);
	more(e, 6);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	show(e, e->fd, 100, 0);
	close(ep);
}

static void edge_read_before(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLET);

	more(e, 3);
	show(e, e->fd, 100, 0);
	wait_on(e, ep, 0);
	more(e, 3);
	wait_on(e, ep, -1);
	show(e, e->fd, 1, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLET);
	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	close(ep);
}

/* The state at the time of ADD is reported once. */
static void edge_add(struct end *e)
{
	int ep;

	more(e, 3);
	ep = set_of(e, e->fd, EPOLLIN | EPOLLOUT | EPOLLET);
	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLET);
	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLOUT | EPOLLET);
	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	close(ep);
}

/* Until there is no room, and none comes: a buffer may have grown after the first refusal. */
static size_t fill(int fd)
{
	static char buf[50000];
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	size_t sum = 0;
	ssize_t r;

	do {
		while ((r = send(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
			sum += r;
	} while (poll(&room, 1, 20) > 0);
	return sum;
}

/* A full socket that is read empty becomes writable once. */
static void edge_out(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLOUT | EPOLLET);
	uint64_t sum;

	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	sum = fill(e->fd);
	say(e, "filled: %d", sum > 0);
	wait_on(e, ep, 0);
	pass(e, &sum, sizeof(sum));
	wait_on(e, ep, -1);
	await(e);
	TRY(e, send(e->fd, "x", 1, MSG_DONTWAIT));
	close(ep);
}

static void empty_peer(struct end *e)
{
	static char buf[65536];
	uint64_t sum;

	take(e, &sum, sizeof(sum));
	while (sum) {
		size_t want = sum < sizeof(buf) ? sum : sizeof(buf);

		sum -= MUST(e, recv(e->fd, buf, want, 0));
	}
	tell(e);
	show(e, e->fd, 1, MSG_WAITALL);
}

static void level_out(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLOUT);
	uint64_t sum;

	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	sum = fill(e->fd);
	wait_on(e, ep, 0);
	wait_on(e, ep, 10);
	pass(e, &sum, sizeof(sum));
	wait_on(e, ep, -1);
	await(e);
	wait_on(e, ep, 0);
	TRY(e, send(e->fd, "x", 1, MSG_DONTWAIT));
	wait_on(e, ep, 0);
	close(ep);
}

static void oneshot(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLONESHOT);

	more(e, 3);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	more(e, 6);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	show(e, e->fd, 100, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLONESHOT);
	wait_on(e, ep, 0);
	more(e, 3);
	wait_on(e, ep, -1);
	modify(e, ep, e->fd, EPOLLIN | EPOLLOUT | EPOLLONESHOT);
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	close(ep);
}

static void to_out(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);

	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLOUT);
	wait_on(e, ep, 0);
	more(e, 3);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN);
	wait_on(e, ep, -1);
	for (int i = 0; i < 50; i++) {
		struct epoll_event ev = {.events = i & 1 ? EPOLLIN : EPOLLOUT};

		MUST(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
		MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	}
	wait_on(e, ep, -1);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	wait_on(e, ep, 0);
	close(ep);
}

static void edge_end(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLRDHUP | EPOLLET);

	more(e, 3);
	wait_on(e, ep, -1);
	tell(e);
	await(e);
	ended(e, e->fd, POLLRDHUP);
	last_edge(e, ep);
	close(ep);
}

static void edge_end_peer(struct end *e)
{
	three_peer(e, 1);
	await(e);
	shutdown(e->fd, SHUT_WR);
	tell(e);
}

static void exclusive_wait(struct job *j)
{
	struct epoll_event ev;

	j->result = epoll_wait(j->fd, &ev, 1, -1);
	if (j->result == 1)
		j->result = accept4(ev.data.fd, NULL, NULL, SOCK_NONBLOCK);
	j->err = errno;
}

/* Three sets wait exclusively for one listener; three connections get three acceptors. */
static void exclusive_peer(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLEXCLUSIVE};
	struct job j[3];
	int accepted = 0;

	nonblock(e, e->lfd, 1);
	ev.data.fd = e->lfd;
	for (int i = 0; i < 3; i++) {
		int ep = MUST(e, epoll_create1(EPOLL_CLOEXEC));

		TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->lfd, &ev));
		if (!i)
			TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->lfd, &ev));
		job_start(e, &j[i], exclusive_wait, ep);
	}
	for (int i = 0; i < 3; i++)
		asleep(e, j[i].tid);
	tell(e);
	for (int i = 0; i < 3; i++) {
		job_join(e, &j[i]);
		accepted += j[i].result >= 0;
		close(j[i].result);
		close(j[i].fd);
	}
	say(e, "some were accepted: %d", accepted > 0);
	tell(e);
}

static void exclusive(struct end *e)
{
	int fd[3];

	await(e);
	for (int i = 0; i < 3; i++)
		fd[i] = dial(e);
	await(e);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
}

const struct test cases_epoll_modes[] = {
	{"epoll_edge_in", 0, edge_in, three3},
	{"epoll_edge_two_arrivals", 0, edge_two_arrivals, three2},
	{"epoll_edge_read_before", 0, edge_read_before, three2},
	{"epoll_edge_add", 0, edge_add, three1},
	{"epoll_edge_out", 0, edge_out, empty_peer},
	{"epoll_level_out", 0, level_out, empty_peer},
	{"epoll_oneshot", 0, oneshot, three3},
	{"epoll_to_out", 0, to_out, three1},
	{"epoll_edge_end", 0, edge_end, edge_end_peer},
	{"epoll_exclusive", RAW, exclusive, exclusive_peer},
	{NULL, 0, NULL, NULL},
};
