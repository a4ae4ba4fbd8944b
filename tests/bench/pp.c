/* SPDX-License-Identifier: MIT */
/*
 * pp server				serves one client program, prints "port N"
 * pp client PORT rtt|rate|connect [-n COUNT] [-s BYTES] [-p PAIRS] [-m blocking|poll|epoll]
 * -a ADDRESS of the server, for both, 127.0.0.1 else  -P PORT of the server  -w MILLISECONDS before it begins, 300
 * -q: after 32 bytes to and fro it only waits meanwhile, so that nothing is counted beside the messages
 * -b BYTES: one more connection sends so many at once, again and again  -l: of rtt also the median and the 99th percentile
 *
 * - rtt: question and answer of so many bytes; prints nanoseconds for a round trip.
 * - rate: one way; prints messages a second, counted when the server has them all.
 * - connect: connections made and closed one after the other; prints nanoseconds for each.
 *
 * Each pair is a connection with a thread of its own at both ends; the mean of all is printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include "tests/plain.h"

#define MAX_PAIRS 64
#define BUFFER (1 << 20)
#define QUIET_AFTER 32	/* bytes: by then the connection has lasted, so it is on a link before the messages */

enum { RTT, RATE, CONNECT, BULK };
enum { BLOCKING, POLL, EPOLL };

static int warm_ms = 300, quiet;
static _Atomic bool over;	/* all pairs but that of -b have ended */

/* The client's first message to the server. */
struct plan {
	uint64_t count;
	uint32_t size;
	uint8_t kind, wait, pairs, pad;
};

struct pair {
	pthread_t thread;
	struct plan plan;
	int fd, ep;
	char *buf;
	double seconds;
	float *trips;	/* ns of each, with -l */
};

static pthread_barrier_t gate;
static struct sockaddr_in addr = {.sin_family = AF_INET};

/* Readiness first, as event loops do; the blocking mode waits in recv. */
static void wait_readable(struct pair *p)
{
	struct pollfd f = {.fd = p->fd, .events = POLLIN};
	struct epoll_event ev;

	if (p->plan.wait == POLL && poll(&f, 1, -1) < 0)
		die("poll");
	if (p->plan.wait == EPOLL && epoll_wait(p->ep, &ev, 1, -1) < 0)
		die("epoll_wait");
}

static size_t get(struct pair *p, size_t most)
{
	ssize_t r;

	do {
		wait_readable(p);
		r = recv(p->fd, p->buf, most, 0);
	} while (r < 0 && errno == EAGAIN);
	if (r < 0)
		die("recv");
	return r;
}

static void get_all(struct pair *p, uint64_t len)
{
	while (len) {
		size_t r = get(p, len < BUFFER ? len : BUFFER);

		if (!r) {
			fprintf(stderr, "pp: early end\n");
			exit(1);
		}
		len -= r;
	}
}

static void put_all(struct pair *p, size_t len)
{
	struct pollfd f = {.fd = p->fd, .events = POLLOUT};

	for (size_t n = 0; n < len;) {
		ssize_t r = send(p->fd, p->buf, len - n, 0);

		if (r < 0 && errno == EAGAIN) {
			if (poll(&f, 1, -1) < 0)
				die("poll");
			continue;
		}
		if (r < 0)
			die("send");
		n += r;
	}
}

static void prepare(struct pair *p)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int one = 1;

	p->buf = calloc(1, BUFFER);
	setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (p->plan.wait == BLOCKING)
		return;
	fcntl(p->fd, F_SETFL, fcntl(p->fd, F_GETFL) | O_NONBLOCK);
	p->ep = epoll_create1(EPOLL_CLOEXEC);
	if (p->ep < 0 || epoll_ctl(p->ep, EPOLL_CTL_ADD, p->fd, &ev))
		die("epoll");
}

static void wait_until(double until)
{
	double left = until - now();
	struct timespec t = {.tv_sec = left, .tv_nsec = (left - (long)left) * 1e9};

	if (left > 0)
		nanosleep(&t, NULL);
}

/* Single bytes to and fro; 'd' ends it. */
static void warm_up(struct pair *p)
{
	double until = now() + warm_ms / 1e3;
	int sent = 0;

	do {
		if (quiet && ++sent > QUIET_AFTER)
			wait_until(until);
		p->buf[0] = now() < until ? 'w' : 'd';
		put_all(p, 1);
		get_all(p, 1);
	} while (p->buf[0] != 'd');
}

static void send_messages(struct pair *p)
{
	for (uint64_t i = 0; i < p->plan.count; i++) {
		double start = p->trips ? now() : 0;

		put_all(p, p->plan.size);
		if (p->plan.kind == RTT)
			get_all(p, p->plan.size);
		if (p->trips)
			p->trips[i] = (float)((now() - start) * 1e9);
	}
	if (p->plan.kind == RATE)
		get_all(p, 1);
}

static void *client(void *arg)
{
	struct pair *p = arg;
	double start;

	if (send(p->fd, &p->plan, sizeof(p->plan), 0) != sizeof(p->plan))
		die("send");
	prepare(p);
	warm_up(p);
	pthread_barrier_wait(&gate);
	start = now();
	if (p->plan.kind != BULK)
		send_messages(p);
	else
		while (!over)
			put_all(p, p->plan.size);
	p->seconds = now() - start;
	close(p->fd);
	return NULL;
}

static void *serve(void *arg)
{
	struct pair *p = arg;

	prepare(p);
	do {
		get_all(p, 1);
		put_all(p, 1);
	} while (p->buf[0] != 'd');
	if (p->plan.kind == RATE) {
		get_all(p, p->plan.count * p->plan.size);
		put_all(p, 1);
	}
	for (uint64_t i = 0; p->plan.kind == RTT && i < p->plan.count; i++) {
		get_all(p, p->plan.size);
		put_all(p, p->plan.size);
	}
	while (get(p, BUFFER) && p->plan.kind == BULK)
		;
	close(p->fd);
	return NULL;
}

static int server(void)
{
	struct pair p[MAX_PAIRS] = {0};
	int l = listener(addr, 0, 512), pairs = 1;

	for (int i = 0; i < pairs; i++) {
		p[i].fd = accept(l, NULL, NULL);
		if (p[i].fd < 0)
			die("accept");
		while (recv(p[i].fd, &p[i].plan, sizeof(p[i].plan), MSG_WAITALL) == 0) {
			close(p[i].fd);	/* one of the connect mode */
			p[i].fd = accept(l, NULL, NULL);
		}
		if (p[i].plan.kind == CONNECT)
			return 0;
		pairs = p[i].plan.pairs;
		pthread_create(&p[i].thread, NULL, serve, &p[i]);
	}
	for (int i = 0; i < pairs; i++)
		pthread_join(p[i].thread, NULL);
	return 0;
}

static void connects(struct plan *plan)
{
	double spent = 0;
	int fd;

	for (uint64_t i = 0; i < plan->count; i++) {
		double start = now();

		fd = dial(addr);
		spent += now() - start;
		shutdown(fd, SHUT_WR);
		if (recv(fd, &(char){0}, 1, 0) != 0)
			die("recv");
		close(fd);
	}
	fd = dial(addr);
	if (send(fd, plan, sizeof(*plan), 0) < 0)
		die("send");
	printf("%.0f\n", spent / plan->count * 1e9);
}

static int by_length(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Of all pairs' trips. */
static void print_percentiles(const struct pair *p, int pairs)
{
	uint64_t count = p->plan.count, all = count * (uint64_t)pairs;
	float *trips = malloc(all * sizeof(*trips));

	for (int i = 0; i < pairs; i++)
		memcpy(trips + (uint64_t)i * count, p[i].trips, count * sizeof(*trips));
	qsort(trips, all, sizeof(*trips), by_length);
	printf(" %.0f %.0f", trips[all / 2], trips[all * 99 / 100]);
	free(trips);
}

static void begin(struct pair *p, const struct plan *plan)
{
	p->plan = *plan;
	p->fd = dial(addr);
	pthread_create(&p->thread, NULL, client, p);
}

/* bulk: bytes that -b sends at once, or 0. */
static void measure(const struct plan *wanted, uint32_t bulk, bool each)
{
	struct pair p[MAX_PAIRS] = {0};
	struct plan plans[2] = { *wanted, *wanted }, *plan = &plans[0];
	int pairs = wanted->pairs;
	double sum = 0;

	plans[0].pairs = plans[1].pairs = (uint8_t)(pairs + !!bulk);
	plans[1].kind = BULK;
	plans[1].size = bulk;
	pthread_barrier_init(&gate, NULL, plan->pairs);
	for (int i = 0; i < pairs; i++) {
		p[i].trips = each ? calloc(plan->count, sizeof(*p[i].trips)) : NULL;
		begin(&p[i], plan);
	}
	if (bulk)
		begin(&p[pairs], &plans[1]);
	for (int i = 0; i < pairs; i++) {
		pthread_join(p[i].thread, NULL);
		sum += plan->kind == RTT ? p[i].seconds / plan->count * 1e9 / pairs :
					   plan->count / p[i].seconds;
	}
	over = true;
	if (bulk)
		pthread_join(p[pairs].thread, NULL);
	printf("%.0f", sum);
	if (each)
		print_percentiles(p, pairs);
	putchar('\n');
}

static int word(const char *s, const char *a, const char *b, const char *c)
{
	return !strcmp(s, a) ? 0 : !strcmp(s, b) ? 1 : !strcmp(s, c) ? 2 : -1;
}

int main(int argc, char **argv)
{
	struct plan plan = {.size = 8, .pairs = 1};
	int c, kind = -1, wait = BLOCKING, wrong = 0, bulk = 0, each = 0;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while ((c = getopt(argc, argv, "a:b:ln:s:p:m:P:w:q")) != -1) {
		switch (c) {
		case 'a': wrong |= inet_pton(AF_INET, optarg, &addr.sin_addr) != 1; break;
		case 'b':
			bulk = atoi(optarg);
			break;
		case 'l':
			each = 1;
			break;
		case 'P': addr.sin_port = htons(atoi(optarg)); break;
		case 'n': plan.count = strtoull(optarg, NULL, 10); break;
		case 's': plan.size = atoi(optarg); break;
		case 'p': plan.pairs = atoi(optarg); break;
		case 'w': warm_ms = atoi(optarg); break;
		case 'q': quiet = 1; break;
		case 'm': wait = word(optarg, "blocking", "poll", "epoll"); break;
		default: return 2;
		}
	}
	if (!wrong && optind < argc && !strcmp(argv[optind], "server"))
		return server();
	if (optind + 2 < argc && !strcmp(argv[optind], "client"))
		kind = word(argv[optind + 2], "rtt", "rate", "connect");
	if (wrong || kind < 0 || wait < 0 || plan.pairs < 1 || plan.pairs > MAX_PAIRS - !!bulk ||
	    plan.size < 1 || plan.size > BUFFER || bulk < 0 || bulk > BUFFER ||
	    (each && kind != RTT)) {
		fprintf(stderr,
			"usage: pp server | client PORT rtt|rate|connect [-n COUNT] "
			"[-s BYTES] [-p PAIRS] [-m blocking|poll|epoll] [-a ADDRESS] [-P PORT] [-w MILLISECONDS] [-b BYTES] [-l]\n");
		return 2;
	}
	plan.kind = kind;
	plan.wait = wait;
	plan.count = plan.count ? plan.count : kind == CONNECT ? 2000 : 20000;
	addr.sin_port = htons(atoi(argv[optind + 1]));
	if (kind == CONNECT)
		connects(&plan);
	else
		measure(&plan, (uint32_t)bulk, each);
	return 0;
}
