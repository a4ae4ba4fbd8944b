/* SPDX-License-Identifier: MIT */
/*
 * Pointers that cannot be: the kernel says EFAULT and nothing else happens. (Below the lowest address that can be
 * mapped, or in the kernel's half; faults.c has others.)
 */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <time.h>

/* Unknown to the compiler. */
static void *low(void)
{
	return (void *)(uintptr_t)hidden(4096);
}

static void *high(void)
{
	return (void *)(uintptr_t)(0xffff800000000000ull + hidden(4096));
}

static void buffers(struct end *e)
{
	tens(e);
	for (int i = 0; i < 3; i++) {
		void *p = i == 0 ? NULL : i == 1 ? low() : high();

		TRY(e, recv(e->fd, p, 5, 0));
		TRY(e, recv(e->fd, p, 5, MSG_PEEK));
		TRY(e, recv(e->fd, p, 5, MSG_DONTWAIT | MSG_WAITALL));
		TRY(e, read(e->fd, p, 5));
		TRY(e, recvfrom(e->fd, p, 5, 0, NULL, NULL));
		TRY(e, send(e->fd, p, 5, MSG_NOSIGNAL));
		TRY(e, write(e->fd, p, 5));
		TRY(e, sendto(e->fd, p, 5, 0, NULL, 0));
	}
	untouched(e);
}

/* No bytes asked for: the pointer is not looked at. */
static void of_nothing(struct end *e)
{
	tens(e);
	TRY(e, read(e->fd, low(), 0));
	TRY(e, write(e->fd, low(), 0));
	TRY(e, send(e->fd, low(), 0, 0));
	TRY(e, recv(e->fd, low(), 0, MSG_DONTWAIT));
	TRY(e, readv(e->fd, low(), 0));
	TRY(e, writev(e->fd, low(), 0));
	untouched(e);
}

static void arrays(struct end *e)
{
	struct msghdr m = {.msg_iov = low(), .msg_iovlen = 2};
	struct iovec v = {.iov_base = &m, .iov_len = 0};

	tens(e);
	TRY(e, readv(e->fd, low(), 2));
	TRY(e, writev(e->fd, low(), 2));
	TRY(e, readv(e->fd, high(), 2));
	TRY(e, recvmsg(e->fd, &m, 0));
	TRY(e, sendmsg(e->fd, &m, 0));
	TRY(e, recvmsg(e->fd, high(), 0));
	TRY(e, sendmsg(e->fd, high(), 0));
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	TRY(e, sendmsg(e->fd, &m, 0));
	untouched(e);
}

/* A good piece before a bad one: what the kernel has in one buffer it copies whole or not at all. */
static void second_piece(struct end *e)
{
	char buf[4];
	struct iovec v[2] = {{.iov_base = buf, .iov_len = 4}, {.iov_base = low(), .iov_len = 4}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	tens(e);
	TRY(e, readv(e->fd, v, 2));
	TRY(e, recvmsg(e->fd, &m, MSG_PEEK));
	TRY(e, writev(e->fd, v, 2));
	TRY(e, sendmsg(e->fd, &m, 0));
	untouched(e);
}

/* Only the good piece is needed. */
static void second_unused(struct end *e)
{
	char buf[20];
	struct iovec v[2] = {{.iov_base = buf, .iov_len = 10}, {.iov_base = low(), .iov_len = 4}};

	tens(e);
	text(e, "readv", buf, readv(e->fd, v, 2));
	untouched(e);
}

static void names(struct end *e)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);
	char c;
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_name = low(), .msg_namelen = 16};

	tens(e);
	TRY(e, sendmsg(e->fd, &m, 0));
	TRY(e, sendto(e->fd, "x", 1, 0, low(), 16));
	TRY(e, sendto(e->fd, "x", 1, 0, (struct sockaddr *)&a, 4000));
	TRY(e, getsockname(e->fd, low(), &len));
	TRY(e, getpeername(e->fd, low(), &len));
	TRY(e, getsockname(e->fd, (struct sockaddr *)&a, low()));
	len = hidden(-1);
	TRY(e, getpeername(e->fd, (struct sockaddr *)&a, &len));
	untouched(e);
}

/* A name is written after the bytes were taken: those are lost. */
static void names_received(struct end *e)
{
	struct sockaddr_storage a;
	socklen_t len = hidden(-1);
	char c = 0;
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_name = low(), .msg_namelen = 16};

	tens(e);
	TRY(e, recvfrom(e->fd, &c, 1, 0, (struct sockaddr *)&a, low()));
	TRY(e, recvfrom(e->fd, &c, 1, 0, (struct sockaddr *)&a, &len));
	len = sizeof(a);
	TRY(e, recvfrom(e->fd, &c, 1, 0, low(), &len));
	TRY(e, recvfrom(e->fd, &c, 1, 0, NULL, low()));
	TRY(e, recvmsg(e->fd, &m, 0));
	m.msg_name = &a;
	m.msg_namelen = hidden(-1);
	TRY(e, recvmsg(e->fd, &m, 0));
	untouched(e);
}

static void options(struct end *e)
{
	int v = 1;
	socklen_t len = sizeof(v);

	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, low(), &len));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &v, low()));
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, high(), &len));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, low(), sizeof(v)));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, low(), 16));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_LINGER, low(), 8));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, low(), 4));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &v, 2));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVTIMEO, &v, sizeof(v)));
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &v, 1));
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_RCVLOWAT, &v, hidden(-1)));
	len = 1;
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_TYPE, &v, &len));
	say(e, "length %u", len);
	len = 2;
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &v, &len));
	say(e, "length %u", len);
	len = hidden(-1);
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, &v, &len));
	len = 0;
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_ERROR, NULL, &len));
	ask(e, e->fd);
	TRY(e, shutdown(e->fd, SHUT_WR));
	show(e, e->fd, 1, 0);
}

static void controls(struct end *e)
{
	tens(e);
	TRY(e, ioctl(e->fd, FIONREAD, low()));
	TRY(e, ioctl(e->fd, FIONREAD, NULL));
	TRY(e, ioctl(e->fd, TIOCOUTQ, low()));
	TRY(e, ioctl(e->fd, FIONBIO, low()));
	TRY(e, ioctl(e->fd, FIOASYNC, low()));
	say(e, "flags %o", fcntl(e->fd, F_GETFL) & (O_NONBLOCK | O_ASYNC));
	untouched(e);
}

static void polls(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	struct timespec odd = {.tv_nsec = 1000000000}, minus = {.tv_sec = -1};

	tens(e);
	TRY(e, poll(low(), 1, 0));
	TRY(e, poll(high(), 1, 0));
	TRY(e, poll(low(), 0, 0));
	TRY(e, ppoll(low(), 1, NULL, NULL));
	TRY(e, ppoll(&p, 1, &odd, NULL));
	TRY(e, ppoll(&p, 1, &minus, NULL));
	TRY(e, ppoll(&p, 1, NULL, low()));
	TRY(e, poll(&p, hidden(-1), 0));
	untouched(e);
}

static void selects(struct end *e)
{
	struct timeval minus = {.tv_sec = -1}, none = {0};
	struct timespec odd = {.tv_nsec = -5};
	fd_set r;

	tens(e);
	FD_ZERO(&r);
	FD_SET(e->fd, &r);
	TRY(e, select(e->fd + 1, low(), NULL, NULL, &none));
	TRY(e, select(e->fd + 1, &r, low(), NULL, &none));
	TRY(e, select(e->fd + 1, &r, NULL, high(), &none));
	TRY(e, select(e->fd + 1, &r, NULL, NULL, &minus));
	TRY(e, select(hidden(-1), &r, NULL, NULL, &none));
	TRY(e, pselect(e->fd + 1, low(), NULL, NULL, NULL, NULL));
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, &odd, NULL));
	TRY(e, pselect(e->fd + 1, &r, NULL, NULL, NULL, low()));
	say(e, "set %d", !!FD_ISSET(e->fd, &r));
	untouched(e);
}

static void epolls(struct end *e)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct timespec odd = {.tv_nsec = 1000000000};
	int ep = set_of(e, e->fd, EPOLLIN);

	tens(e);
	TRY(e, epoll_wait(ep, low(), 1, 0));
	TRY(e, epoll_wait(ep, high(), 1, 0));
	TRY(e, epoll_pwait(ep, low(), 1, 0, NULL));
	TRY(e, epoll_pwait(ep, &ev, 1, 0, low()));
	TRY(e, epoll_pwait2(ep, &ev, 1, low(), NULL));
	TRY(e, epoll_pwait2(ep, &ev, 1, &odd, NULL));
	TRY(e, epoll_wait(ep, &ev, 0, 0));
	TRY(e, epoll_wait(ep, &ev, hidden(0x7fffffff), 0));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, low()));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, e->fd, high()));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_DEL, e->fd, low()));
	TRY(e, epoll_ctl(ep, EPOLL_CTL_ADD, e->fd, low()));
	wait_on(e, ep, 0);
	close(ep);
	untouched(e);
}

static void messages(struct end *e)
{
	struct timespec odd = {.tv_nsec = -1}, none = {0};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = low(), .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = low(), .msg_iovlen = 1}}};

	tens(e);
	TRY(e, recvmmsg(e->fd, low(), 1, 0, NULL));
	TRY(e, sendmmsg(e->fd, low(), 1, 0));
	TRY(e, recvmmsg(e->fd, m, 2, 0, NULL));
	TRY(e, sendmmsg(e->fd, m, 2, 0));
	TRY(e, recvmmsg(e->fd, m, 1, 0, low()));
	TRY(e, recvmmsg(e->fd, m, 1, 0, &odd));
	TRY(e, recvmmsg(e->fd, m, 0, 0, &none));
	TRY(e, sendmmsg(e->fd, low(), 0, 0));
	untouched(e);
}

/* The first message is good, the second is not. */
static void second_message(struct end *e)
{
	char buf[5];
	struct iovec v = {.iov_base = buf, .iov_len = 5}, w = {.iov_base = low(), .iov_len = 5};
	struct mmsghdr m[2] = {{.msg_hdr = {.msg_iov = &v, .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = &w, .msg_iovlen = 1}}};

	tens(e);
	memcpy(buf, "SHORT", 5);
	TRY(e, sendmmsg(e->fd, m, 2, 0));
	say(e, "length %u", m[0].msg_len);
	TRY(e, recvmmsg(e->fd, m, 2, MSG_DONTWAIT, NULL));
	say(e, "length %u, %.5s", m[0].msg_len, buf);
	so_error(e, e->fd);
	untouched(e);
}

static void second_message_peer(struct end *e)
{
	tens(e);
	arrived(e, e->fd, 15);
	meet(e);
	show(e, e->fd, 100, MSG_DONTWAIT);
}

static void files(struct end *e)
{
	int file = MUST(e, open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
	off_t minus = -1;

	tens(e);
	TRY(e, sendfile(e->fd, file, low(), 10));
	TRY(e, sendfile(e->fd, file, high(), 10));
	TRY(e, sendfile(e->fd, file, &minus, 10));
	TRY(e, sendfile(e->fd, file, NULL, (size_t)hidden(-1)));
	say(e, "file position %ld", (long)lseek(file, 0, SEEK_CUR));
	close(file);
	untouched(e);
}

/* connect, and the address of accept. */
static void connects(struct end *e)
{
	int fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	int l = make_listener(e, 0), a, b;
	socklen_t len = sizeof(e->addr);

	TRY(e, connect(fd, low(), 16));
	TRY(e, connect(fd, high(), 16));
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, 2));
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, hidden(-1)));
	TRY(e, bind(fd, low(), 16));
	a = dial(e);
	put(e, a, "a");
	TRY(e, accept(l, low(), &len));
	ended(e, a, POLLHUP);
	bits(e, "poll of the lost one", polled(a, POLLIN | POLLOUT, 0));
	close(a);
	a = dial(e);
	TRY(e, accept(l, (struct sockaddr *)&e->addr, low()));
	close(a);
	a = dial(e);
	b = MUST(e, accept(l, NULL, low()));
	put(e, a, "a");
	show(e, b, 1, 0);
	close(a);
	close(b);
	close(l);
	close(fd);
}

const struct test cases_pointers[] = {
	{"pointer_buffers", 0, buffers, tens_peer},
	{"pointer_of_nothing", 0, of_nothing, tens_peer},
	{"pointer_arrays", 0, arrays, tens_peer},
	{"pointer_second_piece", 0, second_piece, tens_peer},
	{"pointer_second_unused", 0, second_unused, tens_peer},
	{"pointer_names", 0, names, tens_peer},
	{"pointer_names_received", 0, names_received, tens_peer},
	{"pointer_options", 0, options, echo_peer},
	{"pointer_controls", 0, controls, tens_peer},
	{"pointer_poll", 0, polls, tens_peer},
	{"pointer_select", 0, selects, tens_peer},
	{"pointer_epoll", 0, epolls, tens_peer},
	{"pointer_messages", 0, messages, tens_peer},
	{"pointer_second_message", 0, second_message, second_message_peer},
	{"pointer_files", 0, files, tens_peer},
	{"pointer_connect", ALONE, connects, NULL},
	{NULL, 0, NULL, NULL},
};
