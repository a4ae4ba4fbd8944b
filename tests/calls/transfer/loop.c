/* SPDX-License-Identifier: MIT */
/* How the ends wait: two threads a connection, or one loop over all of them. */
#include "transfer.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/select.h>

static void *sender(void *arg)
{
	struct conn *c = arg;

	while (!c->tx.done)
		send_some(c);
	return NULL;
}

static void *receiver(void *arg)
{
	struct conn *c = arg;

	while (!c->rx.done)
		recv_some(c);
	return NULL;
}

void run_threads(struct conn *c, int n)
{
	pthread_t *t = calloc(2 * n, sizeof(*t));

	for (int i = 0; i < n; i++) {
		if (pthread_create(&t[2 * i], NULL, sender, &c[i]) ||
		    pthread_create(&t[2 * i + 1], NULL, receiver, &c[i]))
			fail(&c[i], "no thread", 0);
	}
	for (int i = 0; i < 2 * n; i++)
		pthread_join(t[i], NULL);
	free(t);
}

static int wanted(const struct conn *c)
{
	return (c->rx.done ? 0 : POLLIN) | (c->tx.done ? 0 : POLLOUT);
}

static int by_poll(struct conn *c, int n)
{
	struct pollfd p[n];

	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){.fd = wanted(&c[i]) ? c[i].fd : -1,
				       .events = wanted(&c[i])};
	if (poll(p, n, -1) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		c[i].ready = p[i].fd < 0 ? 0 : p[i].revents;
	return 0;
}

static int by_select(struct conn *c, int n)
{
	fd_set r, w;
	int max = -1;

	FD_ZERO(&r);
	FD_ZERO(&w);
	for (int i = 0; i < n; i++) {
		if (wanted(&c[i]) & POLLIN)
			FD_SET(c[i].fd, &r);
		if (wanted(&c[i]) & POLLOUT)
			FD_SET(c[i].fd, &w);
		if (c[i].fd > max)
			max = c[i].fd;
	}
	if (select(max + 1, &r, &w, NULL, NULL) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		c[i].ready = (FD_ISSET(c[i].fd, &r) ? POLLIN : 0) |
			     (FD_ISSET(c[i].fd, &w) ? POLLOUT : 0);
	return 0;
}

/* Level and one-shot sets are told anew what is wanted; an edge set is told once. */
static void rearm(int ep, struct conn *c, int op)
{
	struct epoll_event ev = {.data.ptr = c};

	ev.events = wanted(c);
	if (opt->mode == EPOLL_ET)
		ev.events = EPOLLIN | EPOLLOUT | EPOLLET;
	if (opt->mode == EPOLL_ONESHOT)
		ev.events |= EPOLLONESHOT;
	if (wanted(c) == 0 && op == EPOLL_CTL_MOD)
		op = EPOLL_CTL_DEL;
	if (epoll_ctl(ep, op, c->fd, &ev))
		fail(c, "epoll_ctl failed", 0);
}

static int by_epoll(int ep, struct conn *c, int n)
{
	struct epoll_event ev[8];
	int busy = 0, r;

	for (int i = 0; i < n; i++)
		busy |= c[i].ready & wanted(&c[i]);
	r = epoll_wait(ep, ev, 8, busy ? 0 : -1);
	for (int i = 0; i < r; i++)
		((struct conn *)ev[i].data.ptr)->ready |= ev[i].events;
	return r < 0 ? -1 : 0;
}

static void step(struct conn *c)
{
	if (c->ready & (POLLERR | POLLHUP))
		c->ready |= POLLIN;
	if (c->ready & POLLOUT && !c->tx.done && !send_some(c))
		c->ready &= ~POLLOUT;
	if (c->ready & POLLIN && !c->rx.done && !recv_some(c))
		c->ready &= ~POLLIN;
}

static int wait_all(int ep, struct conn *c, int n)
{
	if (opt->mode == POLL)
		return by_poll(c, n);
	if (opt->mode == SELECT)
		return by_select(c, n);
	return by_epoll(ep, c, n);
}

/* One step for every ready connection. Returns how many connections are left. */
static int turn(int ep, struct conn *c, int n, int *asked)
{
	int left = 0;

	for (int i = 0; i < n; i++) {
		int ready = c[i].ready;

		step(&c[i]);
		if (opt->mode != EPOLL_ET)
			c[i].ready = 0;
		if ((opt->mode == EPOLL_LT && wanted(&c[i]) != asked[i]) ||
		    (opt->mode == EPOLL_ONESHOT && ready))
			rearm(ep, &c[i], EPOLL_CTL_MOD);
		asked[i] = wanted(&c[i]);
		left += asked[i] != 0;
	}
	return left;
}

void run_loop(struct conn *c, int n)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), *asked = calloc(n, sizeof(*asked));

	for (int i = 0; i < n; i++) {
		if (fcntl(c[i].fd, F_SETFL, fcntl(c[i].fd, F_GETFL) | O_NONBLOCK))
			fail(&c[i], "fcntl failed", 0);
		asked[i] = wanted(&c[i]);
		if (opt->mode >= EPOLL_LT && asked[i])
			rearm(ep, &c[i], EPOLL_CTL_ADD);
	}
	do {
		if (wait_all(ep, c, n))
			fail(c, "waiting failed", 0);
	} while (turn(ep, c, n, asked));
	close(ep);
	free(asked);
}
