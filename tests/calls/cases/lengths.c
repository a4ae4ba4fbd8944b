/* SPDX-License-Identifier: MIT */
/* Lengths and numbers that are too large, negative, or nothing. */
#include "cases.h"

#include <limits.h>
#include <sys/epoll.h>

/* recv cuts what is asked for, read refuses it. */
static void too_much(struct end *e)
{
	static char buf[100];

	have(e, 10);
	TRY(e, read(e->fd, buf, (size_t)hidden(-1)));
	TRY(e, read(e->fd, buf, (size_t)SSIZE_MAX + hidden(1)));
	text(e, "recv of 2^31", buf, recv(e->fd, buf, (size_t)INT_MAX + hidden(1), MSG_PEEK));
	text(e, "read of 2^31", buf, read(e->fd, buf, (size_t)INT_MAX + hidden(1)));
	TRY(e, write(e->fd, buf, (size_t)hidden(-1)));
	meet(e);
}

static void vectors(struct end *e)
{
	static char buf[100];
	struct iovec v[3] = {{.iov_base = buf, .iov_len = 4}, {.iov_base = buf, .iov_len = SSIZE_MAX},
			     {.iov_base = buf, .iov_len = 1}};

	have(e, 10);
	v[1].iov_len = (size_t)hidden(-1);
	TRY(e, readv(e->fd, v, 2));
	TRY(e, writev(e->fd, v, 2));
	v[1].iov_len = SSIZE_MAX;
	text(e, "readv of nearly everything", buf, readv(e->fd, v, 3));
	TRY(e, readv(e->fd, v, hidden(INT_MIN)));
	TRY(e, readv(e->fd, v, hidden(0)));
	meet(e);
}

static void empty_pieces(struct end *e)
{
	static char buf[100];
	struct iovec v[4] = {{.iov_base = NULL, .iov_len = 0}, {.iov_base = buf, .iov_len = 3},
			     {.iov_base = NULL, .iov_len = 0}, {.iov_base = buf + 3, .iov_len = 90}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 1};

	have(e, 10);
	TRY(e, recvmsg(e->fd, &m, MSG_DONTWAIT));
	m.msg_iovlen = 0;
	TRY(e, recvmsg(e->fd, &m, MSG_DONTWAIT));
	TRY(e, sendmsg(e->fd, &m, 0));
	m.msg_iovlen = 3;
	text(e, "recvmsg", buf, recvmsg(e->fd, &m, 0));
	text(e, "readv", buf, readv(e->fd, v, 4));
	TRY(e, readv(e->fd, v, 1));
	meet(e);
}

/* recv of nothing: waits for something to be there, or for the end, and takes nothing. */
static void of_nothing(struct end *e)
{
	char c;

	have(e, 10);
	TRY(e, recv(e->fd, &c, 0, 0));
	TRY(e, recv(e->fd, &c, 0, MSG_PEEK));
	TRY(e, recv(e->fd, &c, 0, MSG_WAITALL));
	TRY(e, recv(e->fd, &c, 0, MSG_TRUNC));
	show(e, e->fd, 10, 0);
	TRY(e, recv(e->fd, &c, 0, MSG_DONTWAIT));
	meet(e);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, recv(e->fd, &c, 0, 0));
	TRY(e, recv(e->fd, &c, 0, MSG_DONTWAIT));
	TRY(e, read(e->fd, &c, 0));
}

static void of_nothing_peer(struct end *e)
{
	ten_peer(e);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* Sending nothing: allowed, until one may not send any more. */
static void send_nothing(struct end *e)
{
	struct iovec v = {.iov_base = "", .iov_len = 0};

	count_sigpipe(e);
	TRY(e, send(e->fd, "", 0, 0));
	TRY(e, writev(e->fd, &v, 1));
	TRY(e, send(e->fd, "", 0, MSG_DONTWAIT | MSG_MORE));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, send(e->fd, "", 0, 0));
	TRY(e, write(e->fd, "", 0));
	TRY(e, writev(e->fd, &v, 1));
	say(e, "%d SIGPIPE", sigpipes());
	meet(e);
}

static void only_the_end(struct end *e)
{
	meet(e);
	show(e, e->fd, 10, 0);
}

/* Numbers that are no descriptors, and descriptors that are no sockets. */
static void wrong_numbers(struct end *e)
{
	static const int closed[] = {-1, INT_MIN, INT_MAX, 19999};
	int file = MUST(e, open("/dev/null", O_RDWR | O_CLOEXEC)), p[2];
	struct epoll_event ev = {0};
	char c = 0;

	MUST(e, pipe2(p, O_CLOEXEC | O_NONBLOCK));
	for (int i = 0; i < 4; i++) {
		int fd = hidden(closed[i]);

		TRY(e, recv(fd, &c, 1, 0));
		TRY(e, send(fd, &c, 1, 0));
		TRY(e, shutdown(fd, SHUT_RD));
		TRY(e, epoll_wait(fd, &ev, 1, 0));
		TRY(e, dup(fd));
		TRY(e, fcntl(fd, F_GETFL));
		bits(e, "poll", polled(fd, POLLIN, 0));
	}
	TRY(e, recv(file, &c, 1, 0));
	TRY(e, send(file, &c, 1, 0));
	TRY(e, recv(p[0], &c, 1, 0));
	TRY(e, send(p[1], &c, 1, 0));
	TRY(e, shutdown(p[1], SHUT_WR));
	TRY(e, listen(p[0], 1));
	TRY(e, accept(file, NULL, NULL));
	TRY(e, getsockopt(file, SOL_SOCKET, SO_ERROR, &c, &(socklen_t){1}));
	close_both(p);
	close(file);
}

/* More than a socket holds: one non-blocking send takes a part. */
static void too_large(struct end *e)
{
	size_t len = 64 << 20;
	char *buf = calloc(1, len);
	ssize_t r = send(e->fd, buf, len, MSG_DONTWAIT);
	uint64_t sum = r;

	say(e, "a part: %d", r > 0 && r < (ssize_t)len);
	pass(e, &sum, sizeof(sum));
	free(buf);
	await(e);
	shutdown(e->fd, SHUT_WR);
}

static void too_large_peer(struct end *e)
{
	static char buf[1 << 16];
	uint64_t sum, n = 0;

	take(e, &sum, sizeof(sum));
	while (n < sum)
		n += MUST(e, recv(e->fd, buf, sizeof(buf), 0));
	say(e, "as many: %d", n == sum);
	show(e, e->fd, 10, MSG_DONTWAIT);
	tell(e);
	show(e, e->fd, 10, 0);
}

const struct test cases_lengths[] = {
	{"length_too_much", 0, too_much, ten_only_peer},
	{"length_vectors", 0, vectors, ten_only_peer},
	{"length_empty_pieces", 0, empty_pieces, ten_only_peer},
	{"length_of_nothing", 0, of_nothing, of_nothing_peer},
	{"length_send_nothing", 0, send_nothing, only_the_end},
	{"length_wrong_numbers", ALONE, wrong_numbers, NULL},
	{"length_too_large", 0, too_large, too_large_peer},
	{NULL, 0, NULL, NULL},
};
