/* SPDX-License-Identifier: MIT */
/*
 * Programs that are ill on purpose, and healthy ones, for tests/findings.sh and tests/bench/paper/xr_e6.sh.
 *
 * sick server KIND BYTES MS: prints its port. Requests have BYTES, answers 16.
 *	well		answers each request at once
 *	stall		after every second answer allocates and frees memory for MS ms before it looks again
 *	slow		reads a request in 16 pieces, with MS / 16 ms behind each
 *	mute		reads, and answers no more from SIGUSR1 on
 *	sink		reads, and never answers
 *	deaf		reads, never answers, and reads no more from SIGUSR1 on
 *	never		accepts, and never reads
 * sick client PORT ask BYTES 1: a request, its answer, the next one; from SIGUSR1 on it only waits.
 * sick client PORT flood BYTES CONNECTIONS: sends blocks of BYTES without end on that many connections, each with a thread.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tests/plain.h"

#define BYTES (1 << 20)
#define ANSWER 16
#define PIECES 16
#define CONNECTIONS 1024

enum kind { WELL, STALL, SLOW, MUTE, SINK, DEAF, NEVER, KINDS };

static const char *const kinds[KINDS] = {
	"well", "stall", "slow", "mute", "sink", "deaf", "never"
};
static char buffer[BYTES];
static size_t bytes;
static volatile sig_atomic_t struck;

static void strike(int number)
{
	struck = number;
}

static void rest(double ms)
{
	struct timespec time = { .tv_sec = (time_t)(ms / 1000) };

	time.tv_nsec = (long)((ms - (double)time.tv_sec * 1000) * 1e6);
	nanosleep(&time, NULL);
}

/* --- the server --- */

static enum kind kind;
static double ms;
static struct {
	size_t got, requests;
} streams[CONNECTIONS];

/* As an allocator does that returns its pages to the kernel and faults them in again. */
static void allocate(void)
{
	double until = now() + ms / 1000;

	while (now() < until) {
		char *block = malloc(1 << 21);

		if (!block)
			die("malloc");
		memset(block, 1, 1 << 21);
		__asm__ volatile("" : : "r"(block) : "memory");
		free(block);
	}
}

/* A request is complete. */
static void answer(int fd, size_t number)
{
	static const char text[ANSWER];

	if (kind == SINK || kind == DEAF || (kind == MUTE && struck))
		return;
	if (send(fd, text, sizeof(text), MSG_NOSIGNAL) != sizeof(text))
		die("send");
	if (kind == STALL && number % 2)
		allocate();
}

/* False: the client is gone. */
static bool take(int fd)
{
	size_t want = bytes - streams[fd].got;
	ssize_t got;

	if (kind == DEAF && struck)
		for (;;)
			pause();
	if (kind == SLOW && want > bytes / PIECES)
		want = bytes / PIECES;
	got = recv(fd, buffer, want, 0);
	if (got <= 0)
		return false;
	if (kind == SLOW)
		rest(ms / PIECES);
	streams[fd].got += (size_t)got;
	if (streams[fd].got < bytes)
		return true;
	streams[fd].got = 0;
	answer(fd, ++streams[fd].requests);
	return true;
}

static void watch(int set, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || fd >= CONNECTIONS || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		die("watch");
}

static _Noreturn void serve(void)
{
	int door = listener(loopback(0), 0, CONNECTIONS), set = epoll_create1(0);
	struct epoll_event event;

	watch(set, door);
	for (;;) {
		int fd;

		if (epoll_wait(set, &event, 1, -1) != 1)
			continue;
		fd = event.data.fd;
		if (fd == door && kind == NEVER && accept(door, NULL, NULL) >= 0)
			continue;
		if (fd == door)
			watch(set, accept(door, NULL, NULL));
		else if (!take(fd))
			close(fd);
	}
}

/* --- the client --- */

static void ask(int port)
{
	int fd = dial(loopback(port));

	while (!struck) {
		if (send(fd, buffer, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
			die("send");
		if (recv(fd, buffer, ANSWER, MSG_WAITALL) != ANSWER)
			die("recv");
	}
	for (;;)
		pause();
}

static _Noreturn void *send_on(void *port)
{
	int fd = dial(loopback(*(int *)port));

	for (;;)
		if (send(fd, buffer, bytes, MSG_NOSIGNAL) < 0)
			die("send");
}

static void flood(int port, size_t count)
{
	pthread_t thread;

	for (size_t i = 1; i < count; i++)
		if (pthread_create(&thread, NULL, send_on, &port))
			die("pthread_create");
	send_on(&port);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = strike, .sa_flags = SA_RESTART };

	if (sigaction(SIGUSR1, &action, NULL))
		die("sigaction");
	if (argc == 5 && !strcmp(argv[1], "server")) {
		while (kind < KINDS && strcmp(argv[2], kinds[kind]) != 0)
			kind++;
		bytes = (size_t)atol(argv[3]);
		ms = atof(argv[4]);
		if (kind < KINDS && bytes >= PIECES && bytes <= BYTES)
			serve();
	} else if (argc == 6 && !strcmp(argv[1], "client")) {
		bytes = (size_t)atol(argv[4]);
		if (bytes && bytes <= BYTES && !strcmp(argv[3], "ask"))
			ask(atoi(argv[2]));
		else if (bytes && bytes <= BYTES && !strcmp(argv[3], "flood"))
			flood(atoi(argv[2]), (size_t)atol(argv[5]));
	}
	return 2;
}
