/* SPDX-License-Identifier: MIT */
/* Listeners, and connections that come, talk or go before they are accepted. The tested end connects. */
#include "cases.h"
#include <sys/resource.h>

static void nonblocking_peer(struct end *e)
{
	int fd;

	nonblock(e, e->lfd, 1);
	TRY(e, accept(e->lfd, NULL, NULL));
	bits(e, "poll listener", polled(e->lfd, POLLIN | POLLOUT, 0));
	meet(e);
	bits(e, "poll listener", polled(e->lfd, POLLIN | POLLOUT, -1));
	fd = MUST(e, accept(e->lfd, NULL, NULL));
	say(e, "O_NONBLOCK %s", fcntl(fd, F_GETFL) & O_NONBLOCK ? "inherited" : "not inherited");
	say(e, "FD_CLOEXEC %d", fcntl(fd, F_GETFD));
	TRY(e, accept(e->lfd, NULL, NULL));
	close(fd);
	meet(e);
	bits(e, "poll listener", polled(e->lfd, POLLIN, -1));
	fd = MUST(e, accept4(e->lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	say(e, "O_NONBLOCK %s", fcntl(fd, F_GETFL) & O_NONBLOCK ? "set" : "not set");
	say(e, "FD_CLOEXEC %d", fcntl(fd, F_GETFD));
	TRY(e, recv(fd, &(char){0}, 1, 0));
	TRY(e, accept4(e->lfd, NULL, NULL, 0x7fff0000));
	close(fd);
}

static void nonblocking(struct end *e)
{
	int a, b;

	meet(e);
	a = dial(e);
	drain(e, a);
	meet(e);
	b = dial(e);
	drain(e, b);
	close(a);
	close(b);
}

static void blocked_peer(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, job_accept, e->lfd);
	tell(e);
	job_join(e, &j);
	say(e, "accepted: %d", j.result >= 0);
	put(e, j.result, "hello");
	close(j.result);
	job_sleeps(e, &j, job_accept, e->lfd);
	TRY(e, shutdown(e->lfd, SHUT_RD));
	job_join(e, &j);
	errno = j.err;
	result(e, "accept of a listener shut down", j.result);
	TRY(e, accept(e->lfd, NULL, NULL));
}

static void blocked(struct end *e)
{
	int fd;

	await(e);
	fd = dial(e);
	drain(e, fd);
	close(fd);
}

static void talk_first(struct end *e)
{
	int fd = dial(e);

	put(e, fd, "before accept");
	TRY(e, shutdown(fd, SHUT_WR));
	meet(e);
	show(e, fd, 100, MSG_WAITALL);
	close(fd);
}

static void talk_first_peer(struct end *e)
{
	int fd;

	meet(e);
	fd = pick_up(e);
	show(e, fd, 13, MSG_WAITALL);
	show(e, fd, 100, 0);
	put(e, fd, "answer");
	close(fd);
}

static void much_first(struct end *e)
{
	int fd = dial(e);

	send_pattern(e, fd, 0, 50000, 1000);
	tell(e);
	send_pattern(e, fd, 50000, 3000000, 70000);
	TRY(e, close(fd));
}

static void much_first_peer(struct end *e)
{
	int fd;

	await(e);
	fd = pick_up(e);
	recv_pattern(e, fd, 0, 3050000, 65536);
	drain(e, fd);
	close(fd);
}

static void leave_at_once(struct end *e)
{
	TRY(e, close(dial(e)));
	meet(e);
}

static void leave_at_once_peer(struct end *e)
{
	int fd;

	meet(e);
	fd = pick_up(e);
	ended(e, fd, POLLRDHUP);
	ready(e, "poll", fd);
	show(e, fd, 10, 0);
	show(e, fd, 10, 0);
	close(fd);
}

static void reset_first(struct end *e)
{
	int fd = dial(e);

	put(e, fd, "lost?");
	reset_on_close(e, fd);
	TRY(e, close(fd));
	meet(e);
}

static void reset_first_peer(struct end *e)
{
	int fd;

	meet(e);
	fd = pick_up(e);
	ended(e, fd, POLLHUP);
	show(e, fd, 10, 0);
	show(e, fd, 10, 0);
	show(e, fd, 10, 0);
	close(fd);
}

/* Closing the listener resets what nobody has accepted. */
static void listener_closed(struct end *e)
{
	int fd = dial(e);

	put(e, fd, "hello");
	meet(e);
	meet(e);
	ended(e, fd, POLLHUP);
	show(e, fd, 10, 0);
	show(e, fd, 10, 0);
	TRY(e, send(fd, "x", 1, MSG_NOSIGNAL));
	close(fd);
	fd = MUST(e, socket(AF_INET, SOCK_STREAM, 0));
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	close(fd);
}

static void listener_closed_peer(struct end *e)
{
	meet(e);
	TRY(e, close(e->lfd));
	meet(e);
}

/* Accepted connections outlive their listener. */
static void orphan(struct end *e)
{
	put(e, e->fd, "hello");
	show(e, e->fd, 5, MSG_WAITALL);
	meet(e);
}

static void orphan_peer(struct end *e)
{
	if (!e->client)
		TRY(e, close(e->lfd));
	show(e, e->fd, 5, MSG_WAITALL);
	put(e, e->fd, "world");
	meet(e);
}

static void bind_rules(struct end *e)
{
	int a = make_listener(e, 0), b = MUST(e, socket(AF_INET, SOCK_STREAM, 0)), one = 1;
	struct sockaddr_in any = {.sin_family = AF_INET};
	socklen_t len = sizeof(any);

	TRY(e, bind(b, (struct sockaddr *)&e->addr, e->addrlen));
	TRY(e, setsockopt(b, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	TRY(e, bind(b, (struct sockaddr *)&e->addr, e->addrlen));
	TRY(e, bind(b, (struct sockaddr *)&any, len));
	TRY(e, bind(b, (struct sockaddr *)&any, len));
	TRY(e, getsockname(b, (struct sockaddr *)&any, &len));
	say(e, "port %s", any.sin_port ? "chosen" : "0");
	TRY(e, listen(b, 5));
	TRY(e, listen(b, 50));
	TRY(e, connect(b, (struct sockaddr *)&e->addr, e->addrlen));
	TRY(e, send(b, "x", 1, MSG_NOSIGNAL));
	TRY(e, recv(b, &one, 1, 0));
	bits(e, "poll listener", polled(a, POLLIN | POLLOUT, 0));
	close(a);
	close(b);
}

/* Accepting yields connections in the order they came. */
static void order(struct end *e)
{
	int fd[10];

	for (int i = 0; i < 10; i++) {
		fd[i] = dial(e);
		MUST(e, send(fd[i], &(char){'a' + i}, 1, 0));
	}
	meet(e);
	for (int i = 0; i < 10; i++)
		drain(e, fd[i]);
}

static void order_peer(struct end *e)
{
	meet(e);
	for (int i = 0; i < 10; i++) {
		int fd = pick_up(e);

		show(e, fd, 1, 0);
		close(fd);
	}
}

/* Threads that wait in accept(): what ends the call, and that the connection after it is the next call's. */
static void interrupted_peer(struct end *e)
{
	struct timeval soon = { .tv_usec = 20000 }, never = { 0 };
	struct job j;

	catch_signal(e, 0);
	job_hit(e, &j, job_accept, e->lfd);
	report_caught(e, "accept", &j);
	catch_signal(e, SA_RESTART);
	job_sleeps(e, &j, job_accept, e->lfd);
	hit(e, &j);
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	tell(e);
	job_join(e, &j);
	say(e, "accepted: %d", j.result >= 0);
	put(e, j.result, "hello");
	close(j.result);
	MUST(e, setsockopt(e->lfd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	TRY(e, accept(e->lfd, NULL, NULL));
	soon.tv_sec = 100;
	MUST(e, setsockopt(e->lfd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)));
	job_hit(e, &j, job_accept, e->lfd);
	report_caught(e, "accept with a timeout", &j);
	MUST(e, setsockopt(e->lfd, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof(never)));
	job_sleeps(e, &j, job_accept, e->lfd);
	MUST(e, pthread_cancel(j.thread));
	MUST(e, pthread_join(j.thread, NULL));
	say(e, "done: %d", j.done);
	tell(e);
	j.result = MUST(e, accept4(e->lfd, NULL, NULL, SOCK_NONBLOCK));
	say(e, "O_NONBLOCK %s", fcntl((int)j.result, F_GETFL) & O_NONBLOCK ? "set" : "not set");
	put(e, j.result, "hello");
	close(j.result);
}

static void interrupted(struct end *e)
{
	for (int i = 0; i < 2; i++) {
		int fd;

		await(e);
		fd = dial(e);
		drain(e, fd);
		close(fd);
	}
}

static void together_peer(struct end *e)
{
	struct job j[3];

	for (int i = 0; i < 3; i++)
		job_sleeps(e, &j[i], job_accept, e->lfd);
	tell(e);
	for (int i = 0; i < 3; i++) {
		job_join(e, &j[i]);
		say(e, "accepted: %d", j[i].result >= 0);
	}
	for (int i = 0; i < 3; i++) {
		put(e, j[i].result, "hello");
		close(j[i].result);
	}
}

static void together(struct end *e)
{
	int fd[3];

	await(e);
	for (int i = 0; i < 3; i++)
		fd[i] = dial(e);
	for (int i = 0; i < 3; i++) {
		drain(e, fd[i]);
		close(fd[i]);
	}
}

/* The call outlives the number, and so does the listener. */
static void closed_under_peer(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, job_accept, e->lfd);
	TRY(e, close(e->lfd));
	asleep(e, j.tid);
	say(e, "done: %d", j.done);
	tell(e);
	job_join(e, &j);
	say(e, "accepted: %d", j.result >= 0);
	put(e, j.result, "hello");
	close(j.result);
	e->lfd = -1;
	meet(e);
}

static void closed_under(struct end *e)
{
	int fd;

	await(e);
	fd = dial(e);
	drain(e, fd);
	close(fd);
	meet(e);
	fd = MUST(e, socket(e->addr.ss_family, SOCK_STREAM, 0));
	TRY(e, connect(fd, (struct sockaddr *)&e->addr, e->addrlen));
	close(fd);
}

/* The kernel takes the number before it waits. */
static void no_number_peer(struct end *e)
{
	int number = MUST(e, dup(0));
	struct rlimit before, few;

	close(number);
	MUST(e, getrlimit(RLIMIT_NOFILE, &before));
	few = before;
	few.rlim_cur = (rlim_t)number;
	MUST(e, setrlimit(RLIMIT_NOFILE, &few));
	TRY(e, accept(e->lfd, NULL, NULL));
	MUST(e, setrlimit(RLIMIT_NOFILE, &before));
	tell(e);
	close(pick_up(e));
}

static void no_number(struct end *e)
{
	int fd;

	await(e);
	fd = dial(e);
	drain(e, fd);
	close(fd);
}

const struct test cases_accept[] = {
	{"accept_nonblocking", RAW, nonblocking, nonblocking_peer},
	{"accept_blocked", RAW, blocked, blocked_peer},
	{"accept_talk_first", RAW, talk_first, talk_first_peer},
	{"accept_much_first", RAW, much_first, much_first_peer},
	{"accept_leave_at_once", RAW, leave_at_once, leave_at_once_peer},
	{"accept_reset_first", RAW, reset_first, reset_first_peer},
	{"accept_listener_closed", RAW, listener_closed, listener_closed_peer},
	{"accept_orphan", 0, orphan, orphan_peer},
	{"accept_bind_rules", ALONE, bind_rules, NULL},
	{"accept_order", RAW, order, order_peer},
	{"accept_interrupted", RAW, interrupted, interrupted_peer},
	{"accept_together", RAW, together, together_peer},
	{"accept_closed_under", RAW, closed_under, closed_under_peer},
	{"accept_no_number", RAW, no_number, no_number_peer},
	{NULL, 0, NULL, NULL},
};
