/* SPDX-License-Identifier: MIT */
/*
 * many server				an echo server on one epoll set; prints "port N", ends
 *					when its last connection does
 * many client PORT N ROUNDS [IDLE]	opens N connections, sends one message on each ROUNDS times,
 *					prints "served COUNT"; with IDLE it then keeps them open until
 *					its standard input ends
 * TEST_LINK: milliseconds that rounds may go on, until one of them takes no TCP.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define MESSAGE 64

static int open_now;	/* -1 at the end */

static void add(int ep, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev))
		die("epoll_ctl");
}

static void accept_all(int ep, int l)
{
	int fd;

	while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		add(ep, fd);
		open_now++;
	}
	if (errno != EAGAIN)
		die("accept");
}

static void echo(int fd)
{
	char buf[4096];
	ssize_t r = recv(fd, buf, sizeof(buf), 0);

	if (r > 0 && send(fd, buf, r, MSG_NOSIGNAL) == r)
		return;
	if (r < 0 && errno == EAGAIN)
		return;
	if (r < 0)
		perror("recv");
	close(fd);
	if (--open_now == 0)
		open_now = -1;
}

/* Ends when the last connection has. */
static int server(void)
{
	int ep = epoll_create1(0), l = listener(loopback(0), SOCK_NONBLOCK, 4096);
	struct epoll_event ev[64];

	add(ep, l);
	while (open_now >= 0) {
		int n = epoll_wait(ep, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.fd == l)
				accept_all(ep, l);
			else
				echo(ev[i].data.fd);
		}
	}
	return 0;
}

static int ask(int fd, int i, int round)
{
	char out[MESSAGE] = "", in[MESSAGE];

	snprintf(out, sizeof(out), "message %d of connection %d", round, i);
	return send(fd, out, MESSAGE, MSG_NOSIGNAL) == MESSAGE &&
	       recv(fd, in, MESSAGE, MSG_WAITALL) == MESSAGE && !memcmp(in, out, MESSAGE);
}

static uint64_t carried_of_all(const int *fd, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += carried(fd[i]);
	return sum;
}

static int client(int port, int n, int rounds, int idle)
{
	const char *link = getenv("TEST_LINK");
	int *fd = calloc(n, sizeof(*fd)), round = 0;
	double begun = now();
	uint64_t before = 0;
	long served = 0;
	char c;

	for (int i = 0; i < n; i++)
		fd[i] = dial(loopback(port));
	while (round < rounds || (link && now() < begun + atoi(link) / 1e3 && before != carried_of_all(fd, n))) {
		before = link ? carried_of_all(fd, n) : 0;
		for (int i = 0; i < n; i++)
			served += ask(fd[i], i, round);
		round++;
	}
	printf("served %ld\n", served);
	fflush(stdout);
	while (idle && read(0, &c, 1) > 0)
		;
	return served != (long)n * round;
}

int main(int argc, char **argv)
{
	struct rlimit l;

	if (!getrlimit(RLIMIT_NOFILE, &l)) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	if (argc == 2 && !strcmp(argv[1], "server"))
		return server();
	if (argc >= 5 && !strcmp(argv[1], "client"))
		return client(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), argc > 5);
	fprintf(stderr, "usage: many server | client PORT N ROUNDS [IDLE]\n");
	return 2;
}
