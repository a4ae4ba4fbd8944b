/* SPDX-License-Identifier: MIT */
/* Steps of many cases. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/wait.h>

void ask(struct end *e, int fd)
{
	TRY(e, send(fd, "echo", 4, 0));
	show(e, fd, 4, MSG_WAITALL);
}

void ask_often(struct end *e, int fd, int times)
{
	char buf[4];

	for (int i = 0; i < times; i++) {
		MUST(e, send(fd, "echo", 4, 0));
		get(e, fd, buf, 4);
	}
}

void finish(struct end *e, int fd)
{
	shutdown(fd, SHUT_WR);
	show(e, fd, 1, 0);
}

void have(struct end *e, int n)
{
	meet(e);
	arrived(e, e->fd, n);
}

void more(struct end *e, int n)
{
	tell(e);
	await(e);
	arrived(e, e->fd, n);
}

void supply(struct end *e, const char *s)
{
	await(e);
	put(e, e->fd, s);
	tell(e);
}

void offer(struct end *e, const char *s)
{
	put(e, e->fd, s);
	meet(e);
	meet(e);
}

void tens(struct end *e)
{
	put(e, e->fd, "0123456789");
	arrived(e, e->fd, 10);
	meet(e);
}

void tens_peer(struct end *e)
{
	tens(e);
	meet(e);
	show(e, e->fd, 100, MSG_DONTWAIT);
}

void untouched(struct end *e)
{
	show(e, e->fd, 100, MSG_DONTWAIT);
	show(e, e->fd, 100, MSG_DONTWAIT);
	meet(e);
}

void put_urgent(struct end *e)
{
	put(e, e->fd, "abc");
	TRY(e, send(e->fd, "!", 1, MSG_OOB));
	put(e, e->fd, "def");
}

void abc_peer(struct end *e)
{
	offer(e, "abc");
}

void abc_later_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	meet(e);
}

void ten_peer(struct end *e)
{
	offer(e, "0123456789");
}

void ten_later_peer(struct end *e)
{
	meet(e);
	ten_peer(e);
}

void ten_only_peer(struct end *e)
{
	ten_peer(e);
	show(e, e->fd, 100, MSG_DONTWAIT);
}

void one_byte_peer(struct end *e)
{
	supply(e, "x");
}

void parts_peer(struct end *e)
{
	supply(e, "abcd");
	supply(e, "efg");
	supply(e, "hijkl");
	await(e);
	put(e, e->fd, "short");
	shutdown(e->fd, SHUT_WR);
}

void echo_peer(struct end *e)
{
	char buf[100];
	ssize_t r;

	while ((r = recv(e->fd, buf, sizeof(buf), 0)) > 0)
		MUST(e, send(e->fd, buf, r, MSG_NOSIGNAL));
	result(e, "recv in the end", r);
	close(e->fd);
}

void meet_only(struct end *e)
{
	meet(e);
}

void nothing(struct end *e)
{
	(void)e;
}

void ready(struct end *e, const char *what, int fd)
{
	bits(e, what, polled(fd, POLLIN | POLLOUT | POLLRDHUP, 0));
}

void so_error(struct end *e, int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	MUST(e, getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len));
	say(e, "SO_ERROR %s", err ? strerrorname_np(err) : "0");
}

void set_int(struct end *e, int fd, int level, int name, const char *what, int v)
{
	result(e, what, setsockopt(fd, level, name, &v, sizeof(v)));
}

void get_int(struct end *e, int fd, int level, int name, const char *what)
{
	int v = -77;
	socklen_t len = sizeof(v);

	if (getsockopt(fd, level, name, &v, &len))
		result(e, what, -1);
	else
		say(e, "%s %d, %u bytes", what, v, len);
}

void a_piece_each(struct mmsghdr *m, int n, struct iovec *v, int step)
{
	for (int i = 0; i < n; i++)
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = v + i * step, .msg_iovlen = 1}};
}

int set_of(struct end *e, int fd, unsigned events)
{
	int ep = MUST(e, epoll_create1(EPOLL_CLOEXEC));

	add(e, ep, fd, events, 0x123456789abcdef0);
	return ep;
}

void add(struct end *e, int ep, int fd, unsigned events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	MUST(e, epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

void modify(struct end *e, int ep, int fd, unsigned events)
{
	struct epoll_event ev = {.events = events};

	TRY(e, epoll_ctl(ep, EPOLL_CTL_MOD, fd, &ev));
}

void wait_on(struct end *e, int ep, int timeout)
{
	struct epoll_event ev[4] = {{0}};
	long r = result(e, "epoll_wait", epoll_wait(ep, ev, 4, timeout));

	for (long i = 0; i < r; i++)
		bits(e, "event", ev[i].events);
}

void last_edge(struct end *e, int ep)
{
	wait_on(e, ep, -1);
	wait_on(e, ep, 0);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	wait_on(e, ep, 0);
}

void close_both(const int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

void become(struct end *e, const char *name)
{
	e->name = name;
}

void reap(struct end *e, pid_t pid)
{
	int status = 0;

	MUST(e, waitpid(pid, &status, 0));
	say(e, "child %s %d", WIFEXITED(status) ? "exited" : "died",
	    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

void attach_fd(struct msghdr *m, char *room, int fd)
{
	struct cmsghdr *c;

	m->msg_control = room;
	m->msg_controllen = ROOM;
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
}

void send_fd(struct end *e, int over, int fd)
{
	char room[ROOM] __attribute__((aligned(8))) = {0};
	struct iovec v = piece("f", 1);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	attach_fd(&m, room, fd);
	TRY(e, sendmsg(over, &m, 0));
}

int recv_fd(struct end *e, int over)
{
	char room[ROOM] __attribute__((aligned(8))), c;
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room,
			   .msg_controllen = sizeof(room)};
	int fd = -1;

	MUST(e, recvmsg(over, &m, 0));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}
