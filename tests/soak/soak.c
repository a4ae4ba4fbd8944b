/* SPDX-License-Identifier: MIT */
/*
 * soak: plain programs that keep connections coming and going for as long as they are told, and check every byte.
 *
 *	soak server				echoes; prints "port N"; until it is told to end
 *	soak client PORT SECONDS CONNECTIONS PACE SEED
 *						CONNECTIONS at any time, at most PACE exchanges a second;
 *						prints what was done, exits with 1 if a byte or an end was wrong
 *
 * A connection has some exchanges: a message of up to 64 KiB, and its echo. Then it ends: closed, shut down and read to
 * the end, or reset; and another takes its place. A quarter of them are mostly idle.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE 65536
#define EVENTS 64
#define THREADS 3	/* epoll, poll, blocking */
#define TICK_MS 10

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "soak: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* --- the server --- */

struct guest {
	int fd;
	int ended;		/* it sends no more */
	size_t from, to;	/* of what is still to be echoed */
	char bytes[MESSAGE];
};

static void watch(int set, int op, int fd, uint32_t events, void *of)
{
	struct epoll_event event = { .events = events, .data.ptr = of };

	if (epoll_ctl(set, op, fd, &event))
		die("epoll_ctl");
}

static void dismiss(struct guest *guest)
{
	close(guest->fd);
	free(guest);
}

/* Reads only what has been echoed before: the rest waits in the socket. */
static void serve(int set, struct guest *guest)
{
	ssize_t got;

	for (;;) {
		while (guest->from < guest->to) {
			got = send(guest->fd, guest->bytes + guest->from, guest->to - guest->from, MSG_NOSIGNAL);
			if (got < 0 && errno == EAGAIN) {
				watch(set, EPOLL_CTL_MOD, guest->fd, EPOLLOUT, guest);
				return;
			}
			if (got < 0) {
				dismiss(guest);
				return;
			}
			guest->from += (size_t)got;
		}
		got = recv(guest->fd, guest->bytes, MESSAGE, 0);
		if (got < 0 && errno == EAGAIN) {
			watch(set, EPOLL_CTL_MOD, guest->fd, EPOLLIN, guest);
			return;
		}
		if (got <= 0) {
			dismiss(guest);
			return;
		}
		guest->from = 0;
		guest->to = (size_t)got;
	}
}

static void welcome(int set, int listener)
{
	int fd = accept(listener, NULL, NULL);
	struct guest *guest = fd < 0 ? NULL : calloc(1, sizeof(*guest));

	if (!guest || fcntl(fd, F_SETFL, O_NONBLOCK))
		die("accept");
	guest->fd = fd;
	watch(set, EPOLL_CTL_ADD, fd, EPOLLIN, guest);
}

static _Noreturn void server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), set = epoll_create1(0);
	struct epoll_event events[EVENTS];

	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1024) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen");
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	watch(set, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	for (;;) {
		int n = epoll_wait(set, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr)
				serve(set, events[i].data.ptr);
			else
				welcome(set, listener);
		}
	}
}

/* --- the client's connections --- */

enum end { CLOSED, SHUT, RESET, ENDS };

struct talk {
	int fd;			/* -1: to be opened */
	enum end end;
	int ending;		/* shut down: the end is to be read */
	int left;		/* exchanges */
	int lazy;
	double wake;		/* the next exchange begins then */
	uint64_t key, offset;	/* of the first byte of this message */
	size_t bytes, sent, echoed;
};

struct crew {			/* one thread and its connections */
	int style;
	int set;		/* of the epoll style */
	struct talk *talks;
	struct pollfd *polls;
	int count;
	uint64_t random;
	double until, tokens, refilled, pace;
	uint64_t opened, exchanges, bytes;
	pthread_t thread;
};

static struct sockaddr_in there = { .sin_family = AF_INET };

static unsigned char byte_at(const struct talk *talk, uint64_t offset)
{
	return (unsigned char)((offset + talk->key) * 0x9e3779b97f4a7c15u >> 40);
}

static _Noreturn void wrong(const struct talk *talk, const char *what, uint64_t offset)
{
	fprintf(stderr, "soak: %s at offset %llu of a connection, descriptor %d: %s\n", what, (unsigned long long)offset,
		talk->fd, strerror(errno));
	exit(1);
}

static void open_talk(struct crew *crew, struct talk *talk)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&there, sizeof(there)))
		die("connect");
	*talk = (struct talk) { .fd = fd, .key = next_random(&crew->random) };
	talk->end = (enum end)(next_random(&crew->random) % ENDS);
	talk->left = 1 + (int)(next_random(&crew->random) % 200);
	talk->lazy = next_random(&crew->random) % 4 == 0;
	if (crew->style != 2 && fcntl(fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
	if (crew->style == 0)
		watch(crew->set, EPOLL_CTL_ADD, fd, EPOLLIN, talk);
	crew->opened++;
}

static void close_talk(struct talk *talk)
{
	struct linger none = { .l_onoff = 1 };

	if (talk->end == RESET)
		setsockopt(talk->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(talk->fd);
	talk->fd = -1;
}

static void fill(const struct talk *talk, unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = byte_at(talk, talk->offset + talk->sent + i);
}

/* 1: goes on; 0: would block. */
static int send_more(struct talk *talk)
{
	unsigned char bytes[MESSAGE];
	size_t count = talk->bytes - talk->sent;
	ssize_t sent;

	fill(talk, bytes, count);
	sent = send(talk->fd, bytes, count, MSG_NOSIGNAL);
	if (sent < 0 && errno == EAGAIN)
		return 0;
	if (sent < 0)
		wrong(talk, "send failed", talk->offset + talk->sent);
	talk->sent += (size_t)sent;
	return 1;
}

static int receive_more(struct talk *talk)
{
	unsigned char bytes[MESSAGE];
	ssize_t got = recv(talk->fd, bytes, sizeof(bytes), 0);

	if (got < 0 && errno == EAGAIN)
		return 0;
	if (got == 0 && talk->ending)
		return 1;
	if (got <= 0 || (size_t)got > talk->sent - talk->echoed)
		wrong(talk, got < 0 ? "receive failed" : got ? "bytes that nobody sent" : "end of stream", talk->offset + talk->echoed);
	for (ssize_t i = 0; i < got; i++, talk->echoed++)
		if (bytes[i] != byte_at(talk, talk->offset + talk->echoed))
			wrong(talk, "wrong byte", talk->offset + talk->echoed);
	return 1;
}

/* The next exchange, or the end. */
static void turn_over(struct crew *crew, struct talk *talk)
{
	crew->exchanges += talk->bytes > 0;
	crew->bytes += talk->bytes;
	talk->offset += talk->bytes;
	talk->bytes = talk->sent = talk->echoed = 0;
	if (talk->left-- == 0) {
		if (talk->end != SHUT) {
			close_talk(talk);
			return;
		}
		talk->ending = 1;
		if (shutdown(talk->fd, SHUT_WR))
			wrong(talk, "shutdown failed", talk->offset);
		return;
	}
	talk->wake = now() + (talk->lazy ? (double)(next_random(&crew->random) % 5000) / 1000 : 0);
}

static int may_begin(struct crew *crew, struct talk *talk, double at)
{
	if (talk->wake > at || crew->tokens < 1)
		return 0;
	crew->tokens--;
	talk->bytes = 1 + (next_random(&crew->random) % MESSAGE >> next_random(&crew->random) % 16);
	return 1;
}

/* As far as it goes without waiting; the blocking style: one exchange. */
static void go_on(struct crew *crew, struct talk *talk, double at)
{
	if (talk->fd < 0)
		open_talk(crew, talk);
	if (!talk->bytes && !talk->ending && !may_begin(crew, talk, at))
		return;
	while (talk->sent < talk->bytes || talk->ending || talk->echoed < talk->bytes) {
		if (talk->sent < talk->bytes && send_more(talk))
			continue;
		if (!receive_more(talk))
			return;
		if (talk->ending) {
			close_talk(talk);
			return;
		}
	}
	turn_over(crew, talk);
}

/* --- its threads --- */

static void wait_epoll(struct crew *crew, double at)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(crew->set, events, EVENTS, TICK_MS);

	for (int i = 0; i < n; i++)
		go_on(crew, events[i].data.ptr, at);
}

static void wait_poll(struct crew *crew)
{
	for (int i = 0; i < crew->count; i++)
		crew->polls[i] = (struct pollfd) { .fd = crew->talks[i].fd, .events = POLLIN };
	poll(crew->polls, (nfds_t)crew->count, TICK_MS);
}

static void refill(struct crew *crew, double at)
{
	crew->tokens += (at - crew->refilled) * crew->pace;
	if (crew->tokens > crew->pace)
		crew->tokens = crew->pace;
	crew->refilled = at;
}

static void *run(void *arg)
{
	struct crew *crew = arg;
	double at;

	while ((at = now()) < crew->until) {
		refill(crew, at);
		for (int i = 0; i < crew->count; i++)
			go_on(crew, &crew->talks[i], at);
		if (crew->style == 0)
			wait_epoll(crew, at);
		else if (crew->style == 1 || crew->tokens < 1)
			wait_poll(crew);
	}
	for (int i = 0; i < crew->count; i++)
		if (crew->talks[i].fd >= 0)
			close(crew->talks[i].fd);
	return NULL;
}

static void client(double seconds, int connections, double pace, uint64_t seed)
{
	struct crew crews[THREADS];
	uint64_t opened = 0, exchanges = 0, bytes = 0;

	for (int i = 0; i < THREADS; i++) {
		struct crew *crew = &crews[i];

		*crew = (struct crew) { .style = i, .random = seed + (uint64_t)i, .refilled = now(), .until = now() + seconds,
					.pace = pace / THREADS, .count = connections / THREADS + (i < connections % THREADS),
					.set = epoll_create1(0) };
		crew->talks = calloc((size_t)crew->count + 1, sizeof(*crew->talks));
		crew->polls = calloc((size_t)crew->count + 1, sizeof(*crew->polls));
		if (!crew->talks || !crew->polls || crew->set < 0)
			die("memory");
		for (int k = 0; k < crew->count; k++)
			crew->talks[k].fd = -1;
		if (pthread_create(&crew->thread, NULL, run, crew))
			die("thread");
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(crews[i].thread, NULL);
		opened += crews[i].opened;
		exchanges += crews[i].exchanges;
		bytes += crews[i].bytes;
		free(crews[i].talks);
		free(crews[i].polls);
	}
	printf("%llu connections, %llu exchanges, %llu bytes each way, every one right\n", (unsigned long long)opened,
	       (unsigned long long)exchanges, (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "server"))
		server();
	if (argc != 7 || strcmp(argv[1], "client")) {
		fprintf(stderr, "soak server | soak client PORT SECONDS CONNECTIONS PACE SEED\n");
		return 2;
	}
	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	there.sin_port = htons((uint16_t)atoi(argv[2]));
	client(atof(argv[3]), atoi(argv[4]), atof(argv[5]), strtoull(argv[6], NULL, 10));
	return 0;
}
