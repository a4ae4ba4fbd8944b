/* SPDX-License-Identifier: MIT */
/*
 * transfer server [options]	prints "port N" and serves
 * transfer client PORT [options]
 *
 * -a ADDRESS (127.0.0.1) that the server has, IPv4 or IPv6  -p PORT of the server's choice
 *
 * -n BYTES (K, M, G)  -s SEED  -m blocking|poll|select|epoll-lt|epoll-et|epoll-oneshot
 * -c CONNECTIONS  --chunk-max BYTES  --one-way  --no-sendfile	the same for both ends, -m may differ
 * --until FILE	each end sends until its file is there, and no more than -n; both ends have one or none
 * TEST_WARM: milliseconds of other traffic on the connections before. TEST_LINK: how many it may last,
 * until none of it goes by TCP.
 * Standard output is the transcript; the speed, and the longest time in which nothing came that was
 * still to come, go to standard error.
 */
#include "transfer.h"
#include "tests/calls/carried.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

const struct options *opt;

static const char *const modes[] = {
	"blocking", "poll", "select", "epoll-lt", "epoll-et", "epoll-oneshot",
};

static uint64_t size(const char *s)
{
	char *end;
	uint64_t n = strtoull(s, &end, 10);

	switch (*end) {
	case 'G': n <<= 10;	/* fall through */
	case 'M': n <<= 10;	/* fall through */
	case 'K': n <<= 10;
	}
	return n;
}

static void usage(void)
{
	fprintf(stderr, "usage: transfer server|client PORT [-a ADDRESS] [-p PORT] [-n BYTES] [-s SEED] [-m MODE] "
			"[-c CONNECTIONS] [--chunk-max BYTES] [--one-way] [--no-sendfile] [--until FILE]\n");
	exit(2);
}

static enum mode mode_of(const char *name)
{
	for (int i = 0; i < MODES; i++)
		if (!strcmp(modes[i], name))
			return i;
	usage();
	return MODES;
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{"chunk-max", required_argument, NULL, 'x'},
		{"one-way", no_argument, NULL, 'w'},
		{"no-sendfile", no_argument, NULL, 'f'},
		{"until", required_argument, NULL, 'u'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "a:p:n:s:m:c:", longs, NULL)) != -1) {
		switch (c) {
		case 'a': o->address = optarg; break;
		case 'p': o->port = atoi(optarg); break;
		case 'n': o->bytes = size(optarg); break;
		case 's': o->seed = size(optarg); break;
		case 'm': o->mode = mode_of(optarg); break;
		case 'c': o->connections = atoi(optarg); break;
		case 'x': o->chunk_max = size(optarg); break;
		case 'w': o->one_way = 1; break;
		case 'f': o->no_sendfile = 1; break;
		case 'u': o->until = optarg; break;
		default: usage();
		}
	}
	if (optind >= argc)
		usage();
	o->server = !strcmp(argv[optind], "server");
	if (!o->server && optind + 1 >= argc)
		usage();
	if (!o->server)
		o->port = atoi(argv[optind + 1]);
	if (o->connections < 1 || !o->chunk_max)
		usage();
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void start_dir(struct dir *d, int index, int from_server, int sending)
{
	int active = !opt->one_way || !from_server;

	d->key = mix(opt->seed * 4 + index * 1000003ull + from_server);
	d->rng = mix(d->key + 17 + sending * 2);
	d->total = active ? opt->bytes : 0;
	d->buf = malloc(opt->chunk_max + 32);
	d->want = malloc(opt->chunk_max + 32);
	if (!d->buf || !d->want)
		die("transfer");
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address(union address *a)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET6, opt->address, &a->v6.sin6_addr) == 1) {
		a->v6.sin6_family = AF_INET6;
		a->v6.sin6_port = htons(opt->port);
		return sizeof(a->v6);
	}
	if (inet_pton(AF_INET, opt->address, &a->v4.sin_addr) != 1)
		usage();
	a->v4.sin_family = AF_INET;
	a->v4.sin_port = htons(opt->port);
	return sizeof(a->v4);
}

static int listener(void)
{
	union address a;
	socklen_t len = address(&a);
	int fd = socket(a.any.sa_family, SOCK_STREAM, 0), one = 1;

	if (fd >= 0 && opt->port)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, &a.any, len) || listen(fd, 100) || getsockname(fd, &a.any, &len))
		die("listen");
	printf("port %d\n", ntohs(a.v4.sin_port));	/* where v6 has it too */
	fflush(stdout);
	return fd;
}

static int dial(void)
{
	union address a;
	socklen_t len = address(&a);
	int fd = socket(a.any.sa_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, &a.any, len))
		die("connect");
	return fd;
}

/* Connections are accepted in the order in which the client makes them. */
static void open_all(struct conn *c)
{
	int l = opt->server ? listener() : -1;

	for (int i = 0; i < opt->connections; i++) {
		c[i].index = i;
		c[i].fd = opt->server ? accept(l, NULL, NULL) : dial();
		if (c[i].fd < 0)
			die("accept");
		start_dir(&c[i].tx, i, opt->server, 1);
		start_dir(&c[i].rx, i, !opt->server, 0);
	}
}

static char swap_byte(const struct conn *c, char b)
{
	if (opt->server && recv(c->fd, &b, 1, 0) != 1)
		die("recv");
	if (send(c->fd, &b, 1, 0) != 1)
		die("send");
	if (!opt->server && recv(c->fd, &b, 1, 0) != 1)
		die("recv");
	return b;
}

static uint64_t carried_of_all(const struct conn *c)
{
	uint64_t sum = 0;

	for (int i = 0; i < opt->connections; i++)
		sum += carried(c[i].fd);
	return sum;
}

/* Single bytes to and fro until the client has had enough; 'd' ends it. */
static void warm(const struct conn *c)
{
	const char *ms = getenv("TEST_WARM"), *link = getenv("TEST_LINK");
	double begun = now();
	uint64_t before = UINT64_MAX;
	char b;

	do {
		b = now() < begun + (ms ? atoi(ms) : 0) / 1e3 ||
		    (link && now() < begun + atoi(link) / 1e3 && before != carried_of_all(c)) ? 'w' : 'd';
		before = carried_of_all(c);
		for (int i = 0; i < opt->connections; i++)
			b = swap_byte(&c[i], b);
	} while (b != 'd');
}

static void report(const struct conn *c, double seconds)
{
	uint64_t moved = 0;
	double stall = 0;

	for (int i = 0; i < opt->connections; i++) {
		printf("connection %d: sent %llu sum %llx, received %llu sum %llx, ended twice\n", i,
		       (unsigned long long)c[i].tx.at, (unsigned long long)c[i].tx.sum,
		       (unsigned long long)c[i].rx.at, (unsigned long long)c[i].rx.sum);
		moved += c[i].tx.at + c[i].rx.at;
		if (c[i].rx.stall > stall)
			stall = c[i].rx.stall;
	}
	fprintf(stderr, "transfer %s: %.3f s, %.1f MB/s, longest stall %.3f s\n",
		opt->server ? "server" : "client", seconds, moved / seconds / 1e6, stall);
}

int main(int argc, char **argv)
{
	struct options o = {.address = "127.0.0.1", .bytes = 1 << 20, .seed = 1, .chunk_max = 4 << 20, .connections = 1};
	struct conn *c;
	double start;

	parse(&o, argc, argv);
	opt = &o;
	signal(SIGPIPE, SIG_IGN);
	alarm(getenv("TEST_LIMIT") ? atoi(getenv("TEST_LIMIT")) : 600);
	c = calloc(o.connections, sizeof(*c));
	open_all(c);
	warm(c);
	start = now();
	for (int i = 0; i < o.connections; i++)
		c[i].rx.last = start;
	if (o.mode == BLOCKING)
		run_threads(c, o.connections);
	else
		run_loop(c, o.connections);
	report(c, now() - start);
	for (int i = 0; i < o.connections; i++)
		if (close(c[i].fd))
			die("close");
	return 0;
}
