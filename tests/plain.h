/* SPDX-License-Identifier: MIT */
/* Common steps of small plain programs. They know nothing of Shunt. */
#ifndef TESTS_PLAIN_H
#define TESTS_PLAIN_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static inline _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* In seconds. */
static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static inline struct sockaddr_in loopback(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				    .sin_port = htons(port)};
}

/* Says "port N", for who starts both ends. */
static inline int listener(struct sockaddr_in a, int flags, int backlog)
{
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) || listen(fd, backlog) ||
	    getsockname(fd, (struct sockaddr *)&a, &len))
		die("listen");
	printf("port %d\n", ntohs(a.sin_port));
	fflush(stdout);
	return fd;
}

static inline int dial(struct sockaddr_in a)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	return fd;
}

#endif
