/* SPDX-License-Identifier: MIT */
/* Connections come and go, and what was sent has arrived: certain, whatever the sequence. */
#include <poll.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gen.h"

void arrange(const struct cmd *c, struct reply *r)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = fds[c->conn][0], n = 0;

	switch (c->kind) {
	case LISTEN:
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r->r = bind(listener, (struct sockaddr *)&a, len) | listen(listener, 10);
		getsockname(listener, (struct sockaddr *)&r->addr, &len);
		for (int i = 0; i < SETS; i++)
			sets[i] = epoll_create1(EPOLL_CLOEXEC);
		break;
	case CONNECT:
		fd = fds[c->conn][0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r->r = connect(fd, (struct sockaddr *)&c->addr, sizeof(c->addr));
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		break;
	case ACCEPT:
		fd = fds[c->conn][0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		r->r = fd < 0 ? -1 : 0;
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
		break;
	case CLOSE:
		if (c->dup)
			close(fds[c->conn][1]);
		fds[c->conn][1] = 0;
		r->r = close(fd);
		break;
	case ARRIVED:
		for (int i = 0; i < 8000 && !(r->r = ioctl(fd, FIONREAD, &n)) && n != c->n; i++)
			i > 50 ? usleep(100) : (void)sched_yield();
		if (n != c->n)
			sprintf(r->text, "LOST: %d of %d", n, c->n);
		break;
	case ENDED:
		for (int i = 0; i < 8000; i++) {
			struct pollfd p = {.fd = fd, .events = POLLRDHUP};

			if (poll(&p, 1, 0) == 1 && p.revents & c->events)
				return;
			i > 50 ? usleep(100) : (void)sched_yield();
		}
		sprintf(r->text, "NO END");
		break;
	}
}
