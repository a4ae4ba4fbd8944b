/* SPDX-License-Identifier: MIT */
/*
 * Owners of a connection: several processes accept at one address, or hold connections that none of
 * them has used yet.
 */
#include "cases.h"

#include <fcntl.h>
#include <sys/wait.h>

/* The tested end connects and asks; the peer's processes answer. */
static void answer(struct end *e, int fd)
{
	char buf[4];

	get(e, fd, buf, 4);
	put(e, fd, "back");
}

static int warm_dial(struct end *e)
{
	int fd = dial(e);

	warm(e, fd);
	return fd;
}

static void asking(struct end *e)
{
	int fd = warm_dial(e);

	for (int i = 0; i < 10; i++)
		ask(e, fd);
	show(e, fd, 1, 0);
	close(fd);
}

/* --- held by two when the first byte comes --- */

static int p[2], q[2];

static pid_t fork_unused(struct end *e)
{
	pid_t pid;

	MUST(e, pipe2(p, O_CLOEXEC));
	MUST(e, pipe2(q, O_CLOEXEC));
	e->fd = pick_up(e);
	pid = MUST(e, fork());
	if (!pid)
		become(e, "child");
	return pid;
}

/* Five answers each, by turns; `first` has the first one, and all that goes before. */
static void by_turns(struct end *e, int me, int first)
{
	char c;

	if (me == first)
		warm(e, e->fd);
	for (int i = 0; i < 5; i++) {
		if (me != first || i)
			MUST(e, read(me ? q[0] : p[0], &c, 1));
		answer(e, e->fd);
		if (me == first || i < 4)
			MUST(e, write(me ? p[1] : q[1], "t", 1));
	}
}

static void turns_peer(struct end *e)
{
	pid_t pid = fork_unused(e);

	by_turns(e, pid != 0, 0);
	if (!pid)
		_exit(0);
	reap(e, pid);
	close(e->fd);
}

static void parent_first_peer(struct end *e)
{
	pid_t pid = fork_unused(e);

	by_turns(e, pid != 0, 1);
	if (!pid)
		_exit(0);
	reap(e, pid);
	close(e->fd);
}

/* The child serves for a while and ends; the parent goes on. */
static void child_ends_peer(struct end *e)
{
	pid_t pid = fork_unused(e);

	if (!pid)
		warm(e, e->fd);
	for (int i = 0; i < 5 && !pid; i++)
		answer(e, e->fd);
	if (!pid)
		_exit(0);
	reap(e, pid);
	for (int i = 0; i < 5; i++)
		answer(e, e->fd);
	close(e->fd);
}

/* The peer sees the end when the last process has closed, in either order. */
static void closes_first_peer(struct end *e)
{
	pid_t pid = fork_unused(e);

	if (!pid) {
		warm(e, e->fd);
		for (int i = 0; i < 10; i++)
			answer(e, e->fd);
		TRY(e, close(e->fd));
		_exit(0);
	}
	reap(e, pid);
	meet(e);
	meet(e);
	TRY(e, close(e->fd));
}

static void closes_first(struct end *e)
{
	int fd = warm_dial(e);

	for (int i = 0; i < 10; i++)
		ask(e, fd);
	meet(e);
	bits(e, "poll", polled(fd, POLLIN | POLLRDHUP, settle()));
	meet(e);
	show(e, fd, 1, 0);
	close(fd);
}

/* The parent ends a direction of what the child has. */
static void ended_peer(struct end *e)
{
	pid_t pid = fork_unused(e);
	char c;

	if (!pid) {
		warm(e, e->fd);
		for (int i = 0; i < 10; i++)
			answer(e, e->fd);
		MUST(e, write(q[1], "t", 1));
		MUST(e, read(p[0], &c, 1));
		TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
		show(e, e->fd, 4, MSG_WAITALL);
		_exit(0);
	}
	MUST(e, read(q[0], &c, 1));
	TRY(e, shutdown(e->fd, SHUT_WR));
	MUST(e, write(p[1], "t", 1));
	reap(e, pid);
	close(e->fd);
}

static void ended_by_parent(struct end *e)
{
	int fd = warm_dial(e);

	for (int i = 0; i < 10; i++)
		ask(e, fd);
	show(e, fd, 1, 0);
	put(e, fd, "last");
	close(fd);
}

/* Another program has it when it is used for the first time, and then the parent. */
static void execs_peer(struct end *e)
{
	pid_t pid = fork_unused(e);
	char number[20];

	if (!pid) {
		snprintf(number, sizeof(number), "%d", e->fd);
		MUST(e, fcntl(e->fd, F_SETFD, 0));
		execl("/proc/self/exe", "cases", "exec", number, (char *)NULL);
		_exit(1);
	}
	reap(e, pid);
	ask(e, e->fd);
	close(e->fd);
}

static void execs(struct end *e)
{
	e->fd = dial(e);
	echo_peer(e);
}

/* accept, two forks, the grandchild serves. */
static void grandchild_peer(struct end *e)
{
	pid_t pid = fork_unused(e);

	if (!pid) {
		setsid();
		if (fork())
			_exit(0);
		become(e, "grandchild");
		warm(e, e->fd);
		for (int i = 0; i < 10; i++)
			answer(e, e->fd);
		close(e->fd);
		MUST(e, write(q[1], "t", 1));
		_exit(0);
	}
	close(e->fd);
	reap(e, pid);
	MUST(e, read(q[0], &(char){0}, 1));
}

/* A connection of the parent's link is used by a grandchild, and then by the parent again. */
static void grandchild_asks(struct end *e)
{
	pid_t pid;

	ask(e, e->fd);
	pid = MUST(e, fork());
	if (!pid) {
		pid_t second = MUST(e, fork());

		if (second) {
			become(e, "child");
			reap(e, second);
			_exit(0);
		}
		become(e, "grandchild");
		for (int i = 0; i < 5; i++)
			ask(e, e->fd);
		_exit(0);
	}
	reap(e, pid);
	ask(e, e->fd);
	shutdown(e->fd, SHUT_WR);
	show(e, e->fd, 1, 0);
}

/* --- several processes that accept --- */

static void serve_until_told(struct end *e, int l, int told)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = l, .events = POLLIN}, {.fd = told, .events = POLLIN}};
		char buf[16];
		int fd;

		nonblock(e, l, 1);
		MUST(e, poll(fds, 2, -1));
		if (fds[1].revents)
			_exit(0);
		fd = accept(l, NULL, NULL);
		if (fd < 0)
			continue;
		warm(e, fd);
		for (ssize_t r; (r = recv(fd, buf, sizeof(buf), 0)) > 0;)
			MUST(e, send(fd, buf, r, MSG_NOSIGNAL));
		close(fd);
	}
}

static void many_asked(struct end *e)
{
	take(e, &e->addr, sizeof(e->addr));
	for (int i = 0; i < 8; i++) {
		int fd = warm_dial(e);

		for (int k = 0; k < 20; k++) {
			MUST(e, send(fd, "echo", 4, 0));
			get(e, fd, &(char[4]){0}, 4);
		}
		ask(e, fd);
		close(fd);
	}
	tell(e);
}

static int listen_beside(struct end *e)
{
	int one = 1, l = MUST(e, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));

	MUST(e, setsockopt(l, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)));
	MUST(e, bind(l, (struct sockaddr *)&e->addr, e->addrlen));
	MUST(e, listen(l, 50));
	MUST(e, getsockname(l, (struct sockaddr *)&e->addr, &e->addrlen));
	return l;
}

static void beside_peer(struct end *e)
{
	pid_t pid[2];
	int l;

	MUST(e, pipe2(p, O_CLOEXEC));
	MUST(e, pipe2(q, O_CLOEXEC));
	((struct sockaddr_in *)&e->addr)->sin_port = 0;
	l = listen_beside(e);
	for (int i = 0; i < 2; i++) {
		pid[i] = MUST(e, fork());
		if (pid[i])
			continue;
		close(p[1]);
		if (i)
			l = listen_beside(e);
		MUST(e, write(q[1], "t", 1));
		serve_until_told(e, l, p[0]);
	}
	for (int i = 0; i < 2; i++)
		MUST(e, read(q[0], &(char){0}, 1));
	close(l);
	pass(e, &e->addr, sizeof(e->addr));
	await(e);
	close(p[1]);
	for (int i = 0; i < 2; i++)
		reap(e, pid[i]);
}

/* The listener's creator ends, its children go on. */
static void starter_ends_peer(struct end *e)
{
	pid_t pid;
	int l;

	MUST(e, pipe2(p, O_CLOEXEC));
	MUST(e, pipe2(q, O_CLOEXEC));
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "starter");
		((struct sockaddr_in *)&e->addr)->sin_port = 0;
		l = listen_beside(e);
		for (int i = 0; i < 2; i++) {
			if (fork())
				continue;
			close(p[1]);
			MUST(e, write(q[1], "t", 1));
			serve_until_told(e, l, p[0]);
		}
		for (int i = 0; i < 2; i++)
			MUST(e, read(q[0], &(char){0}, 1));
		pass(e, &e->addr, sizeof(e->addr));
		_exit(0);
	}
	reap(e, pid);
	await(e);
	close(p[1]);
	close(q[1]);
	TRY(e, read(q[0], &(char){0}, 1));	/* until they have ended */
}

const struct test cases_owners[] = {
	{"owner_turns", PROCS | RAW, asking, turns_peer},
	{"owner_parent_first", PROCS | RAW, asking, parent_first_peer},
	{"owner_child_ends", PROCS | RAW, asking, child_ends_peer},
	{"owner_closes_first", PROCS | RAW, closes_first, closes_first_peer},
	{"owner_ended_by_parent", PROCS | RAW, ended_by_parent, ended_peer},
	{"owner_execs", PROCS | RAW, execs, execs_peer},
	{"owner_grandchild", PROCS | RAW, asking, grandchild_peer},
	{"owner_grandchild_asks", PROCS, grandchild_asks, echo_peer},
	{"owner_beside", PROCS | RAW, many_asked, beside_peer},
	{"owner_starter_ends", PROCS | RAW, many_asked, starter_ends_peer},
	{NULL, 0, NULL, NULL},
};
