/* SPDX-License-Identifier: MIT */
/*
 * copy server				serves one client program, prints "port N"
 * copy client PORT SIZE COUNT [touch] [fresh]
 *
 * Messages of SIZE bytes to and fro; prints nanoseconds for a round trip.
 * - touch: each end writes a message before it sends it, and reads what it has received.
 * - fresh: each message lies at another place of 64 MiB, and is received to another; else both are
 *   where the message before was.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include "tests/plain.h"

#define POOL (64u << 20)	/* more than the caches of a core have */
#define WARM_SECONDS 0.1

struct plan {	/* the client tells the server first */
	uint64_t size, count;
	uint8_t touch, fresh, pad[6];
};

struct end {
	struct plan plan;
	int fd;
	char *out, *in;	/* POOL bytes each */
	uint64_t out_at, in_at;
	uint64_t sum;	/* of what was read, so that it is */
};

static char *next_place(const struct plan *plan, char *pool, uint64_t *at)
{
	char *place = pool + *at;

	if (plan->fresh)
		*at = *at + 2 * plan->size <= POOL ? *at + plan->size : 0;
	return place;
}

static void put(struct end *end)
{
	char *from = next_place(&end->plan, end->out, &end->out_at);

	for (uint64_t i = 0; end->plan.touch && i < end->plan.size; i += 8)
		from[i]++;
	for (uint64_t done = 0; done < end->plan.size;) {
		ssize_t sent = send(end->fd, from + done, end->plan.size - done, 0);

		if (sent < 0)
			die("send");
		done += (uint64_t)sent;
	}
}

static void get(struct end *end)
{
	char *to = next_place(&end->plan, end->in, &end->in_at);

	for (uint64_t done = 0; done < end->plan.size;) {
		ssize_t got = recv(end->fd, to + done, end->plan.size - done, 0);

		if (got <= 0)
			die("recv");
		done += (uint64_t)got;
	}
	for (uint64_t i = 0; end->plan.touch && i < end->plan.size; i += 8)
		end->sum += (uint8_t)to[i];
}

static char *make_pool(void)
{
	char *pool = malloc(POOL);

	if (!pool)
		die("malloc");
	return memset(pool, 1, POOL);
}

static void prepare(struct end *end)
{
	int one = 1;

	setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	end->out = make_pool();
	end->in = make_pool();
}

static int server(struct sockaddr_in addr)
{
	struct end end = { .fd = accept(listener(addr, 0, 1), NULL, NULL) };
	char warm;

	if (end.fd < 0 ||
	    recv(end.fd, &end.plan, sizeof(end.plan), MSG_WAITALL) != sizeof(end.plan))
		die("accept");
	prepare(&end);
	do
		if (recv(end.fd, &warm, 1, 0) != 1 || send(end.fd, &warm, 1, 0) != 1)
			die("warm-up");
	while (warm != 'd');
	for (uint64_t i = 0; i < end.plan.count; i++) {
		get(&end);
		put(&end);
	}
	recv(end.fd, &warm, 1, 0);
	return end.sum == 1;	/* never */
}

static int client(struct sockaddr_in addr, const struct plan *plan)
{
	struct end end = { .plan = *plan, .fd = dial(addr) };
	double start = now();
	char warm;

	if (send(end.fd, plan, sizeof(*plan), 0) != sizeof(*plan))
		die("send");
	prepare(&end);
	do {
		warm = now() < start + WARM_SECONDS ? 'w' : 'd';
		if (send(end.fd, &warm, 1, 0) != 1 || recv(end.fd, &warm, 1, 0) != 1)
			die("warm-up");
	} while (warm != 'd');
	for (uint64_t i = 0; i < plan->count; i++) {
		if (i == plan->count / 4)	/* rings have grown by now */
			start = now();
		put(&end);
		get(&end);
	}
	printf("%.0f\n", (now() - start) / (double)(plan->count - plan->count / 4) * 1e9);
	return end.sum == 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct plan plan = { 0 };
	int wrong = argc < 5;

	if (argc == 2 && !strcmp(argv[1], "server"))
		return server(addr);
	if (!wrong) {
		addr.sin_port = htons((uint16_t)atoi(argv[2]));
		plan.size = strtoull(argv[3], NULL, 10);
		plan.count = strtoull(argv[4], NULL, 10);
	}
	for (int i = 5; i < argc; i++) {
		plan.touch |= !strcmp(argv[i], "touch");
		plan.fresh |= !strcmp(argv[i], "fresh");
		wrong |= strcmp(argv[i], "touch") && strcmp(argv[i], "fresh");
	}
	if (wrong || strcmp(argv[1], "client") || !plan.size || plan.size > POOL / 2 ||
	    !plan.count) {
		fprintf(stderr, "usage: copy server | client PORT SIZE COUNT [touch] [fresh]\n");
		return 2;
	}
	return client(addr, &plan);
}
