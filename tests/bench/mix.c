/* SPDX-License-Identifier: MIT */
/*
 * Gets and sets of redis or memcached in a given proportion, in a closed loop, as YCSB has them: keys by Zipf's law
 * (0.99). Knows nothing of Shunt.
 *
 *     mix redis|memcached PORT CONNECTIONS KEYS BYTES SECONDS GETS...
 *
 * Sets all keys, then prints a line for each GETS: gets in percent, operations a second, and the latency in us. The
 * latency is the mean, p50, p99 and p99.9. Every value that comes is compared with the one that was set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "tests/plain.h"

#define CONNECTIONS_MAX 1024
#define BYTES_MAX (1 << 20)
#define HEAD 128 /* more than a request or a reply has beside the value */
#define SAMPLES (1u << 22) /* latencies that are kept */
#define THETA 0.99

struct connection {
	int fd;
	bool gets; /* the request that is out */
	uint32_t key;
	size_t got, wanted; /* bytes of the reply; wanted: 0 until its first line is whole */
	double sent;
	char *reply;
};

static struct connection connections[CONNECTIONS_MAX];
static uint32_t connection_count, keys, bytes;
static bool memcached;
static char *request, *value;
static double *shares; /* up to each rank, of all requests */
static float *samples;
static uint64_t sample_count, operations, seed = 88172645463325252u;
static double waited;
static int set;

static _Noreturn void wrong(const char *what)
{
	fprintf(stderr, "mix: %s\n", what);
	exit(1);
}

static uint64_t random_word(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static double random_share(void)
{
	return (double)(random_word() >> 11) / 9007199254740992.0;
}

/* --- keys --- */

static void shares_make(void)
{
	double sum = 0;

	shares = calloc(keys, sizeof(*shares));
	if (!shares)
		die("calloc");
	for (uint32_t rank = 0; rank < keys; rank++)
		shares[rank] = sum += 1 / pow(rank + 1, THETA);
	for (uint32_t rank = 0; rank < keys; rank++)
		shares[rank] /= sum;
}

/* Frequent keys are not neighbours. */
static uint32_t any_key(void)
{
	double share = random_share();
	uint32_t low = 0, high = keys - 1;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (shares[middle] < share)
			low = middle + 1;
		else
			high = middle;
	}
	return (uint32_t)(low * 2654435761u % keys);
}

/* The value of a key begins with its number. */
static void value_make(uint32_t key)
{
	char number[16];

	snprintf(number, sizeof(number), "%08x", key);
	memcpy(value, number, 8);
}

/* --- requests and replies --- */

static void ask(struct connection *c, bool gets, uint32_t key)
{
	size_t length;

	if (gets && memcached)
		length = (size_t)sprintf(request, "get k%08x\r\n", key);
	else if (gets)
		length = (size_t)sprintf(request, "*2\r\n$3\r\nGET\r\n$9\r\nk%08x\r\n", key);
	else if (memcached)
		length = (size_t)sprintf(request, "set k%08x 0 0 %u\r\n", key, bytes);
	else
		length = (size_t)sprintf(request, "*3\r\n$3\r\nSET\r\n$9\r\nk%08x\r\n$%u\r\n", key,
					 bytes);
	if (!gets) {
		value_make(key);
		memcpy(request + length, value, bytes);
		memcpy(request + length + bytes, "\r\n", 2);
		length += bytes + 2;
	}
	c->gets = gets;
	c->key = key;
	c->got = c->wanted = 0;
	c->sent = now();
	if (send(c->fd, request, length, MSG_NOSIGNAL) != (ssize_t)length)
		die("send");
}

/* How long the reply is, by its first line. */
static size_t length_of(const struct connection *c, size_t line)
{
	char head[HEAD], form[HEAD];

	if (!c->gets) {
		if (strncmp(c->reply, memcached ? "STORED\r\n" : "+OK\r\n", line))
			wrong("a value was not taken");
		return line;
	}
	if (memcached)
		snprintf(form, sizeof(form), "VALUE k%08x 0 %u\r\n", c->key, bytes);
	else
		snprintf(form, sizeof(form), "$%u\r\n", bytes);
	snprintf(head, sizeof(head), "%.*s", (int)line, c->reply);
	if (strcmp(head, form))
		wrong("a key that was set is missing");
	return line + bytes + 2 + (memcached ? 5 : 0);
}

/* False: not whole yet. */
static bool hear(struct connection *c)
{
	ssize_t n = recv(c->fd, c->reply + c->got, HEAD + bytes - c->got, MSG_DONTWAIT);
	char *end, number[16];

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0)
		die("recv");
	c->got += (size_t)n;
	if (!c->wanted) {
		end = memmem(c->reply, c->got, "\r\n", 2);
		if (!end)
			return false;
		c->wanted = length_of(c, (size_t)(end + 2 - c->reply));
	}
	if (c->got < c->wanted)
		return false;
	if (c->got > c->wanted)
		wrong("more than the reply has come");
	if (c->gets) {
		snprintf(number, sizeof(number), "%08x", c->key);
		end = c->reply + c->wanted - 2 - bytes - (memcached ? 5 : 0);
		if (memcmp(end, number, 8) || memcmp(end + 8, value + 8, bytes - 8))
			wrong("a value is not the one that was set");
	}
	return true;
}

static void count(const struct connection *c)
{
	double took = now() - c->sent;

	samples[sample_count++ % SAMPLES] = (float)took;
	waited += took;
	operations++;
}

/* --- the loop --- */

/* Each whole reply is followed by another request, until next() has none. */
static void run(bool (*next)(struct connection *c))
{
	struct epoll_event events[64];
	uint32_t out = 0;

	for (uint32_t i = 0; i < connection_count; i++)
		out += next(&connections[i]);
	while (out) {
		int n = epoll_wait(set, events, 64, -1);

		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (int i = 0; i < n; i++) {
			struct connection *c = &connections[events[i].data.u32];

			if (!hear(c))
				continue;
			count(c);
			out -= !next(c);
		}
	}
}

static uint32_t to_set;

static bool next_set(struct connection *c)
{
	if (to_set == keys)
		return false;
	ask(c, false, to_set++);
	return true;
}

static double until, gets_share;

static bool next_of_mix(struct connection *c)
{
	if (now() >= until)
		return false;
	ask(c, random_share() < gets_share, any_key());
	return true;
}

static int by_time(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void measure(unsigned int gets, double seconds)
{
	double start = now(), took;
	size_t kept;

	sample_count = operations = 0;
	waited = 0;
	gets_share = gets / 100.0;
	until = start + seconds;
	run(next_of_mix);
	took = now() - start;
	kept = sample_count < SAMPLES ? sample_count : SAMPLES;
	qsort(samples, kept, sizeof(*samples), by_time);
	printf("%u %.0f %.2f %.2f %.2f %.2f\n", gets, (double)operations / took,
	       1e6 * waited / (double)operations, 1e6 * samples[kept / 2],
	       1e6 * samples[kept * 99 / 100], 1e6 * samples[kept * 999 / 1000]);
}

static void dial_all(int port)
{
	int on = 1;

	set = epoll_create1(EPOLL_CLOEXEC);
	if (set < 0)
		die("epoll_create1");
	for (uint32_t i = 0; i < connection_count; i++) {
		struct connection *c = &connections[i];
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		c->fd = dial(loopback(port));
		setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		c->reply = malloc(HEAD + bytes);
		if (!c->reply || epoll_ctl(set, EPOLL_CTL_ADD, c->fd, &event))
			die("epoll_ctl");
	}
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	unsigned long n = strtoul(text, NULL, 0);

	if (n < least || n > most) {
		fprintf(stderr, "mix: not a number from %u to %u: %s\n", least, most, text);
		exit(2);
	}
	return (uint32_t)n;
}

int main(int argc, char **argv)
{
	double seconds;

	if (argc < 8 || (strcmp(argv[1], "redis") && strcmp(argv[1], "memcached"))) {
		fprintf(stderr,
			"usage: mix redis|memcached PORT CONNECTIONS KEYS BYTES SECONDS GETS...\n");
		return 2;
	}
	memcached = !strcmp(argv[1], "memcached");
	connection_count = number(argv[3], 1, CONNECTIONS_MAX);
	keys = number(argv[4], 1, 100000000);
	bytes = number(argv[5], 8, BYTES_MAX);
	seconds = strtod(argv[6], NULL);
	request = malloc(HEAD + bytes);
	value = malloc(bytes);
	samples = calloc(SAMPLES, sizeof(*samples));
	if (!request || !value || !samples)
		die("malloc");
	memset(value, 'v', bytes);
	shares_make();
	dial_all((int)number(argv[2], 1, 65535));
	run(next_set);
	for (int i = 7; i < argc; i++)
		measure(number(argv[i], 0, 100), seconds);
	return 0;
}
