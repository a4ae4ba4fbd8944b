/* SPDX-License-Identifier: MIT */
/*
 * A server whose threads sleep, and a client that asks it TURNS times, to count what threads are woken for.
 *
 *	wakes WAY TURNS
 *
 * WAY says how the server waits:
 *
 *	within		the main thread looks at a set; another sleeps in a set around it that asks for nothing
 *	around		the same, and the other polls for what the outer set never has
 *	rearmed		one thread sleeps, another reads, answers, and arms EPOLLONESHOT again
 *	oneshot, edge	four threads in one set, each reads and answers
 *	exclusive	two sets with a thread each; EPOLLEXCLUSIVE, edge-triggered
 *	each, sets	four threads with a connection each, which they receive from, or have in a set; asked in turn
 *	hangup		the main thread reads; others sleep in a set and in a poll that ask for the end alone
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/calls/carried.h"

#define SIZE 64
#define EACH 4

static int set, fd, listener;
static int own[EACH];	/* connections of `each` and `sets`; the first is fd */
static sem_t work;
static atomic_bool over;	/* one thread ends the process */

static long check(const char *what, long result)
{
	if (result >= 0)
		return result;
	perror(what);
	exit(99);
}
#define MUST(call) check(#call, call)

static int set_with(int member, unsigned events)
{
	struct epoll_event event = { .events = events };
	int made = (int)MUST(epoll_create1(EPOLL_CLOEXEC));

	MUST(epoll_ctl(made, EPOLL_CTL_ADD, member, &event));
	return made;
}

static void end(void)
{
	if (!atomic_exchange(&over, true))
		exit(0);
	for (;;)
		pause();
}

static void arm(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	MUST(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
}

/*
 * One question is answered. The next comes only then, so nothing is there as a registration is `rearmed`. The client ends
 * the connection, and the process with it.
 */
static void answer_on(int from, int flags, bool rearmed)
{
	char buf[SIZE];
	ssize_t n = recv(from, buf, sizeof(buf), flags);

	if (n < 0 && errno == EAGAIN)
		return;
	if (!MUST(n))
		end();
	if (rearmed)
		arm();
	MUST(send(from, buf, (size_t)n, MSG_NOSIGNAL));
}

static void answer(int flags, bool rearmed)
{
	answer_on(fd, flags, rearmed);
}

static void wait_in(int epfd, int timeout)
{
	struct epoll_event event;

	while (epoll_wait(epfd, &event, 1, timeout) != 1)
		;
}

static void *sleep_in(void *epfd)
{
	for (;;)
		wait_in(*(int *)epfd, -1);
	return NULL;
}

static void *sleep_in_poll(void *polled)
{
	while (poll(polled, 1, -1) >= 0)
		;
	return NULL;
}

static void *read_and_arm(void *unused)
{
	for (;;) {
		sem_wait(&work);
		answer(MSG_DONTWAIT, true);
	}
	return unused;
}

static void *serve_edge(void *epfd)
{
	for (;;) {
		wait_in(*(int *)epfd, -1);
		answer(MSG_DONTWAIT, false);
	}
	return NULL;
}

static void *serve_oneshot(void *unused)
{
	for (;;) {
		wait_in(set, -1);
		answer(MSG_DONTWAIT, true);
	}
	return unused;
}

static void *serve_own(void *connection)
{
	for (;;)
		answer_on(*(int *)connection, 0, false);
	return NULL;
}

static void *serve_own_set(void *connection)
{
	int own_set = set_with(*(int *)connection, EPOLLIN);

	for (;;) {
		wait_in(own_set, -1);
		answer_on(*(int *)connection, MSG_DONTWAIT, false);
	}
	return NULL;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(-pthread_create(&thread, NULL, run, arg));
}

static bool has_each(const char *way)
{
	return !strcmp(way, "each") || !strcmp(way, "sets");
}

static void serve(const char *way)
{
	static int other;
	static struct pollfd polled;

	if (!strcmp(way, "within") || !strcmp(way, "around")) {
		set = set_with(fd, EPOLLIN);
		other = set_with(set, 0);
		polled = (struct pollfd) { .fd = other, .events = POLLIN };
		if (*way == 'w')
			start(sleep_in, &other);
		else
			start(sleep_in_poll, &polled);
		for (;;) {
			wait_in(set, 0);
			answer(MSG_DONTWAIT, false);
		}
	} else if (!strcmp(way, "rearmed")) {
		set = set_with(fd, EPOLLIN | EPOLLONESHOT);
		start(read_and_arm, NULL);
		for (;;) {
			wait_in(set, -1);
			sem_post(&work);
		}
	} else if (!strcmp(way, "oneshot")) {
		set = set_with(fd, EPOLLIN | EPOLLONESHOT);
		for (int i = 0; i < 3; i++)
			start(serve_oneshot, NULL);
		serve_oneshot(NULL);
	} else if (!strcmp(way, "edge")) {
		set = set_with(fd, EPOLLIN | EPOLLET);
		for (int i = 0; i < 3; i++)
			start(serve_edge, &set);
		serve_edge(&set);
	} else if (!strcmp(way, "exclusive")) {
		set = set_with(fd, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE);
		other = set_with(fd, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE);
		start(serve_edge, &other);
		serve_edge(&set);
	} else if (has_each(way)) {
		void *(*run)(void *) = strcmp(way, "each") ? serve_own_set : serve_own;

		for (int i = 0; i < EACH; i++) {
			own[i] = i ? (int)MUST(accept(listener, NULL, NULL)) : fd;
			start(run, &own[i]);
		}
		for (;;)
			pause();
	} else if (!strcmp(way, "hangup")) {
		other = set_with(fd, EPOLLRDHUP);
		polled = (struct pollfd) { .fd = fd, .events = POLLRDHUP };
		start(sleep_in, &other);
		start(sleep_in_poll, &polled);
		for (;;)
			answer(0, false);
	}
}

static void ask(long turns)
{
	char buf[SIZE] = "";
	ssize_t n;

	for (long i = 0; i < turns; i++) {
		MUST(send(fd, buf, SIZE, 0));
		for (ssize_t left = SIZE; left; left -= n) {
			n = MUST(recv(fd, buf, (size_t)left, 0));
			if (!n)
				exit(98);
		}
	}
}

static void connect_and_warm(const struct sockaddr_in *address)
{
	const char *link = getenv("TEST_LINK");	/* at most so often ten turns more, until none is on TCP */
	uint64_t before = UINT64_MAX;	/* of a new connection TCP has carried none */
	int one = 1;

	fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd, (const struct sockaddr *)address, sizeof(*address)));
	MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	for (long i = 0, limit = link ? atol(link) : 0; i < limit && before != carried(fd); i++) {
		before = carried(fd);
		ask(10);
	}
}

static void client(int port_pipe, const char *way, long turns)
{
	int count = has_each(way) ? EACH : 1;
	struct sockaddr_in address;

	MUST(read(port_pipe, &address, sizeof(address)));
	for (int i = 0; i < count; i++) {
		connect_and_warm(&address);
		own[i] = fd;
	}
	for (long i = 0; i < turns; i++) {
		fd = own[i % count];
		ask(1);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int pipes[2], one = 1;

	if (argc != 3)
		return 2;
	MUST(pipe(pipes));
	if (!MUST(fork()))	/* before there is an engine: two processes that know nothing of each other */
		client(pipes[0], argv[1], atol(argv[2]));
	listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(listener, (struct sockaddr *)&address, length));
	MUST(listen(listener, 1));
	MUST(getsockname(listener, (struct sockaddr *)&address, &length));
	MUST(write(pipes[1], &address, sizeof(address)));
	fd = (int)MUST(accept(listener, NULL, NULL));
	MUST(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	printf("%d\n", getpid());
	fflush(stdout);
	sem_init(&work, 0, 0);
	serve(argv[1]);
	return 2;
}
