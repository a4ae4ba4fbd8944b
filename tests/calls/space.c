/* SPDX-License-Identifier: MIT */
/*
 * For space.sh: ends that want to know how much memory they can still have.
 *
 * space server N		echoes what N connections send, until each of them has ended its sending
 * space client PORT ROUNDS	sends messages of all sizes and checks what comes back, then ends its sending
 *
 * Then, with the connections still open, each allocates all it gets with malloc(), says "allocates MiB", and frees it.
 * TEST_LINK: milliseconds that rounds may go on, until one of them takes no TCP.
 */
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define MOST 64
#define LARGEST 8192	/* bytes of a message: both ends' buffers hold it */
#define PIECE (1 << 20)

struct piece {
	struct piece *next;
};

static int allocatable(void)
{
	struct piece *all = NULL, *piece;
	int count = 0;

	while (count < 1 << 14 && (piece = malloc(PIECE)) != NULL) {
		piece->next = all;
		all = piece;
		count++;
	}
	while ((piece = all) != NULL) {
		all = piece->next;
		free(piece);
	}
	return count;
}

static void report(void)
{
	printf("allocates %d\n", allocatable());
	fflush(stdout);
}

static void send_all(int fd, const char *bytes, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

		if (sent < 0)
			die("send");
		bytes += sent;
		length -= sent;
	}
}

static int server(int n)
{
	struct pollfd all[MOST] = {{.fd = listener(loopback(0), 0, MOST), .events = POLLIN}};
	int count = 0, open = n;
	char bytes[LARGEST];

	while (open) {
		if (poll(all, count + 1, -1) < 0)
			die("poll");
		for (int i = 1; i <= count; i++) {
			ssize_t got = all[i].revents ? recv(all[i].fd, bytes, sizeof(bytes), 0) : -2;

			if (got == -1)
				die("recv");
			if (got > 0)
				send_all(all[i].fd, bytes, got);
			if (!got) {
				all[i].events = 0;
				open--;
			}
		}
		if (all[0].revents) {
			all[++count] = (struct pollfd){.fd = accept(all[0].fd, NULL, NULL), .events = POLLIN};
			if (count == n)
				all[0].events = 0;
		}
	}
	report();
	return 0;
}

static int ask(int fd, int round)
{
	size_t length = 1 + (size_t)round * 977 % LARGEST;
	char out[LARGEST], in[LARGEST];

	for (size_t i = 0; i < length; i++)
		out[i] = (char)(i * 31 + round);
	send_all(fd, out, length);
	return recv(fd, in, length, MSG_WAITALL) == (ssize_t)length && !memcmp(in, out, length);
}

static int client(int port, int rounds)
{
	const char *link = getenv("TEST_LINK");
	int fd = dial(loopback(port)), round = 0, wrong = 0;
	double begun = now();
	uint64_t before = 0;
	char byte;

	while (round < rounds || (link && now() < begun + atoi(link) / 1e3 && before != carried(fd))) {
		before = carried(fd);
		wrong += !ask(fd, round++);
	}
	if (wrong)
		fprintf(stderr, "%d of %d messages came back wrong\n", wrong, round);
	shutdown(fd, SHUT_WR);
	report();
	return wrong || recv(fd, &byte, 1, 0);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "server") && atoi(argv[2]) < MOST)
		return server(atoi(argv[2]));
	if (argc == 4 && !strcmp(argv[1], "client"))
		return client(atoi(argv[2]), atoi(argv[3]));
	fprintf(stderr, "usage: space server N | client PORT ROUNDS\n");
	return 2;
}
