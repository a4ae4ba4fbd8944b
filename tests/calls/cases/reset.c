/* SPDX-License-Identifier: MIT */
/* Ends that are errors: resets, writes to nobody, processes that die. */
#include "cases.h"

/* The peer has read everything and closed. The first send is answered by a reset. */
static void epipe(struct end *e)
{
	count_sigpipe(e);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	ready(e, "poll", e->fd);
	TRY(e, send(e->fd, "x", 1, 0));
	ended(e, e->fd, POLLHUP);
	ready(e, "poll", e->fd);
	TRY(e, send(e->fd, "x", 1, 0));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, write(e->fd, "x", 1));
	say(e, "%d SIGPIPE", sigpipes());
	show(e, e->fd, 1, 0);
	so_error(e, e->fd);
	ready(e, "poll", e->fd);
}

static void epipe_so_error(struct end *e)
{
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, send(e->fd, "x", 1, 0));
	ended(e, e->fd, POLLHUP);
	so_error(e, e->fd);
	so_error(e, e->fd);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	TRY(e, shutdown(e->fd, SHUT_RDWR));
}

/* The same, but nothing has been asked of the stream since the peer closed it. */
static void epipe_unseen(struct end *e)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	meet(e);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	ended(e, e->fd, POLLHUP);
	TRY(e, getpeername(e->fd, (struct sockaddr *)&a, &len));
	so_error(e, e->fd);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	show(e, e->fd, 1, 0);
}

/*
 * Nothing is asked but to send, until a send is refused. To wait for an event would be asking, so the pauses grow: the
 * peer of a busy machine has three seconds.
 */
static void epipe_deaf(struct end *e)
{
	int sent = 0;
	const int enough = 20;	/* Fewer than make Shunt look by itself. */

	meet(e);
	for (; sent < enough && send(e->fd, "x", 1, MSG_NOSIGNAL) == 1; sent++)
		usleep(1000U << (sent < 8 ? sent : 8));
	say(e, "%s", sent < enough ? strerror(errno) : "never refused");
	show(e, e->fd, 1, 0);
	meet(e);
}

/* Which is still there. */
static void deaf_peer(struct end *e)
{
	TRY(e, close(e->fd));
	meet(e);
	meet(e);
}

static void after_reset(struct end *e)
{
	ended(e, e->fd, POLLHUP);
	ready(e, "poll", e->fd);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
}

static void reset(struct end *e)
{
	reset_on_close(e, e->fd);
	TRY(e, close(e->fd));
}

static void close_peer(struct end *e)
{
	TRY(e, close(e->fd));
	meet(e);
}

/* The peer closes with something unread: a reset, not an end. */
static void unread(struct end *e)
{
	offer(e, "unread");
	after_reset(e);
	ready(e, "poll", e->fd);
}

static void unread_peer(struct end *e)
{
	have(e, 6);
	TRY(e, close(e->fd));
	meet(e);
}

/* Bytes from before the reset can still be read, then the error once, then the end. */
static void data_then_reset(struct end *e)
{
	have(e, 4);
	meet(e);
	meet(e);
	ended(e, e->fd, POLLHUP);
	ready(e, "poll", e->fd);
	show(e, e->fd, 2, 0);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
}

static void data_then_reset_peer(struct end *e)
{
	offer(e, "data");
	reset(e);
	meet(e);
}

static void reset_so_error(struct end *e)
{
	meet(e);
	ended(e, e->fd, POLLHUP);
	so_error(e, e->fd);
	so_error(e, e->fd);
	show(e, e->fd, 10, 0);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
	TRY(e, shutdown(e->fd, SHUT_WR));
}

static void send_first(struct end *e)
{
	meet(e);
	ended(e, e->fd, POLLHUP);
	count_sigpipe(e);
	TRY(e, send(e->fd, "x", 1, 0));
	TRY(e, send(e->fd, "x", 1, 0));
	say(e, "%d SIGPIPE", sigpipes());
	show(e, e->fd, 10, 0);
}

static void linger0_peer(struct end *e)
{
	reset(e);
	meet(e);
}

static void blocked(struct end *e, void (*let_go)(struct end *e))
{
	struct job j;

	job_sleeps(e, &j, job_recv, e->fd);
	let_go(e);
	job_report(e, "recv", &j);
	show(e, e->fd, 10, 0);
}

static void blocked_recv(struct end *e)
{
	blocked(e, meet);
}

static void blocked_peer(struct end *e)
{
	meet(e);
	reset(e);
}

/* The peer reads nothing and goes away while we are blocked in send. */
static void blocked_send(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, job_send, e->fd);
	meet(e);
	job_report(e, "send in the end", &j);
	TRY(e, send(e->fd, "x", 1, MSG_NOSIGNAL));
}

static void blocked_send_peer(struct end *e)
{
	meet(e);
	TRY(e, close(e->fd));
}

static void after_death(struct end *e)
{
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 10, 0);
	show(e, e->fd, 10, 0);
	ready(e, "poll", e->fd);
}

static void killed_peer(struct end *e)
{
	put(e, e->fd, "last");
	kill(getpid(), SIGKILL);
}

static void exit_peer(struct end *e)
{
	put(e, e->fd, "last");
	_exit(0);
}

/* Killed with something unread: a reset. */
static void killed_unread(struct end *e)
{
	put(e, e->fd, "unread");
	meet(e);
	after_reset(e);
}

static void killed_unread_peer(struct end *e)
{
	have(e, 6);
	kill(getpid(), SIGKILL);
}

static void killed_blocked(struct end *e)
{
	blocked(e, tell);
}

static void killed_blocked_peer(struct end *e)
{
	await(e);
	kill(getpid(), SIGKILL);
}

static void abrupt_big(struct end *e)
{
	recv_pattern(e, e->fd, 0, 150000, 4096);
	show(e, e->fd, 10, 0);
}

static void abrupt_big_peer(struct end *e)
{
	send_pattern(e, e->fd, 0, 150000, 4096);
	_exit(0);
}

/* Of two connections of the same processes one is reset: nothing happens to the other. */
static void reset_one_of_two(struct end *e)
{
	int other;

	e->fd = dial_warm(e);
	other = dial_warm(e);
	put(e, e->fd, "a");
	put(e, other, "b");
	meet(e);
	reset_on_close(e, other);
	TRY(e, close(other));
	meet(e);
	put(e, e->fd, "c");
	show(e, e->fd, 10, 0);
	meet(e);
}

static void reset_one_of_two_peer(struct end *e)
{
	int fd = pick_up_warm(e), other = pick_up_warm(e);

	show(e, fd, 1, MSG_WAITALL);
	show(e, other, 1, MSG_WAITALL);
	meet(e);
	meet(e);
	show(e, other, 1, 0);
	show(e, fd, 1, MSG_WAITALL);
	put(e, fd, "fine");
	meet(e);
}

const struct test cases_reset[] = {
	{"reset_epipe", 0, epipe, close_peer},
	{"reset_epipe_so_error", 0, epipe_so_error, close_peer},
	{"reset_epipe_unseen", 0, epipe_unseen, close_peer},
	{"reset_epipe_deaf", 0, epipe_deaf, deaf_peer},
	{"reset_unread", 0, unread, unread_peer},
	{"reset_after_data", 0, data_then_reset, data_then_reset_peer},
	{"reset_so_error", 0, reset_so_error, linger0_peer},
	{"reset_send_first", 0, send_first, linger0_peer},
	{"reset_blocked_recv", 0, blocked_recv, blocked_peer},
	{"reset_blocked_send", 0, blocked_send, blocked_send_peer},
	{"reset_killed", PROCS, after_death, killed_peer},
	{"reset_exit", PROCS, after_death, exit_peer},
	{"reset_killed_unread", PROCS, killed_unread, killed_unread_peer},
	{"reset_killed_blocked", PROCS, killed_blocked, killed_blocked_peer},
	{"reset_exit_big", PROCS, abrupt_big, abrupt_big_peer},
	{"reset_one_of_two", RAW, reset_one_of_two, reset_one_of_two_peer},
	{NULL, 0, NULL, NULL},
};
