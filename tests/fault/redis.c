/* SPDX-License-Identifier: MIT */
/* A client of redis that knows what must be answered: keys of its own, pipelines of SET and GET, values it can make again. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include "table.h"

#define DEPTH 16
#define VALUE_MAX 20000

struct client {
	int fd;
	struct end *mine;
	uint64_t seed;
	char out[DEPTH * (VALUE_MAX + 200)];
	char in[DEPTH * (VALUE_MAX + 200)];
	char expected[DEPTH * (VALUE_MAX + 200)];
};

static size_t value_bytes(uint64_t seed, uint32_t key)
{
	return mix(seed + key) % (key % 5 ? 100 : VALUE_MAX);
}

static size_t put_value(char *to, uint64_t seed, uint32_t key)
{
	size_t bytes = value_bytes(seed, key), head = sprintf(to, "$%zu\r\n", bytes);

	for (size_t i = 0; i < bytes; i++)
		to[head + i] = mix(seed * 31 + key * 1000003ull + i / 8) >> i % 8 * 8;
	memcpy(to + head + bytes, "\r\n", 2);
	return head + bytes + 2;
}

static size_t put_command(char *to, uint64_t seed, uint32_t key, int set)
{
	char name[64];
	int length = sprintf(name, "%llx:%u", (unsigned long long)seed, key);
	size_t bytes = sprintf(to, "*%d\r\n$3\r\n%s\r\n$%d\r\n%s\r\n", set ? 3 : 2, set ? "SET" : "GET", length, name);

	return set ? bytes + put_value(to + bytes, seed, key) : bytes;
}

/* False: over, and told. */
static int exchange(struct client *c, size_t out, size_t expected)
{
	size_t sent = 0, got = 0;
	ssize_t done;

	while (sent < out) {
		done = send(c->fd, c->out + sent, out - sent, MSG_NOSIGNAL);
		if (done < 0) {
			table_tell(c->mine, BROKEN, errno);
			return 0;
		}
		sent += done;
		atomic_fetch_add(&c->mine->sent, done);
	}
	while (got < expected) {
		done = recv(c->fd, c->in + got, expected - got, 0);
		if (done <= 0) {
			table_tell(c->mine, done ? BROKEN : EARLY, done ? errno : 0);
			return 0;
		}
		got += done;
		atomic_fetch_add(&c->mine->got, done);
		if (memcmp(c->in, c->expected, got)) {
			table_tell(c->mine, WRONG, 0);
			return 0;
		}
	}
	return 1;
}

static int round_trip(struct client *c, uint32_t round)
{
	size_t out = 0, expected = 0;
	uint32_t depth = 1 + mix(c->seed + round * 7) % DEPTH;

	for (uint32_t i = 0; i < depth; i++) {
		uint32_t key = round * DEPTH + i / 2;

		out += put_command(c->out + out, c->seed, key, !(i & 1));
		if (i & 1)
			expected += put_value(c->expected + expected, c->seed, key);
		else
			expected += sprintf(c->expected + expected, "+OK\r\n");
	}
	return exchange(c, out, expected);
}

void redis_run(int port, uint64_t seed, uint32_t slot, uint32_t rounds)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };
	struct client *c = calloc(1, sizeof(*c));
	uint32_t round = 0;

	if (!c)
		_exit(3);
	c->mine = &table->slots[slot].client;
	c->seed = seed;
	atomic_store(&c->mine->pid, getpid());
	atomic_store(&c->mine->outcome, RUNNING);
	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 || connect(c->fd, (void *)&address, sizeof(address))) {
		table_tell(c->mine, BROKEN, errno);
	} else {
		while (round < rounds && round_trip(c, round))
			round++;
		if (round == rounds)
			table_tell(c->mine, COMPLETE, 0);
	}
	close(c->fd);
	free(c);
}
