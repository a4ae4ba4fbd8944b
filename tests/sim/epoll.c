/* SPDX-License-Identifier: MIT */
/*
 * epoll as Linux does it: a ready list fed by wake-ups of scripted sockets, looked at again when the
 * program waits. Real descriptors and nested sets are asked every time (they are level-triggered).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/sim/sys.h"

#define ALWAYS (EPOLLERR | EPOLLHUP)
#define MODES (EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP)

struct sim_item {
	struct sim_ep *ep;
	int fd;
	struct sim_sock *sock;	/* NULL: a real descriptor or a set */
	uint32_t events;
	uint64_t data;
	bool listed;
	struct sim_item *next;		/* of the set */
	struct sim_item *next_of_sock;
	struct sim_item *next_ready;
};

struct sim_ep {
	struct sim_item *items;
	struct sim_item *first, **last;
	struct sim_ep *next;
};

static struct sim_ep *all;

struct sim_ep *sim_ep_create(void)
{
	struct sim_ep *ep = calloc(1, sizeof(*ep));

	ep->last = &ep->first;
	ep->next = all;
	all = ep;
	return ep;
}

static void list(struct sim_item *item)
{
	if (item->listed)
		return;
	item->listed = true;
	item->next_ready = NULL;
	*item->ep->last = item;
	item->ep->last = &item->next_ready;
}

static struct sim_item *unlist_first(struct sim_ep *ep)
{
	struct sim_item *item = ep->first;

	ep->first = item->next_ready;
	if (!ep->first)
		ep->last = &ep->first;
	item->listed = false;
	return item;
}

static void unlist(struct sim_item *item)
{
	struct sim_ep *ep = item->ep;
	struct sim_item **p = &ep->first;

	if (!item->listed)
		return;
	while (*p != item)
		p = &(*p)->next_ready;
	*p = item->next_ready;
	if (!item->next_ready)
		ep->last = p;
	item->listed = false;
}

void sim_epoll_wake(struct sim_item *items, uint32_t what)
{
	for (struct sim_item *item = items; item; item = item->next_of_sock)
		if (item->events & ~MODES && (!what || what & item->events))
			list(item);
}

/* --- what is true now --- */

static uint32_t ask(int fd, struct sim_sock *sock, uint32_t events)
{
	struct pollfd real = { .fd = fd, .events = events };

	if (sock)
		return sim_tcp_poll(sock) & (events | ALWAYS);
	return sim_poll(&real, 1) > 0 ? real.revents : 0;
}

static uint32_t item_ready(struct sim_item *item)
{
	if (!(item->events & ~MODES))
		return 0;
	return ask(item->fd, item->sock, item->events & ~MODES);
}

bool sim_ep_ready(struct sim_ep *ep)
{
	for (struct sim_item *item = ep->first; item; item = item->next_ready)
		if (item_ready(item))
			return true;
	for (struct sim_item *item = ep->items; item; item = item->next)
		if (!item->sock && item_ready(item))
			return true;
	return false;
}

/* --- changing --- */

static struct sim_item *find(struct sim_ep *ep, int fd)
{
	struct sim_item *item = ep->items;

	while (item && (item->fd != fd || item->sock != sim_sock_of[fd]))
		item = item->next;
	return item;
}

static void delete(struct sim_item *item)
{
	struct sim_item **p = &item->ep->items;

	unlist(item);
	while (*p != item)
		p = &(*p)->next;
	*p = item->next;
	if (item->sock) {
		for (p = &item->sock->items; *p != item; p = &(*p)->next_of_sock)
			;
		*p = item->next_of_sock;
	}
	free(item);
}

static void add(struct sim_ep *ep, int fd)
{
	struct sim_item *item = calloc(1, sizeof(*item));

	item->ep = ep;
	item->fd = fd;
	item->sock = sim_sock_of[fd];
	item->next = ep->items;
	ep->items = item;
	if (item->sock) {
		item->next_of_sock = item->sock->items;
		item->sock->items = item;
	}
}

static void modify(struct sim_item *item, const struct epoll_event *event)
{
	item->events = event->events | ALWAYS;
	item->data = event->data.u64;
	if (item->sock && item_ready(item))
		list(item);
}

int sim_ep_ctl(struct sim_ep *ep, int op, int fd, struct epoll_event *event)
{
	struct sim_item *item = find(ep, fd);

	if (op == EPOLL_CTL_ADD) {
		if (item)
			return -EEXIST;
		add(ep, fd);
		modify(ep->items, event);
		return 0;
	}
	if (!item)
		return -ENOENT;
	if (op == EPOLL_CTL_DEL)
		delete(item);
	else
		modify(item, event);
	return 0;
}

void sim_ep_destroy(struct sim_ep *ep)
{
	struct sim_ep **p = &all;

	while (ep->items)
		delete(ep->items);
	while (*p != ep)
		p = &(*p)->next;
	*p = ep->next;
	free(ep);
}

void sim_ep_forget_sock(struct sim_sock *sock)
{
	while (sock->items)
		delete(sock->items);
}

void sim_ep_forget_real(int fd)
{
	for (struct sim_ep *ep = all; ep; ep = ep->next) {
		struct sim_item *next;

		for (struct sim_item *item = ep->items; item; item = next) {
			next = item->next;
			if (item->fd == fd && !item->sock)
				delete(item);
		}
	}
}

/* --- waiting --- */

static bool report(struct sim_item *item, struct epoll_event *event)
{
	uint32_t ready = item_ready(item);

	if (!ready)
		return false;
	event->events = ready;
	event->data.u64 = item->data;
	if (item->events & EPOLLONESHOT)
		item->events &= MODES;
	else if (item->sock && !(item->events & EPOLLET))
		list(item);
	return true;
}

int sim_ep_wait(struct sim_ep *ep, struct epoll_event *events, int max)
{
	struct sim_item *item;
	int n = 0, listed = 0;

	for (item = ep->first; item; item = item->next_ready)
		listed++;
	while (listed-- && n < max)
		n += report(unlist_first(ep), &events[n]);
	for (item = ep->items; item && n < max; item = item->next)
		if (!item->sock)
			n += report(item, &events[n]);
	return n;
}

void sim_ep_show(struct sim_ep *ep, int depth)
{
	for (struct sim_item *item = ep->items; item; item = item->next) {
		printf("# %*s fd %d events %x listed %d ready %x\n", depth, "", item->fd, item->events,
		       item->listed, item_ready(item));
		if (!item->sock && sim_ep_of[item->fd])
			sim_ep_show(sim_ep_of[item->fd], depth + 4);
	}
}
