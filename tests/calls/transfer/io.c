/* SPDX-License-Identifier: MIT */
/* The calls that move bytes, chosen at random, and the check of what arrives. */
#include "transfer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PIECES 8
#define FILE_MAX (64 << 10)

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t roll(struct dir *d)
{
	return mix(d->rng += 0x9e3779b97f4a7c15ull);
}

size_t chunk(struct dir *d, uint64_t left)
{
	int bits = 64 - __builtin_clzll(opt->chunk_max);
	uint64_t n = 1ull << roll(d) % bits;

	n += roll(d) % n;
	if (n > opt->chunk_max)
		n = opt->chunk_max;
	return n < left ? n : left;
}

void generate(struct dir *d, unsigned char *buf, uint64_t at, size_t len)
{
	uint64_t word = at / 8, out;
	size_t skip = at % 8, n = 0;

	out = mix(d->key + word * 0x9e3779b97f4a7c15ull) >> skip * 8;
	memcpy(buf, &out, 8);
	for (n = 8 - skip; n < len; n += 8) {
		out = mix(d->key + ++word * 0x9e3779b97f4a7c15ull);
		memcpy(buf + n, &out, 8);
	}
}

uint64_t sum_of(const unsigned char *buf, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += buf[i];
	return sum;
}

void fail(const struct conn *c, const char *what, uint64_t at)
{
	int err = errno;

	printf("connection %d: %s at offset %llu\n", c->index, what, (unsigned long long)at);
	fflush(stdout);
	fprintf(stderr, "transfer: %s: %s at %llu (%s)\n", opt->server ? "server" : "client", what,
		(unsigned long long)at, strerror(err));
	_exit(1);
}

/* Random pieces of one buffer, some of them empty. */
static int pieces(struct dir *d, struct iovec *v, unsigned char *buf, size_t len)
{
	int n = 0;

	while (n < PIECES - 1 && len) {
		size_t part = roll(d) % 4 ? roll(d) % (len + 1) : 0;

		v[n++] = (struct iovec){.iov_base = buf, .iov_len = part};
		buf += part;
		len -= part;
	}
	v[n++] = (struct iovec){.iov_base = buf, .iov_len = len};
	return n;
}

static void epoll_wait_for(int fd, unsigned events)
{
	struct epoll_event ev = {.events = events};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) || epoll_wait(ep, &ev, 1, -1) < 0)
		perror("epoll");
	close(ep);
}

static void select_wait_for(int fd, int write)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	if (select(fd + 1, write ? NULL : &set, write ? &set : NULL, NULL, NULL) < 0)
		perror("select");
}

void wait_for(int fd, int write, unsigned how)
{
	struct pollfd p = {.fd = fd, .events = write ? POLLOUT : POLLIN};

	switch (how % 4) {
	case 0:
		if (poll(&p, 1, -1) < 0)
			perror("poll");
		break;
	case 1:
		select_wait_for(fd, write);
		break;
	case 2:
		epoll_wait_for(fd, write ? EPOLLOUT : EPOLLIN);
		break;
	default:
		epoll_wait_for(fd, (write ? EPOLLOUT : EPOLLIN) | EPOLLET);
	}
}

/* DONTWAIT on a blocking socket: waiting for readiness is ours. */
static ssize_t send_waiting(struct conn *c, unsigned char *buf, size_t len)
{
	for (;;) {
		ssize_t r = send(c->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (r >= 0 || errno != EAGAIN || opt->mode != BLOCKING)
			return r;
		wait_for(c->fd, 1, roll(&c->tx));
	}
}

/* A new file each time: the kernel sends its pages themselves, possibly much later. */
static ssize_t send_from_file(struct conn *c, unsigned char *buf, size_t len)
{
	int file = memfd_create("chunk", MFD_CLOEXEC), err;
	off_t at = 0;
	ssize_t r;

	if (len > FILE_MAX)
		len = FILE_MAX;
	if (file < 0 || write(file, buf, len) != (ssize_t)len)
		fail(c, "no file to send", c->tx.at);
	r = sendfile(c->fd, file, &at, len);
	err = errno;
	close(file);
	errno = err;
	return r;
}

static ssize_t send_call(struct conn *c, unsigned char *buf, size_t len)
{
	struct iovec v[PIECES];
	struct msghdr m = {.msg_iov = v};

	switch (roll(&c->tx) % 8) {
	case 0:
		return write(c->fd, buf, len);
	case 1:
		return send(c->fd, buf, len, MSG_NOSIGNAL);
	case 2:
		return sendto(c->fd, buf, len, 0, NULL, 0);
	case 3:
		return writev(c->fd, v, pieces(&c->tx, v, buf, len));
	case 4:
		m.msg_iovlen = pieces(&c->tx, v, buf, len);
		return sendmsg(c->fd, &m, MSG_NOSIGNAL);
	case 5:
		return send_waiting(c, buf, len);
	case 6:
		if (!opt->no_sendfile)
			return send_from_file(c, buf, len);
		/* fall through */
	default:
		return send(c->fd, buf, len, len < c->tx.total - c->tx.at ? MSG_MORE : 0);
	}
}

int send_some(struct conn *c)
{
	struct dir *d = &c->tx;
	ssize_t r;

	if (!d->pending && opt->until && access(opt->until, F_OK) == 0)
		d->total = d->at;
	if (!d->pending && d->at < d->total) {
		d->pending = chunk(d, d->total - d->at);
		d->skip = 0;
		generate(d, d->buf, d->at, d->pending);
		d->sum += sum_of(d->buf, d->pending);
	}
	if (!d->pending) {
		if (shutdown(c->fd, SHUT_WR))
			fail(c, "shutdown failed", d->at);
		d->done = 1;
		return 1;
	}
	r = send_call(c, d->buf + d->skip, d->pending);
	if (r < 0 && errno == EAGAIN && opt->mode != BLOCKING)
		return 0;
	if (r <= 0)
		fail(c, "send failed", d->at);
	d->at += r;
	d->skip += r;
	d->pending -= r;
	return 1;
}

static ssize_t recv_waiting(struct conn *c, unsigned char *buf, size_t len)
{
	for (;;) {
		ssize_t r = recv(c->fd, buf, len, MSG_DONTWAIT);

		if (r >= 0 || errno != EAGAIN || opt->mode != BLOCKING)
			return r;
		wait_for(c->fd, 0, roll(&c->rx));
	}
}

/* Bytes that were peeked at must come again; peeking ahead is checked against the same bytes. */
static ssize_t peek_and_read(struct conn *c, unsigned char *buf, size_t len)
{
	struct dir *d = &c->rx;
	ssize_t r = recv(c->fd, buf, len, MSG_PEEK), got;

	if (r <= 0)
		return r;
	generate(d, d->want, d->at, r);
	if (memcmp(buf, d->want, r))
		fail(c, "a wrong byte was peeked at", d->at);
	got = read(c->fd, buf, r);
	if (got != r)
		fail(c, "less was read than was peeked at", d->at);
	return got;
}

static ssize_t recv_call(struct conn *c, unsigned char *buf, size_t len)
{
	struct iovec v[PIECES];
	struct msghdr m = {.msg_iov = v};

	switch (roll(&c->rx) % 8) {
	case 0:
		return read(c->fd, buf, len);
	case 1:
		return recv(c->fd, buf, len, 0);
	case 2:
		return recvfrom(c->fd, buf, len, 0, NULL, NULL);
	case 3:
		return readv(c->fd, v, pieces(&c->rx, v, buf, len));
	case 4:
		m.msg_iovlen = pieces(&c->rx, v, buf, len);
		return recvmsg(c->fd, &m, 0);
	case 5:
		return peek_and_read(c, buf, len);
	case 6:
		return recv(c->fd, buf, len, MSG_WAITALL);
	default:
		return recv_waiting(c, buf, len);
	}
}

static void wrong_byte(struct conn *c, size_t len)
{
	size_t i = 0;

	while (i < len && c->rx.buf[i] == c->rx.want[i])
		i++;
	fail(c, "wrong byte", c->rx.at + i);
}

static void came(struct dir *d)
{
	double t = now();

	if (t - d->last > d->stall)
		d->stall = t - d->last;
	d->last = t;
}

/* Past the last byte one more is asked for, so that the end of the stream is seen. */
int recv_some(struct conn *c)
{
	struct dir *d = &c->rx;
	ssize_t r = recv_call(c, d->buf, chunk(d, d->total - d->at + 1));

	if (r < 0 && errno == EAGAIN && opt->mode != BLOCKING)
		return 0;
	if (r < 0)
		fail(c, "receive failed", d->at);
	came(d);
	if (!r) {
		if (d->at < d->total && !opt->until)
			fail(c, "early end", d->at);
		if (recv(c->fd, d->buf, 1, 0) != 0)
			fail(c, "the end came only once", d->at);
		d->done = 1;
		return 1;
	}
	if (d->at + r > d->total)
		fail(c, "more than was sent", d->total);
	generate(d, d->want, d->at, r);
	if (memcmp(d->buf, d->want, r))
		wrong_byte(c, r);
	d->sum += sum_of(d->buf, r);
	d->at += r;
	return 1;
}
