/* SPDX-License-Identifier: MIT */
/* Sending and receiving in order: sizes, directions, amounts. */
#include "cases.h"

static void hello(struct end *e)
{
	TRY(e, send(e->fd, "hello", 5, 0));
	show(e, e->fd, 100, 0);
	TRY(e, write(e->fd, "more", 4));
	meet(e);
	TRY(e, close(e->fd));
}

static void hello_peer(struct end *e)
{
	show(e, e->fd, 5, MSG_WAITALL);
	TRY(e, send(e->fd, "world", 5, 0));
	show(e, e->fd, 4, MSG_WAITALL);
	meet(e);
	show(e, e->fd, 4, 0);
}

static void zero(struct end *e)
{
	char c = 0;

	TRY(e, send(e->fd, "", 0, 0));
	TRY(e, write(e->fd, "", 0));
	TRY(e, read(e->fd, &c, 0));	/* which does not wait, unlike a blocking recv of nothing */
	TRY(e, recv(e->fd, &c, 0, MSG_DONTWAIT));
	TRY(e, recv(e->fd, &c, 0, MSG_PEEK | MSG_DONTWAIT));
	TRY(e, recv(e->fd, &c, 1, MSG_DONTWAIT));
	have(e, 1);
	TRY(e, recv(e->fd, &c, 0, 0));
	show(e, e->fd, 10, 0);
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, send(e->fd, "", 0, MSG_NOSIGNAL));
}

static void zero_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "x");
	show(e, e->fd, 10, 0);
}

static void eagain(struct end *e)
{
	nonblock(e, e->fd, 1);
	TRY(e, recv(e->fd, &(char){0}, 1, 0));
	TRY(e, read(e->fd, &(char){0}, 1));
	have(e, 3);
	show(e, e->fd, 2, 0);
	show(e, e->fd, 2, 0);
	TRY(e, recv(e->fd, &(char){0}, 1, 0));
	nonblock(e, e->fd, 0);
	TRY(e, recv(e->fd, &(char){0}, 1, MSG_DONTWAIT));
	tell(e);
	show(e, e->fd, 2, 0);
	nonblock(e, e->fd, 1);
	TRY(e, recv(e->fd, &(char){0}, 1, 0));
}

static void eagain_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "abc");
	await(e);
	put(e, e->fd, "d");
}

/* Fill until EAGAIN, let the peer read all, go on. Only that the sums agree is written down. */
static void fill(struct end *e)
{
	unsigned char buf[10000];
	uint64_t sum = 0;
	ssize_t r;

	nonblock(e, e->fd, 1);
	do {	/* a buffer may have grown after the first refusal */
		pattern(buf, sizeof(buf), sum);
		r = send(e->fd, buf, sizeof(buf), 0);
		sum += r > 0 ? r : 0;
	} while (r > 0 || polled(e->fd, POLLOUT, 20));
	result(e, "send in the end", r);
	say(e, "something was sent: %d", sum > 0);
	bits(e, "poll", polled(e->fd, POLLOUT, 0));
	pass(e, &sum, sizeof(sum));
	bits(e, "poll", polled(e->fd, POLLOUT, -1));
	await(e);
	pattern(buf, 5000, sum);
	TRY(e, send(e->fd, buf, 5000, 0));
	TRY(e, shutdown(e->fd, SHUT_WR));
}

static void fill_peer(struct end *e)
{
	unsigned char buf[5000];
	uint64_t sum;

	take(e, &sum, sizeof(sum));
	check_pattern(e, e->fd, 0, sum, 5000);
	say(e, "all there");
	TRY(e, recv(e->fd, buf, 1, MSG_DONTWAIT));
	tell(e);
	recv_pattern(e, e->fd, sum, 5000, 700);
	drain(e, e->fd);
}

/* A short message that was sent with one call is received with one, wherever in a buffer it may lie. */
static void whole(struct end *e)
{
	static const int sizes[] = { 7, 60, 100 };
	char buf[100] = "";

	for (int i = 0; i < 3; i++) {
		int parts = 0;

		for (int n = 0; n < 2000; n++) {
			MUST(e, send(e->fd, buf, sizes[i], 0));
			for (ssize_t done = 0, r; done < sizes[i]; done += r, parts++) {
				r = recv(e->fd, buf, sizes[i] - done, 0);
				if (r <= 0)
					_exit(1);
			}
		}
		say(e, "2000 of %d bytes: in %d parts", sizes[i], parts);
	}
	finish(e, e->fd);
}

/* Many small sends, one large receive. */
static void merge(struct end *e)
{
	char c;

	for (c = 'a'; c < 'k'; c++)
		MUST(e, send(e->fd, &c, 1, 0));
	meet(e);
	meet(e);
}

static void merge_peer(struct end *e)
{
	have(e, 10);
	show(e, e->fd, 100, 0);
	meet(e);
}

static void split(struct end *e)
{
	offer(e, "abcdefghij");
}

static void split_peer(struct end *e)
{
	have(e, 10);
	show(e, e->fd, 3, 0);
	show(e, e->fd, 1, 0);
	show(e, e->fd, 4, MSG_WAITALL);
	show(e, e->fd, 100, 0);
	meet(e);
}

/* One blocking send of 8 MiB against a reader that takes its time: it returns whole. */
static void big(struct end *e)
{
	size_t len = 8 << 20;
	unsigned char *buf = malloc(len);

	pattern(buf, len, 0);
	TRY(e, send(e->fd, buf, len, 0));
	TRY(e, shutdown(e->fd, SHUT_WR));
	free(buf);
}

static void big_peer(struct end *e)
{
	for (int i = 0; i < 20; i++) {
		recv_pattern(e, e->fd, i * 1000, 1000, 77);
		usleep(1000);
	}
	recv_pattern(e, e->fd, 20000, (8 << 20) - 20000, 9999);
	drain(e, e->fd);
}

/* Less than the default buffers in both directions at once must not block either end. */
static void cross(struct end *e)
{
	unsigned char *buf = malloc(100000);

	pattern(buf, 100000, 0);
	TRY(e, send(e->fd, buf, 100000, 0));
	meet(e);
	recv_pattern(e, e->fd, 0, 100000, 100000);
	free(buf);
}

static void cross_often(struct end *e)
{
	for (int i = 0; i < 20; i++)
		cross(e);
}

static void sendall(struct job *j)
{
	send_pattern(j->e, j->fd, 0, 4 << 20, 33333);
}

/* A thread that sends and a thread that receives, on both sides. */
static void duplex(struct end *e)
{
	struct job j;

	job_start(e, &j, sendall, e->fd);
	recv_pattern(e, e->fd, 0, 4 << 20, 50000);
	job_join(e, &j);
}

static void toggled(struct end *e)
{
	send_pattern(e, e->fd, 0, 200000, 1000);
	meet(e);
}

static void toggled_peer(struct end *e)
{
	unsigned char buf[1500];
	size_t sum = 0;
	int eagain = 0;

	for (int i = 0; sum < 200000; i++) {
		ssize_t r;

		nonblock(e, e->fd, i & 1);
		r = recv(e->fd, buf, sizeof(buf), 0);
		if (r < 0 && errno == EAGAIN && i & 1) {
			eagain++;
			continue;
		}
		MUST(e, r);
		if (!r || mismatch(buf, r, sum) < (size_t)r) {
			say(e, "FAILED at %zu", sum);
			return;
		}
		sum += r;
	}
	say(e, "all there");
	meet(e);
}

static void corked(struct end *e)
{
	int on = 1, off = 0;

	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)));
	put(e, e->fd, "one ");
	put(e, e->fd, "two ");
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off)));
	TRY(e, send(e->fd, "three ", 6, MSG_MORE));
	TRY(e, send(e->fd, "four", 4, 0));
	meet(e);
}

static void corked_peer(struct end *e)
{
	show(e, e->fd, 18, MSG_WAITALL);
	meet(e);
}

/* Question and answer of growing sizes. */
static void rounds(struct end *e)
{
	for (size_t n = 1, at = 0; n < 300000; at += n, n = n * 3 + 1) {
		send_pattern(e, e->fd, at, n, 65536);
		recv_pattern(e, e->fd, at, n, 65536);
	}
}

static void rounds_peer(struct end *e)
{
	for (size_t n = 1, at = 0; n < 300000; at += n, n = n * 3 + 1) {
		recv_pattern(e, e->fd, at, n, 4096);
		send_pattern(e, e->fd, at, n, 7777);
	}
}

/*
 * Corked bytes do not arrive until the cork is pulled, or Nagle's rule is switched off. (With
 * MSG_MORE any segment of the peer's may push it.)
 */
static void held(struct end *e)
{
	int on = 1, off = 0;

	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)));
	TRY(e, send(e->fd, "corked ", 7, 0));
	tell(e);
	await(e);
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off)));
	await(e);
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on)));
	TRY(e, send(e->fd, "pushed ", 7, 0));
	tell(e);
	await(e);
	TRY(e, setsockopt(e->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	meet(e);
}

static void held_peer(struct end *e)
{
	struct pollfd p = {.fd = e->fd, .events = POLLIN};
	char buf[16];

	for (int i = 0; i < 2; i++) {
		await(e);
		TRY(e, poll(&p, 1, 50));
		tell(e);
		get(e, e->fd, buf, 7);
		say(e, "got \"%.7s\"", buf);
		if (!i)
			tell(e);
	}
	meet(e);
}

const struct test cases_stream[] = {
	{"stream_hello", 0, hello, hello_peer},
	{"stream_hello_v6", IPV6, hello, hello_peer},
	{"stream_hello_dual", DUAL, hello, hello_peer},
	{"stream_zero", 0, zero, zero_peer},
	{"stream_eagain", 0, eagain, eagain_peer},
	{"stream_fill", 0, fill, fill_peer},
	{"stream_whole", NOFLIP, whole, echo_peer},
	{"stream_merge", 0, merge, merge_peer},
	{"stream_split", 0, split, split_peer},
	{"stream_big", 0, big, big_peer},
	{"stream_cross", 0, cross, cross},
	{"stream_cross_often", 0, cross_often, cross_often},
	{"stream_duplex", 0, duplex, duplex},
	{"stream_toggled", 0, toggled, toggled_peer},
	{"stream_corked", 0, corked, corked_peer},
	{"stream_rounds", 0, rounds, rounds_peer},
	{"stream_held", 0, held, held_peer},
	{NULL, 0, NULL, NULL},
};
