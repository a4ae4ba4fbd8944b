/* What many cases do. */
#include "cases.h"

#include <sys/epoll.h>
#include <sys/wait.h>

void ask(struct end *e, int fd)
{
	TRY(e, send(fd, "echo", 4, 0));
	show(e, fd, 4, MSG_WAITALL);
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

void send_fd(struct end *e, int over, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec v = {.iov_base = "f", .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room,
			   .msg_controllen = sizeof(room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	TRY(e, sendmsg(over, &m, 0));
}

int recv_fd(struct end *e, int over)
{
	char room[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))), c;
	struct iovec v = {.iov_base = &c, .iov_len = 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room,
			   .msg_controllen = sizeof(room)};
	int fd = -1;

	MUST(e, recvmsg(over, &m, 0));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}
