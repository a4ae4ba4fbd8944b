/* SPDX-License-Identifier: MIT */
/* Calls that ask and wait, and that change how a descriptor behaves. */
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
#include "gen.h"

static void bits(struct reply *r, unsigned events)
{
	snprintf(r->text, sizeof(r->text), "%s%s%s%s%s%s", events & POLLIN ? "IN " : "", events & POLLOUT ? "OUT " : "",
		 events & POLLRDHUP ? "RDHUP " : "", events & POLLHUP ? "HUP " : "", events & POLLERR ? "ERR " : "",
		 events & POLLNVAL ? "NVAL " : "");
}

static int by_select(int fd, struct reply *r, struct timeval *t)
{
	fd_set in, out, pri;
	int n;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	out = pri = in;
	n = select(fd + 1, &in, t ? &out : NULL, &pri, t);
	snprintf(r->text, sizeof(r->text), "%d %d %d", FD_ISSET(fd, &in) != 0, t && FD_ISSET(fd, &out), FD_ISSET(fd, &pri) != 0);
	return n;
}

static int by_epoll(int ep, struct reply *r, int ms, int masked)
{
	struct epoll_event ev[CONNS * 2];
	int n, at = 0;

	/* The next wait may report sockets that became ready a moment ago. */
	if (!ms) {
		epoll_wait(ep, ev, CONNS * 2, 0);
		usleep(100);
	}
	n = masked ? epoll_pwait(ep, ev, CONNS * 2, ms, &(sigset_t){0}) : epoll_wait(ep, ev, CONNS * 2, ms);
	if (ms)		/* who else is ready by now is a matter of time */
		return n > 0;
	for (unsigned k = 0; k < CONNS; k++)
		for (int i = 0; i < n; i++)
			if (ev[i].data.u32 == k && at < (int)sizeof(r->text) - 20)
				at += sprintf(r->text + at, "%u:%x ", k, ev[i].events);
	return n;
}

/* Through a socketpair to ourselves, in place of the number it had. */
static int passed(int fd)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0}, x = 0;
	struct iovec v = {&x, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int sv[2], got;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) || sendmsg(sv[0], &m, 0) != 1 || recvmsg(sv[1], &m, 0) != 1)
		return -1;
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(got));
	close(sv[0]);
	close(sv[1]);
	fcntl(got, F_SETFD, FD_CLOEXEC);
	return got;
}

int set_option(int fd, int level, int name, int v)
{
	return setsockopt(fd, level, name, &v, sizeof(v));
}

void ask(const struct cmd *c, struct reply *r, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
	struct epoll_event ev = {.events = c->events, .data.u64 = c->conn};
	struct sockaddr_in a, b;
	socklen_t len = sizeof(int);
	int v = -1;

	switch (c->kind) {
	case POLL: r->r = poll(&p, 1, 0); bits(r, p.revents); break;
	case PPOLL: r->r = ppoll(&p, 1, &(struct timespec){0}, NULL); bits(r, p.revents); break;
	case SELECT: r->r = by_select(fd, r, &(struct timeval){0}); break;
	case FIONREAD_: r->r = ioctl(fd, FIONREAD, &v); sprintf(r->text, "%d", v); break;
	case SO_ERROR_: r->r = getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len); sprintf(r->text, "%d", v); break;
	case NODELAY: r->r = set_option(fd, IPPROTO_TCP, TCP_NODELAY, c->n & 1); break;
	case RCVLOWAT: r->r = set_option(fd, SOL_SOCKET, SO_RCVLOWAT, 1); break;
	case NONBLOCK: r->r = fcntl(fd, F_SETFL, c->n & 1 ? O_NONBLOCK : 0); break;
	case FIONBIO_: v = c->n & 1; r->r = ioctl(fd, FIONBIO, &v); break;
	case EP_ADD: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_ADD, fds[c->conn][0], &ev); break;
	case EP_MOD: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_MOD, fds[c->conn][0], &ev); break;
	case EP_DEL: r->r = epoll_ctl(sets[c->set], EPOLL_CTL_DEL, fds[c->conn][0], NULL); break;
	case EP_WAIT: r->r = by_epoll(sets[c->set], r, 0, 0); break;
	case EP_PWAIT: r->r = by_epoll(sets[c->set], r, 0, 1); break;
	case SHUT_R: r->r = shutdown(fd, SHUT_RD); break;
	case SHUT_W: r->r = shutdown(fd, SHUT_WR); break;
	case DUP: r->r = (fds[c->conn][1] = fcntl(fd, F_DUPFD_CLOEXEC, 3)) < 0 ? -1 : 0; break;
	case DUP2: r->r = dup2(fds[c->conn][0], fds[c->conn][1]) < 0 ? -1 : 0; break;
	case CLOSE_DUP: r->r = close(fds[c->conn][1]); fds[c->conn][1] = 0; break;
	case PASS: r->r = close(fds[c->conn][1]); fds[c->conn][1] = passed(fds[c->conn][0]); break;
	case WAIT_POLL: p.events = POLLIN; r->r = poll(&p, 1, -1); bits(r, p.revents); break;
	case WAIT_SELECT: r->r = by_select(fd, r, NULL); break;
	case WAIT_EPOLL: r->r = by_epoll(sets[c->set], r, -1, 0); break;
	case NAMES:
		len = sizeof(a);
		r->r = getsockname(fd, (struct sockaddr *)&a, &len);
		r->r |= getpeername(fd, (struct sockaddr *)&b, &len);
		sprintf(r->text, "%u %d %d", len, a.sin_family == AF_INET, a.sin_port != b.sin_port);
		break;
	}
}
