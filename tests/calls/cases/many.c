/* SPDX-License-Identifier: MIT */
/* Many connections, at once or one after the other. */
#include "cases.h"

#include <sys/epoll.h>

#define AT_ONCE 200
#define CYCLES 1000

static void at_once(struct end *e)
{
	int fd[AT_ONCE];
	long right = 0;
	char c;

	for (int i = 0; i < AT_ONCE; i++)
		fd[i] = dial(e);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			MUST(e, send(fd[i], &(char){i}, 1, 0));
		for (int i = AT_ONCE - 1; i >= 0; i--) {
			get(e, fd[i], &c, 1);
			right += c == (char)i;
		}
	}
	say(e, "%ld right answers", right);
	for (int i = 0; i < AT_ONCE; i++)
		MUST(e, close(fd[i]));
	meet(e);
}

static void serve(struct end *e, int ep, int fd, int *left)
{
	char buf[64];
	ssize_t r;

	if (fd == e->lfd) {
		struct epoll_event ev = {.events = EPOLLIN, .data.fd = pick_up(e)};

		MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev));
		return;
	}
	r = MUST(e, recv(fd, buf, sizeof(buf), MSG_DONTWAIT));
	if (r) {
		MUST(e, send(fd, buf, r, MSG_NOSIGNAL));
		return;
	}
	MUST(e, close(fd));
	--*left;
}

static void at_once_peer(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = e->lfd}, ready[16];
	int ep = MUST(e, epoll_create1(0)), left = AT_ONCE;

	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->lfd, &ev));
	while (left) {
		int n = MUST(e, epoll_wait(ep, ready, 16, -1));

		for (int i = 0; i < n; i++)
			serve(e, ep, ready[i].data.fd, &left);
	}
	say(e, "all served");
	TRY(e, epoll_wait(ep, ready, 16, 0));
	close(ep);
	meet(e);
}

static void cycles(struct end *e)
{
	long right = 0;

	for (int i = 0; i < CYCLES; i++) {
		int fd = dial(e);
		char c = 0;

		MUST(e, send(fd, &(char){i}, 1, 0));
		get(e, fd, &c, 1);
		right += c == (char)(i + 1);
		MUST(e, close(fd));
	}
	say(e, "%ld right answers", right);
}

static void cycles_peer(struct end *e)
{
	for (int i = 0; i < CYCLES; i++) {
		int fd = pick_up(e);
		char c = 0;

		get(e, fd, &c, 1);
		c++;
		MUST(e, send(fd, &c, 1, MSG_NOSIGNAL));
		if (i % 100 == 0)
			show(e, fd, 1, 0);
		MUST(e, close(fd));
	}
}

/* Connections that are never used at all. */
static void unused(struct end *e)
{
	int fd[50];

	for (int i = 0; i < 50; i++)
		fd[i] = dial(e);
	meet(e);
	for (int i = 0; i < 50; i++)
		close(fd[i]);
	meet(e);
}

static void unused_peer(struct end *e)
{
	int fd[50], ends = 0;

	for (int i = 0; i < 50; i++)
		fd[i] = pick_up(e);
	meet(e);
	meet(e);
	for (int i = 0; i < 50; i++) {
		ends += recv(fd[i], &(char){0}, 1, 0) == 0;
		close(fd[i]);
	}
	say(e, "%d ends", ends);
}

const struct test cases_many[] = {
	{"many_at_once", RAW, at_once, at_once_peer},
	{"many_cycles", RAW, cycles, cycles_peer},
	{"many_unused", RAW, unused, unused_peer},
	{NULL, 0, NULL, NULL},
};
