/* SPDX-License-Identifier: MIT */
/* epoll: level-triggered sets, what epoll_ctl says, and what becomes of closed descriptors. */
#include "cases.h"

#include <sys/epoll.h>

static void level(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN);

	wait_on(e, ep, 0);
	tell(e);
	wait_on(e, ep, -1);
	await(e);
	arrived(e, e->fd, 5);
	wait_on(e, ep, 0);
	wait_on(e, ep, -1);
	show(e, e->fd, 2, 0);
	wait_on(e, ep, 0);
	show(e, e->fd, 10, 0);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLOUT);
	wait_on(e, ep, 0);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, 0);
	have(e, 1);
	wait_on(e, ep, 0);
	modify(e, ep, e->fd, EPOLLIN | EPOLLRDHUP);
	wait_on(e, ep, -1);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	wait_on(e, ep, -1);
	show(e, e->fd, 10, 0);
	wait_on(e, ep, -1);
	show(e, e->fd, 10, 0);
	wait_on(e, ep, -1);
	close(ep);
}

static void level_peer(struct end *e)
{
	supply(e, "12345");
	meet(e);
	put(e, e->fd, "6");
	meet(e);
	shutdown(e->fd, SHUT_WR);
}

static void control(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(0)), file = MUST(e, open("/proc/self/exe", O_RDONLY));

	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, NULL));
	TRY(e, epoll_ctl(ep, 77, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, -1, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, 19999, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, ep, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, file, &ev));
	TRY(e, epoll_ctl(e->fd, EPOLL_CTL_ADD, ep, &ev));
	TRY(e, epoll_ctl(-1, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, NULL));
	TRY(e, epoll_wait(ep, &ev, 0, 0));
	TRY(e, epoll_wait(ep, &ev, hidden(-1), 0));
	TRY(e, epoll_wait(e->fd, &ev, 1, 0));
	TRY(e, epoll_wait(-1, &ev, 1, 0));
	TRY(e, epoll_create(0));
	TRY(e, epoll_create1(0x123));
	close(ep);
	close(file);
}

static void user_data(struct end *e)
{
	struct epoll_event ev = {0};
	int ep = set_of(e, e->fd, EPOLLOUT);

	TRY(e, epoll_wait(ep, &ev, 1, -1));
	say(e, "data %llx", (unsigned long long)ev.data.u64);
	ev.events = EPOLLOUT;
	ev.data.ptr = e;
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, &ev));
	memset(&ev, 0, sizeof(ev));
	TRY(e, epoll_wait(ep, &ev, 1, -1));
	say(e, "pointer %s", ev.data.ptr == e ? "right" : "wrong");
	close(ep);
}

static void in_two_sets(struct end *e)
{
	int a = set_of(e, e->fd, EPOLLIN), b = set_of(e, e->fd, EPOLLIN | EPOLLET);

	tell(e);
	wait_on(e, a, -1);
	await(e);
	wait_on(e, b, -1);
	wait_on(e, a, -1);
	wait_on(e, b, 0);
	TRY(e, epoll_ctl(a, EPOLL_CTL_DEL, e->fd, NULL));
	wait_on(e, a, 0);
	tell(e);
	wait_on(e, b, -1);
	await(e);
	show(e, e->fd, 10, MSG_WAITALL | MSG_DONTWAIT);
	close(a);
	close(b);
}

static void two_sends_peer(struct end *e)
{
	supply(e, "one");
	supply(e, "two");
}

static void reset_events(struct end *e)
{
	int in = set_of(e, e->fd, EPOLLIN), none = set_of(e, e->fd, 0);

	meet(e);
	ended(e, e->fd, POLLHUP);
	wait_on(e, none, -1);
	wait_on(e, in, -1);
	modify(e, in, e->fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	wait_on(e, in, -1);
	show(e, e->fd, 1, 0);
	wait_on(e, none, -1);
	wait_on(e, in, -1);
	close(in);
	close(none);
}

static void reset_peer(struct end *e)
{
	reset_on_close(e, e->fd);
	close(e->fd);
	meet(e);
}

static void own_shutdown(struct end *e)
{
	int ep = set_of(e, e->fd, EPOLLIN | EPOLLRDHUP);

	wait_on(e, ep, 0);
	TRY(e, shutdown(e->fd, SHUT_WR));
	wait_on(e, ep, 0);
	TRY(e, shutdown(e->fd, SHUT_RD));
	wait_on(e, ep, 0);
	meet(e);
	close(ep);
}

/* A closed descriptor leaves its sets; a duplicate keeps it in. */
static void closing(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int ep = MUST(e, epoll_create1(0)), a = MUST(e, dup(e->fd)), b = MUST(e, dup(a));

	more(e, 3);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, a, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, b, &ev));
	wait_on(e, ep, -1);
	close(b);
	wait_on(e, ep, -1);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, b, NULL));
	close(a);
	wait_on(e, ep, -1);
	close(e->fd);
	wait_on(e, ep, 0);
	close(ep);
	tell(e);
}

static void closing_peer(struct end *e)
{
	supply(e, "one");
	await(e);
}

/* A number that is used again is a new descriptor, in no set. */
static void number_again(struct end *e)
{
	int ep, fd = dial(e), next;

	warm(e, fd);
	ep = set_of(e, fd, EPOLLOUT);
	wait_on(e, ep, 0);
	close(fd);
	next = dial(e);
	say(e, "same number %d", next == fd);
	warm(e, next);
	wait_on(e, ep, 0);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, next, &(struct epoll_event){0}));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, next, &(struct epoll_event){.events = EPOLLOUT}));
	wait_on(e, ep, 0);
	close(next);
	close(ep);
}

static void number_again_peer(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		int fd = pick_up_warm(e);

		drain(e, fd);
		close(fd);
	}
}

const struct test cases_epoll[] = {
	{"epoll_level", 0, level, level_peer},
	{"epoll_control", 0, control, nothing},
	{"epoll_user_data", 0, user_data, nothing},
	{"epoll_two_sets", 0, in_two_sets, two_sends_peer},
	{"epoll_reset", 0, reset_events, reset_peer},
	{"epoll_own_shutdown", 0, own_shutdown, meet_only},
	{"epoll_closing", 0, closing, closing_peer},
	{"epoll_number_again", RAW | PROCS, number_again, number_again_peer},
	{NULL, 0, NULL, NULL},
};
