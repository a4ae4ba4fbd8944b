/* SPDX-License-Identifier: MIT */
/*
 * Connections that are given to another program while bytes are unread and the other end is over: half-closed, closed,
 * exited, or killed behind its close. The new owner reads the bytes, and then the end.
 */
#include "cases.h"

#include <sys/wait.h>

#define LARGE 204800	/* bytes; with ring_min they take larger rings */

static char byte_at(size_t i)
{
	return (char)('a' + i % 23);
}

/* --- what the peer has sent, and how it ends --- */

static void send_bytes(struct end *e, size_t bytes)
{
	static char buf[LARGE];

	for (size_t i = 0; i < bytes; i++)
		buf[i] = byte_at(i);
	MUST(e, send(e->fd, buf, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? 0 : -1);
}

static void half_closes(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	TRY(e, shutdown(e->fd, SHUT_WR));
	pass(e, "t", 1);
	drain(e, e->fd);
	await(e);
}

static void closes(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	TRY(e, close(e->fd));
	pass(e, "t", 1);
	await(e);
}

static void exits(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	pass(e, "x", 1);
	exit(0);
}

static void exits_at_once(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	pass(e, "x", 1);
	_exit(0);
}

static void is_killed(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	TRY(e, close(e->fd));
	pass(e, "x", 1);
	kill(getpid(), SIGKILL);
}

/* It does not come to a close. */
static void is_lost(struct end *e, size_t bytes)
{
	send_bytes(e, bytes);
	pass(e, "x", 1);
	kill(getpid(), SIGKILL);
}

#define PEER(how, size, bytes)                                                                     \
	static void how##_##size(struct end *e)                                                    \
	{                                                                                          \
		how(e, bytes);                                                                     \
	}
PEER(half_closes, small, 10)
PEER(half_closes, large, LARGE)
PEER(closes, small, 10)
PEER(closes, large, LARGE)
PEER(exits, small, 10)
PEER(exits, large, LARGE)
PEER(exits_at_once, small, 10)
PEER(exits_at_once, large, LARGE)
PEER(is_killed, small, 10)
PEER(is_lost, small, 10)
#undef PEER

/* --- the new owner --- */

static size_t taken;	/* before it was given away */

static void check_bytes(struct end *e, int fd)
{
	char buf[4096];
	size_t count = 0, wrong = 0;
	ssize_t got;

	while ((got = recv(fd, buf, sizeof(buf), 0)) > 0)
		for (ssize_t i = 0; i < got; i++)
			wrong += buf[i] != byte_at(taken + count++);
	say(e, "%zu bytes, %zu of them wrong", count, wrong);
	result(e, "then recv", got);
}

/* Its input is the connection; it knows nothing of Shunt. */
static void become_bare(struct end *e, int fd)
{
	char *argv[] = { "cksum", NULL }, *envp[] = { "PATH=/usr/bin:/bin", NULL };

	MUST(e, dup2(fd, 0));
	MUST(e, dup2(e->out, 1));
	execve("/usr/bin/cksum", argv, envp);
	say(e, "no cksum");
	_exit(3);
}

static void become_shunted(struct end *e, int fd)
{
	MUST(e, dup2(fd, 0));
	MUST(e, dup2(e->out, 1));
	execl("/usr/bin/cksum", "cksum", (char *)NULL);
	say(e, "no cksum");
	_exit(3);
}

static void reads_and_answers(struct end *e, int fd)
{
	check_bytes(e, fd);
	send(fd, "an answer", 9, MSG_NOSIGNAL);	/* who has closed does not get it */
	_exit(0);
}

/* --- how it gets it --- */

/*
 * The other end is over, its process too where it said so, and nothing has been read. The kernel's own end may wait
 * behind bytes that have no room.
 */
static void over(struct end *e)
{
	char how;

	take(e, &how, 1);
	while (how == 'x' && read(e->ctl, &how, 1) > 0)
		;
	ended(e, e->fd, POLLIN);
}

/* As send_fd(), without a word: the worker speaks. */
static void hand(struct end *e, int over_fd, int fd)
{
	char room[ROOM] __attribute__((aligned(8))) = {0};
	struct iovec v = piece("f", 1);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	attach_fd(&m, room, fd);
	MUST(e, sendmsg(over_fd, &m, 0));
	MUST(e, close(fd));
}

/* By SCM_RIGHTS, to a process that was there before. */
static void passes(struct end *e, void (*owner)(struct end *e, int fd))
{
	int sv[2];
	pid_t pid;

	MUST(e, socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "worker");
		close(e->fd);
		close(sv[0]);
		owner(e, recv_fd(e, sv[1]));
	}
	over(e);
	hand(e, sv[0], e->fd);
	close_both(sv);
	reap(e, pid);
	send(e->ctl, "t", 1, MSG_NOSIGNAL);	/* a peer that has exited does not wait */
}

static void to_worker(struct end *e)
{
	passes(e, reads_and_answers);
}

static void to_bare_worker(struct end *e)
{
	passes(e, become_bare);
}

/* As inetd does it. */
static void inherits(struct end *e, void (*owner)(struct end *e, int fd))
{
	pid_t pid;

	over(e);
	pid = MUST(e, fork());
	if (!pid) {
		become(e, "child");
		owner(e, e->fd);
	}
	MUST(e, close(e->fd));
	reap(e, pid);
	send(e->ctl, "t", 1, MSG_NOSIGNAL);
}

static void to_child(struct end *e)
{
	inherits(e, reads_and_answers);
}

static void to_bare_child(struct end *e)
{
	inherits(e, become_bare);
}

static void to_shunted_child(struct end *e)
{
	inherits(e, become_shunted);
}

/* The program that the process becomes; its own child waits for it. */
static void to_bare_self(struct end *e)
{
	over(e);
	send(e->ctl, "t", 1, MSG_NOSIGNAL);
	become_bare(e, e->fd);
}

/* A part has been read here. */
static void part_to_worker(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL | MSG_PEEK);
	show(e, e->fd, 4, MSG_WAITALL);
	taken = 4;
	passes(e, reads_and_answers);
}

static void part_to_bare_worker(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	taken = 4;
	passes(e, become_bare);
}

static void part_to_child(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	taken = 4;
	inherits(e, reads_and_answers);
}

/* Nobody gives it away: what is repeated for a new owner is not seen. */
static void to_nobody(struct end *e)
{
	char buf[LARGE + 10];
	int have = 0;

	over(e);
	while (have < 10)
		MUST(e, ioctl(e->fd, FIONREAD, &have));
	show(e, e->fd, 4, MSG_WAITALL);
	ended(e, e->fd, POLLIN);
	MUST(e, recv(e->fd, buf, sizeof(buf), MSG_PEEK));
	MUST(e, ioctl(e->fd, FIONREAD, &have));
	say(e, "%d unread, or more", have < 6 ? have : 6);
	drain(e, e->fd);
	TRY(e, ioctl(e->fd, FIONREAD, &have));
	say(e, "%d unread", have);
	TRY(e, send(e->fd, "an answer", 9, MSG_NOSIGNAL));
	TRY(e, close(e->fd));
	send(e->ctl, "t", 1, MSG_NOSIGNAL);
}

#define ROWS(way)                                                                                  \
	{ "given_" #way "_half", PROCS, way, half_closes_small },                                  \
		{ "given_" #way "_half_large", PROCS, way, half_closes_large },                    \
		{ "given_" #way "_closed", PROCS, way, closes_small },                             \
		{ "given_" #way "_closed_large", PROCS, way, closes_large },                       \
		{ "given_" #way "_exited", PROCS, way, exits_small },                              \
		{ "given_" #way "_exited_large", PROCS, way, exits_large },                        \
		{ "given_" #way "_exited_at_once", PROCS, way, exits_at_once_small },              \
		{ "given_" #way "_killed", PROCS, way, is_killed_small },

#define PART(way)                                                                                  \
	{ "given_" #way "_half", PROCS, way, half_closes_small },                                  \
		{ "given_" #way "_exited", PROCS, way, exits_at_once_small },

const struct test cases_given[] = {
	ROWS(to_worker)
	ROWS(to_bare_worker)
	ROWS(to_bare_child)
	ROWS(to_bare_self)
	PART(to_child)
	PART(to_shunted_child)
	PART(part_to_worker)
	PART(part_to_bare_worker)
	PART(part_to_child)
	{ "given_lost_to_worker", PROCS, to_worker, is_lost_small },
	{ "given_lost_to_bare_worker", PROCS, to_bare_worker, is_lost_small },
	{ "given_lost_to_bare_child", PROCS, to_bare_child, is_lost_small },
	{ "given_to_nobody_half", PROCS, to_nobody, half_closes_small },
	{ "given_to_nobody_half_large", PROCS, to_nobody, half_closes_large },
	{ "given_to_nobody_exited", PROCS, to_nobody, exits_at_once_small },
	{ "given_to_nobody_exited_large", PROCS, to_nobody, exits_at_once_large },
	{ NULL, 0, NULL, NULL },
};
