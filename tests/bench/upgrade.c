/* SPDX-License-Identifier: MIT */
/*
 * upgrade PORT COUNT PATIENCE: opens so many connections to an echo server of this host, one after the other. For
 * each it prints the microseconds from connect() to the first answer that no TCP segment has carried. A plain
 * program: bare, and where nothing is upgraded within PATIENCE seconds, it prints 0.
 */
#include <stdint.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

static void ask(int fd)
{
	char c = 'x';

	if (send(fd, &c, 1, MSG_NOSIGNAL) != 1 || recv(fd, &c, 1, 0) != 1)
		die("ask");
}

static double upgraded_after(int port, double patience)
{
	double start = now();
	int fd = dial(loopback(port)); /* stays open */
	uint64_t before, after = carried(fd);

	do {
		before = after;
		ask(fd);
		after = carried(fd);
		if (after == before)
			return now() - start;
	} while (now() - start < patience);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: upgrade PORT COUNT PATIENCE\n");
		return 2;
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		printf("%.0f\n", upgraded_after(atoi(argv[1]), atof(argv[3])) * 1e6);
	return 0;
}
