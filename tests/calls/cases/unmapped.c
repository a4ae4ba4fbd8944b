/* SPDX-License-Identifier: MIT */
/*
 * Pointers into pages that may not be read, or not be written: the kernel says EFAULT. Calls that
 * move bytes of a connection are in faults.c.
 */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>

/* Somewhere in a page. */
static void *page(struct end *e, int protection)
{
	void *p = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(e, p == MAP_FAILED ? -1 : 0);
	return (char *)p + 256;
}

static void *shut(struct end *e)
{
	return page(e, PROT_NONE);
}

static void *fixed(struct end *e)
{
	return page(e, PROT_READ);
}

static void connects(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	int l = make_listener(e, 0), a, b;
	struct sockaddr_in none = {.sin_family = AF_UNSPEC};
	socklen_t len = sizeof(e->addr);

	TRY(e, connect(fd, shut(e), 16));
	TRY(e, connect(fd, (struct sockaddr *)&none, sizeof(none)));
	TRY(e, bind(fd, shut(e), 16));
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, sizeof(struct sockaddr_in)));
	b = MUST(e, accept(l, NULL, NULL));
	TRY(e, connect(fd, shut(e), 16));
	put(e, fd, "x");
	show(e, b, 1, 0);
	TRY(e, connect(fd, shut(e), 16));
	TRY(e, connect(fd, (struct sockaddr *)&none, sizeof(none)));
	close(b);
	close(fd);
	a = dial(e);
	TRY(e, accept(l, shut(e), &len));
	close(a);
	a = dial(e);
	TRY(e, accept4(l, (struct sockaddr *)&e->addr, shut(e), SOCK_CLOEXEC));
	close(a);
	close(l);
}

static void options(struct end *e)
{
	int v = 1;
	socklen_t len = sizeof(v);

	tens(e);
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, shut(e), &len));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &v, shut(e)));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, fixed(e), &len));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_LINGER, shut(e), &len));
	TRY(e, getsockname(e->fd, shut(e), &len));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, shut(e), 16));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, shut(e), 8));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, shut(e), 4));
	TRY(e, ioctl(e->fd, FIONREAD, shut(e)));
	TRY(e, ioctl(e->fd, FIONREAD, fixed(e)));
	TRY(e, ioctl(e->fd, TIOCOUTQ, shut(e)));
	TRY(e, ioctl(e->fd, FIONBIO, shut(e)));
	untouched(e);
}

static void polls(struct end *e)
{
	struct pollfd *there = page(e, PROT_READ | PROT_WRITE), p = {.fd = e->fd, .events = POLLIN};
	fd_set *set = page(e, PROT_READ | PROT_WRITE);

	tens(e);
	TRY(e, poll(shut(e), 1, 0));
	TRY(e, poll(shut(e), 3, -1));
	TRY(e, ppoll(shut(e), 1, NULL, NULL));
	TRY(e, ppoll(&p, 1, NULL, shut(e)));
	*there = p;
	TRY(e, poll(there, 1, 0));
	bits(e, "revents", there->revents);
	TRY(e, select(e->fd + 1, shut(e), NULL, NULL, NULL));
	FD_ZERO(set);
	FD_SET(e->fd, set);
	TRY(e, select(e->fd + 1, set, shut(e), NULL, NULL));
	TRY(e, pselect(e->fd + 1, set, NULL, shut(e), NULL, NULL));
	TRY(e, select(e->fd + 1, set, NULL, NULL, NULL));
	say(e, "set %d", !!FD_ISSET(e->fd, set));
	untouched(e);
}

/* An answer that cannot be written. */
static void answers(struct end *e)
{
	struct pollfd *there = page(e, PROT_READ | PROT_WRITE);
	fd_set *set = page(e, PROT_READ | PROT_WRITE);

	tens(e);
	*there = (struct pollfd){.fd = e->fd, .events = POLLIN};
	mprotect((char *)there - 256, 4096, PROT_READ);
	TRY(e, poll(there, 1, -1));
	FD_ZERO(set);
	FD_SET(e->fd, set);
	mprotect((char *)set - 256, 4096, PROT_READ);
	TRY(e, select(e->fd + 1, set, NULL, NULL, NULL));
	untouched(e);
}

static void epolls(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN}, *events = page(e, PROT_READ | PROT_WRITE);
	int ep = MUST(e, epoll_create1(0));

	tens(e);
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, shut(e)));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, &ev));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, shut(e)));
	TRY(e, epoll_wait(ep, shut(e), 1, -1));
	TRY(e, epoll_wait(ep, fixed(e), 8, -1));
	TRY(e, epoll_pwait(ep, shut(e), 1, 0, NULL));
	TRY(e, epoll_pwait(ep, &ev, 1, 0, shut(e)));
	TRY(e, epoll_pwait2(ep, &ev, 1, shut(e), NULL));
	TRY(e, epoll_wait(ep, events, 8, -1));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, shut(e)));
	TRY(e, epoll_wait(ep, shut(e), 1, 0));
	close(ep);
	untouched(e);
}

/* Of another kind of socket, which may carry descriptors. */
static void messages(struct end *e)
{
	int pair[2], file = MUST(e, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	char c = 'x';
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = shut(e), .msg_controllen = 20};

	tens(e);
	MUST(e, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	TRY(e, sendmsg(pair[0], shut(e), 0));
	TRY(e, sendmsg(pair[0], &m, 0));
	TRY(e, sendmmsg(pair[0], shut(e), 2, 0));
	TRY(e, recvmsg(pair[1], shut(e), MSG_DONTWAIT));
	TRY(e, sendto(e->fd, &c, 1, 0, shut(e), 16));
	TRY(e, recvmmsg(e->fd, NULL, 1, 0, shut(e)));
	TRY(e, sendfile(e->fd, file, shut(e), 10));
	TRY(e, recvfrom(e->fd, &c, 1, 0, (struct sockaddr *)&e->addr, shut(e)));
	close(pair[0]);
	close(pair[1]);
	close(file);
	untouched(e);
}

const struct test cases_unmapped[] = {
	{"unmapped_connect", ALONE, connects, NULL},
	{"unmapped_options", 0, options, tens_peer},
	{"unmapped_poll", 0, polls, tens_peer},
	{"unmapped_answers", 0, answers, tens_peer},
	{"unmapped_epoll", 0, epolls, tens_peer},
	{"unmapped_messages", 0, messages, tens_peer},
	{NULL, 0, NULL, NULL},
};
