/* SPDX-License-Identifier: MIT */
/*
 * crowd server THREADS COUNT FILE		prints "port N"
 * crowd client THREADS COUNT FILE PORT block|epoll|stream
 *
 * Threads of two processes, each with a connection of its own.
 * - block: round trips of 64 bytes, waited for in recv(2).
 * - epoll: the same, waited for in epoll_wait(2) of the thread's own set.
 * - stream: messages of 4 KiB to the server, each received whole after epoll_wait(2).
 *
 * With counted.so and lines.so preloaded, both processes note what their library does for COUNT messages of each
 * thread, and write that to FILE. Nothing is noted before all connections are on the link.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "tests/bench/lines.h"
#include "tests/calls/carried.h"
#include "tests/plain.h"

#define THREADS 32
#define SMALL 64
#define LARGE 4096
#define CALM 50	/* round trips in a row that TCP has carried nothing of */

enum mode { BLOCK, EPOLL, STREAM, MODES };
static const char *const words[MODES] = { "block", "epoll", "stream" };

struct member {
	pthread_t thread;
	int fd, set;
	bool noted;	/* calls are noted from here on */
};

static enum mode mode;
static uint32_t count;
static const char *file;
static bool is_server;
static pthread_barrier_t gate;
static struct member members[THREADS];

static void (*begin)(void), (*end)(void), (*call)(enum lines_kind), (*finish)(const char *);

static void find_lines(void)
{
	begin = (void (*)(void))dlsym(RTLD_DEFAULT, "lines_begin");
	end = (void (*)(void))dlsym(RTLD_DEFAULT, "lines_end");
	call = (void (*)(enum lines_kind))dlsym(RTLD_DEFAULT, "lines_call");
	finish = (void (*)(const char *))dlsym(RTLD_DEFAULT, "lines_write");
	if (!begin || !end || !call || !finish) {
		fprintf(stderr, "lines.so is not preloaded\n");
		exit(1);
	}
}

static void note(const struct member *m, enum lines_kind kind)
{
	if (m->noted)
		call(kind);
}

static void put(struct member *m, const char *buffer, size_t bytes)
{
	ssize_t n;

	for (size_t done = 0; done < bytes; done += n) {
		note(m, LINES_SEND);
		n = send(m->fd, buffer + done, bytes - done, 0);
		note(m, LINES_OTHER);
		if (n <= 0)
			die("send");
	}
}

static void await_readable(struct member *m)
{
	struct epoll_event event;

	note(m, LINES_WAIT);
	if (epoll_wait(m->set, &event, 1, -1) != 1)
		die("epoll_wait");
	note(m, LINES_OTHER);
}

static void get(struct member *m, char *buffer, size_t bytes)
{
	ssize_t n;

	for (size_t done = 0; done < bytes; done += n) {
		if (mode != BLOCK)
			await_readable(m);
		note(m, LINES_RECEIVE);
		n = recv(m->fd, buffer + done, bytes - done, 0);
		note(m, LINES_OTHER);
		if (n <= 0)
			die("recv");
	}
}

static void round_trip(struct member *m, char *buffer)
{
	if (is_server) {
		get(m, buffer, SMALL);
		put(m, buffer, SMALL);
	} else {
		put(m, buffer, SMALL);
		get(m, buffer, SMALL);
	}
}

/* Until both directions have left TCP. The first byte of a message says whether it was the last. */
static void warm_up(struct member *m, char *buffer)
{
	uint64_t before = 0, after;
	int calm = 0;

	do {
		memset(buffer, calm == CALM, SMALL);
		round_trip(m, buffer);
		after = carried(m->fd);
		calm = after == before ? calm + 1 : 0;
		before = after;
	} while (is_server ? !buffer[0] : calm <= CALM);
}

static void work(struct member *m, char *buffer)
{
	for (uint32_t i = 0; i < count; i++) {
		if (mode != STREAM)
			round_trip(m, buffer);
		else if (is_server)
			get(m, buffer, LARGE);
		else
			put(m, buffer, LARGE);
	}
}

/* All threads are here, and one of them runs `action`. */
static void together(void (*action)(void))
{
	if (pthread_barrier_wait(&gate) == PTHREAD_BARRIER_SERIAL_THREAD)
		action();
	pthread_barrier_wait(&gate);
}

static void *run(void *argument)
{
	struct member *m = argument;
	struct epoll_event event = { .events = EPOLLIN };
	char buffer[LARGE];

	if (epoll_ctl(m->set, EPOLL_CTL_ADD, m->fd, &event))
		die("epoll");
	warm_up(m, buffer);
	together(begin);
	round_trip(m, buffer);	/* the peer's threads have begun */
	m->noted = true;
	work(m, buffer);
	m->noted = false;
	if (mode == STREAM)
		round_trip(m, buffer);
	together(end);
	return NULL;
}

static int tell_mode(int fd, const char *word)
{
	uint8_t m = 0;

	while (m < MODES && strcmp(words[m], word))
		m++;
	return m < MODES && write(fd, &m, 1) == 1 ? m : -1;
}

static int hear_mode(int fd)
{
	uint8_t m;

	return read(fd, &m, 1) == 1 && m < MODES ? m : -1;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 0, door = -1, one = 1, told = 0;

	is_server = argc == 5 && !strcmp(argv[1], "server");
	if ((argc != 7 && !is_server) || threads < 1 || threads > THREADS) {
		fprintf(stderr, "usage: crowd server THREADS COUNT FILE\n"
				"       crowd client THREADS COUNT FILE PORT block|epoll|stream\n");
		return 2;
	}
	count = (uint32_t)atoi(argv[3]);
	file = argv[4];
	find_lines();
	pthread_barrier_init(&gate, NULL, threads);
	for (int i = 0; i < threads; i++) {	/* before there is a connection, as a server's workers have theirs */
		members[i].set = epoll_create1(0);
		if (members[i].set < 0)
			die("epoll_create1");
	}
	if (is_server)
		door = listener(loopback(0), 0, THREADS);
	for (int i = 0; i < threads; i++) {
		struct member *m = &members[i];

		m->fd = is_server ? accept(door, NULL, NULL) : dial(loopback(atoi(argv[5])));
		if (m->fd < 0)
			die("accept");
		setsockopt(m->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		told = is_server ? hear_mode(m->fd) : tell_mode(m->fd, argv[6]);
		if (told < 0)
			die("mode");
	}
	mode = (enum mode)told;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&members[i].thread, NULL, run, &members[i]))
			die("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(members[i].thread, NULL);
	finish(file);
	return 0;
}
