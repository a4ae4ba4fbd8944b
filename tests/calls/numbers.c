/* SPDX-License-Identifier: MIT */
/*
 * Uses numbers that it has closed, over and over. It knows nothing of Shunt. Its first line has its
 * process id; it goes on when its standard input ends, and says what came of each send.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 10000
#define SENDS 20	/* on each number */

enum { DEVICE, UDP, STREAM, TCP, KINDS };	/* the number was never a TCP socket before the last */

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* A connection of its own, in use from both ends. */
static void converse(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0), b;
	char byte = 'x';

	if (bind(listener, (void *)&at, length) || listen(listener, 1) ||
	    getsockname(listener, (void *)&at, &length) || connect(a, (void *)&at, length))
		fail("connect");
	b = accept(listener, NULL, NULL);
	for (int i = 0; i < 1000; i++)
		if (write(a, &byte, 1) != 1 || read(b, &byte, 1) != 1 || write(b, &byte, 1) != 1 ||
		    read(a, &byte, 1) != 1)
			fail("conversation");
}

static int closed_number(int kind)
{
	int fd = kind == TCP ? socket(AF_INET, SOCK_STREAM, 0) :
		 kind == UDP ? socket(AF_INET, SOCK_DGRAM, 0) : open("/dev/null", O_RDWR);
	FILE *stream;

	if (fd < 0)
		fail("a number");
	if (kind != STREAM) {
		close(fd);
		return fd;
	}
	stream = fdopen(fd, "w");
	if (!stream)
		fail("fdopen");
	fclose(stream);
	return fd;
}

int main(void)
{
	static const char *const names[] = { "file", "UDP socket", "stdio", "TCP socket" };
	char line[16];

	converse();
	printf("pid %d\n", getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, line, sizeof(line)) > 0)
		;
	for (int kind = 0; kind < KINDS; kind++) {
		int others = 0, sent = 0;

		for (int i = 0; i < ROUNDS; i++) {
			int fd = closed_number(kind);

			for (int k = 0; k < SENDS; k++) {
				if (send(fd, "x", 1, MSG_NOSIGNAL) >= 0)
					sent++;
				else if (errno != EBADF)
					others++;
			}
		}
		printf("%s: sent %d, not EBADF %d\n", names[kind], sent, others);
	}
	return 0;
}
