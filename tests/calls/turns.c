/* SPDX-License-Identifier: MIT */
/*
 * Both ends of a connection turn to a ring of io_uring while bytes are unread, and a ring goes while connections come. One
 * process has both ends. It prints the same bare and shunted, and knows nothing of Shunt.
 *
 *	turns WAY
 *
 *	late        one end reads by a ring, and writes on; then the other reads all of it by a ring
 *	latesend    the same, and it writes on by the ring
 *	crossing    much is sent both ways at once; both ends begin to read by rings in the middle of it
 *	unmapped    a ring is unmapped, as before it is closed, and more connections come
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "ring.h"

#define BEFORE 6000	/* messages by libc's calls, in which the connection comes to a link */
#define SOME 1000
#define PART 500000	/* bytes of `crossing` that are read by libc's calls */
#define MUCH (24 << 20)	/* more than the buffers on the way hold */

static int listener;

static unsigned char byte_at(size_t offset, int salt)
{
	return (unsigned char)(offset / 3 + (unsigned int)salt);
}

static void connect_pair(int ends[2])
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	if (!listener) {
		listener = socket(AF_INET, SOCK_STREAM, 0);
		address = (struct sockaddr_in) { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 8))
			fail("listen");
	}
	if (getsockname(listener, (struct sockaddr *)&address, &length))
		fail("getsockname");
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(ends[0], (struct sockaddr *)&address, length))
		fail("connect");
	ends[1] = accept(listener, NULL, NULL);
	if (ends[1] < 0)
		fail("accept");
}

static void all(int fd, unsigned char *bytes, size_t count)
{
	for (ssize_t got; count; bytes += got, count -= (size_t)got) {
		got = read(fd, bytes, count);
		if (got <= 0)
			fail("read");
	}
}

static void play(int ends[2], int messages)
{
	unsigned char bytes[40] = "";

	for (int i = 0; i < messages; i++) {
		if (write(ends[0], bytes, sizeof(bytes)) != sizeof(bytes))
			fail("write");
		all(ends[1], bytes, sizeof(bytes));
		if (write(ends[1], bytes, sizeof(bytes)) != sizeof(bytes))
			fail("write");
		all(ends[0], bytes, sizeof(bytes));
	}
}

/* --- late --- */

static void send_part(int fd, struct ring *ring, size_t from)
{
	unsigned char bytes[SOME];

	for (size_t i = 0; i < SOME; i++)
		bytes[i] = byte_at(from + i, 0);
	if (ring)
		entry(ring, IORING_OP_SEND, fd, bytes, SOME);
	if ((ring ? one(ring) : write(fd, bytes, SOME)) != SOME)
		fail("send");
}

static void late(bool sends)
{
	unsigned char bytes[2 * SOME];
	struct ring ring;
	size_t seen = 0;
	int ends[2];

	connect_pair(ends);
	play(ends, BEFORE);
	if (!ring_make(&ring, 0))
		fail("no ring");
	send_part(ends[0], NULL, 0);
	entry(&ring, IORING_OP_RECV, ends[0], bytes, SOME)->msg_flags = MSG_DONTWAIT;
	printf("nothing: %s\n", strerror(-one(&ring)));
	send_part(ends[0], sends ? &ring : NULL, SOME);
	while (seen < sizeof(bytes)) {
		int got;

		entry(&ring, IORING_OP_RECV, ends[1], bytes + seen, (unsigned int)(sizeof(bytes) - seen));
		got = one(&ring);
		if (got <= 0) {
			printf("%d after %zu bytes\n", got, seen);
			return;
		}
		seen += (size_t)got;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		if (bytes[i] != byte_at(i, 0)) {
			printf("byte %zu is wrong\n", i);
			return;
		}
	printf("%zu bytes\n", seen);
}

/* --- crossing --- */

struct end {
	int fd, salt;	/* of what comes */
	pthread_t sender, reader;
	_Atomic bool sent;
};

static pthread_barrier_t both;

static void *sends(void *arg)
{
	struct end *end = arg;
	unsigned char bytes[30000];

	for (size_t at = 0; at < MUCH;) {
		size_t count = MUCH - at < sizeof(bytes) ? MUCH - at : sizeof(bytes);
		ssize_t sent;

		for (size_t i = 0; i < count; i++)
			bytes[i] = byte_at(at + i, !end->salt);
		sent = write(end->fd, bytes, count);
		if (sent <= 0)
			fail("write");
		at += (size_t)sent;
	}
	end->sent = true;
	return NULL;
}

/* Until its own sender can send no more, because nobody reads that either. */
static void await_full(struct end *end)
{
	struct pollfd room = { .fd = end->fd, .events = POLLOUT };

	while (!end->sent && poll(&room, 1, 0) > 0)
		sched_yield();
}

static void *reads(void *arg)
{
	static unsigned char room[2][40000];
	struct end *end = arg;
	unsigned char *bytes = room[end->salt];
	struct ring ring;
	size_t seen = 0;

	if (!ring_make(&ring, 0))
		fail("no ring");
	while (seen < MUCH) {
		ssize_t got;

		if (seen == PART) {
			await_full(end);
			pthread_barrier_wait(&both);
		}
		if (seen < PART) {
			got = read(end->fd, bytes, PART - seen < 40000 ? PART - seen : 40000);
		} else {
			entry(&ring, IORING_OP_RECV, end->fd, bytes, 40000);
			got = one(&ring);
		}
		for (ssize_t i = 0; i < got; i++)
			if (bytes[i] != byte_at(seen + (size_t)i, end->salt)) {
				printf("byte %zu is wrong\n", seen + (size_t)i);
				exit(1);
			}
		if (got <= 0) {
			printf("%zd after %zu bytes\n", got, seen);
			exit(1);
		}
		seen += (size_t)got;
	}
	return NULL;
}

static void crossing(void)
{
	struct end end[2];
	int ends[2];

	connect_pair(ends);
	play(ends, BEFORE);
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++) {
		end[i] = (struct end) { .fd = ends[i], .salt = i };
		if (pthread_create(&end[i].reader, NULL, reads, &end[i]) ||
		    pthread_create(&end[i].sender, NULL, sends, &end[i]))
			fail("pthread_create");
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(end[i].sender, NULL);
		pthread_join(end[i].reader, NULL);
	}
	printf("%d bytes each way\n", MUCH);
}

/* --- unmapped --- */

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Rings are looked for once a second at most, for connections that come. */
static void unmapped(void)
{
	struct ring ring;
	double until;
	int ends[2];

	if (!ring_make(&ring, 0))
		fail("no ring");
	connect_pair(ends);
	play(ends, BEFORE);
	ring_unmap(&ring);
	for (until = seconds() + 2.5; seconds() < until;) {
		close(ends[0]);
		close(ends[1]);
		connect_pair(ends);
		play(ends, BEFORE / 10);
	}
	printf("it is still there\n");
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";

	if (!strcmp(way, "late") || !strcmp(way, "latesend"))
		late(way[4]);
	else if (!strcmp(way, "crossing"))
		crossing();
	else if (!strcmp(way, "unmapped"))
		unmapped();
	else
		return fprintf(stderr, "turns late|latesend|crossing|unmapped\n"), 2;
	return 0;
}
