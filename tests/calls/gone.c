/* SPDX-License-Identifier: MIT */
/*
 * For gone.sh, and the lab's. `gone stay [PLACE]`: a server that lives on; it also connects to each place that comes
 * on its standard input. It sends back what comes, and writes a line for each connection that has ended. `gone go
 * [PLACE]`: a peer that connects, or waits for a connection. It talks for a while, leaves something unread, says so
 * and waits to be killed. TEST_LINK: milliseconds that the talk may last, until TCP carries none of it. A place is
 * ADDRESS:PORT, or a port here.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/calls/carried.h"

#define MOST 100
#define QUESTION 1000	/* bytes */

static int check(const char *what, int result)
{
	if (result >= 0)
		return result;
	perror(what);
	exit(1);
}

static struct sockaddr_in place(const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const char *colon = strchr(text, ':');
	char host[16];

	if (colon && colon - text < (int)sizeof(host)) {
		snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
		inet_pton(AF_INET, host, &in.sin_addr);
		text = colon + 1;
	}
	in.sin_port = htons(atoi(text));
	return in;
}

static int listen_at(const char *where)
{
	struct sockaddr_in address = place(where);
	socklen_t length = sizeof(address);
	int fd = check("socket", socket(AF_INET, SOCK_STREAM, 0));

	check("setsockopt", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)));
	check("bind", bind(fd, (struct sockaddr *)&address, length));
	check("listen", listen(fd, 10));
	check("getsockname", getsockname(fd, (struct sockaddr *)&address, &length));
	printf("port %d\n", ntohs(address.sin_port));
	return fd;
}

static int dial(const char *where)
{
	struct sockaddr_in address = place(where);
	int fd = check("socket", socket(AF_INET, SOCK_STREAM, 0));

	check("connect", connect(fd, (struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* False: it has ended. */
static int send_back(int fd)
{
	static char buf[1 << 16];
	ssize_t got = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return 1;
	/*
	 * A peer that reads nothing may leave no room: between hosts there is less than the kernel has. One that asks waits
	 * for its answer, and a busy one may take long to say that the nonce can come (core/stream/proof.h).
	 */
	if (got > 0 &&
	    (send(fd, buf, got, MSG_NOSIGNAL | (got > QUESTION ? MSG_DONTWAIT : 0)) > 0 ||
	     errno == EAGAIN))
		return 1;
	printf("end %s\n", got == 0 ? "0" : strerrorname_np(errno));
	close(fd);
	return 0;
}

static int stay(const char *where)
{
	struct pollfd fds[MOST] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = listen_at(where), .events = POLLIN}};
	char line[32];
	int count = 2;

	for (;;) {
		check("poll", poll(fds, count, -1));
		for (int i = count - 1; i >= 2; i--)
			if (fds[i].revents && !send_back(fds[i].fd))
				fds[i] = fds[--count];
		if (fds[0].revents) {
			if (!fgets(line, sizeof(line), stdin))
				return 0;
			fds[count++] = (struct pollfd){.fd = dial(line), .events = POLLIN};
		}
		if (fds[1].revents)
			fds[count++] = (struct pollfd){.fd = check("accept", accept(fds[1].fd, NULL, NULL)), .events = POLLIN};
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static _Noreturn void go(const char *where)
{
	int fd = where ? dial(where) : check("accept", accept(listen_at("0"), NULL, NULL));
	const char *link = getenv("TEST_LINK");
	char buf[40000] = {0};
	double begun = now();
	uint64_t before = 0;

	while (now() < begun + 0.15 || (link && now() < begun + atoi(link) / 1e3 && before != carried(fd))) {
		before = carried(fd);
		check("send", send(fd, buf, QUESTION, 0));
		check("recv", recv(fd, buf, QUESTION, MSG_WAITALL));
	}
	check("send", send(fd, buf, sizeof(buf), 0));
	check("poll", poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1));	/* with nothing unread it would end orderly */
	printf("talked\n");
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	if (argc > 1 && !strcmp(argv[1], "stay"))
		return stay(argc > 2 ? argv[2] : "0");
	if (argc > 1 && !strcmp(argv[1], "go"))
		go(argc > 2 ? argv[2] : NULL);
	fprintf(stderr, "usage: gone stay [PLACE] | gone go [PLACE]\n");
	return 2;
}
