/* SPDX-License-Identifier: MIT */
/*
 * instructions TURNS BYTES: one thread is both ends of a connection, so that each call does the same in each run. A turn is a
 * message and its answer, through two epoll sets, and a registration that is made and removed. instructions.sh counts what
 * the functions count_* cost.
 */
#include <sys/epoll.h>
#include <unistd.h>
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define COUNTED __attribute__((noinline, noclone))

static char bytes[65536];

COUNTED ssize_t count_send(int fd, size_t length);
COUNTED ssize_t count_recv(int fd);
COUNTED ssize_t count_nothing(int fd);
COUNTED int count_epoll_wait(int set, struct epoll_event *event);
COUNTED int count_epoll_add(int set, int fd);
COUNTED int count_epoll_del(int set, int fd);

/* The barriers keep each call in its function: a call in its end would be a jump, and not counted. */
COUNTED ssize_t count_send(int fd, size_t length)
{
	ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

	__asm__ volatile("" ::: "memory");
	return sent;
}

COUNTED ssize_t count_recv(int fd)
{
	ssize_t got = recv(fd, bytes, sizeof(bytes), 0);

	__asm__ volatile("" ::: "memory");
	return got;
}

/* A receive that finds nothing. */
COUNTED ssize_t count_nothing(int fd)
{
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	__asm__ volatile("" ::: "memory");
	return got;
}

COUNTED int count_epoll_wait(int set, struct epoll_event *event)
{
	int n = epoll_wait(set, event, 1, -1);

	__asm__ volatile("" ::: "memory");
	return n;
}

COUNTED int count_epoll_add(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	int result = epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);

	__asm__ volatile("" ::: "memory");
	return result;
}

COUNTED int count_epoll_del(int set, int fd)
{
	int result = epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);

	__asm__ volatile("" ::: "memory");
	return result;
}

static void turn(int set, int here, int there, ssize_t length)
{
	struct epoll_event event;

	if (count_send(here, (size_t)length) != length || count_epoll_wait(set, &event) != 1 ||
	    count_recv(there) != length || count_nothing(there) != -1)
		die("turn");
}

int main(int argc, char **argv)
{
	int turns = argc > 2 ? atoi(argv[1]) : 0, length = argc > 2 ? atoi(argv[2]) : 0;
	int door, near, far, sets[2], extra;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);
	uint64_t before = 1, after = 0;

	if (turns < 1 || length < 1 || length > (int)sizeof(bytes)) {
		fprintf(stderr, "usage: instructions TURNS BYTES\n");
		return 2;
	}
	door = listener(loopback(0), 0, 1);
	extra = epoll_create1(0);
	if (getsockname(door, (struct sockaddr *)&address, &size))
		die("getsockname");
	near = dial(address);
	far = accept(door, NULL, NULL);
	for (int i = 0; i < 2; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		sets[i] = epoll_create1(0);
		if (epoll_ctl(sets[i], EPOLL_CTL_ADD, i ? near : far, &event))
			die("epoll_ctl");
	}
	for (int i = 0; i < 1000 && before != after; i++) {	/* until TCP carries nothing of a turn */
		before = carried(near);
		if (send(near, bytes, 1, 0) != 1 || recv(far, bytes, 1, 0) != 1 ||
		    send(far, bytes, 1, 0) != 1 || recv(near, bytes, 1, 0) != 1)
			die("first turns");
		after = carried(near);
		usleep(1000);
	}
	for (int i = 0; i < turns; i++) {
		if (count_epoll_add(extra, near))
			die("epoll_ctl");
		turn(sets[0], near, far, length);
		turn(sets[1], far, near, length);
		if (count_epoll_del(extra, near))
			die("epoll_ctl");
	}
	printf("%s\n", carried(near) == after ? "link" : "TCP");
	return 0;
}
