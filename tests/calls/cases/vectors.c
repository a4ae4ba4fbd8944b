/* SPDX-License-Identifier: MIT */
/* readv, writev and their relatives; the multi-message calls. */
#include "cases.h"

#include <limits.h>

static void vectors(struct end *e)
{
	struct iovec v[6] = {piece("ab", 2), piece("", 0), piece("cde", 3), piece(NULL, 0),
			     piece("f", 1), piece("", 0)};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 6};

	TRY(e, writev(e->fd, v, 6));
	TRY(e, sendmsg(e->fd, &m, 0));
	TRY(e, writev(e->fd, v, 0));
	TRY(e, writev(e->fd, v + 1, 1));
	TRY(e, writev(e->fd, v, hidden(-1)));
	TRY(e, writev(e->fd, v, hidden(IOV_MAX + 1)));
	m.msg_iovlen = IOV_MAX + 1;
	TRY(e, sendmsg(e->fd, &m, 0));
	v[0].iov_len = (size_t)SSIZE_MAX + 1;
	TRY(e, writev(e->fd, v, 1));
	meet(e);
	meet(e);
}

static void vectors_peer(struct end *e)
{
	char a[3], b[4], c[20];
	struct iovec v[5] = {piece(a, 3), piece(b, 0), piece(b, 4), piece(NULL, 0), piece(c, 20)};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 5};

	have(e, 12);
	text(e, "recvmsg PEEK", a, recvmsg(e->fd, &m, MSG_PEEK) > 0 ? 3 : -1);
	TRY(e, readv(e->fd, v, 5));
	text(e, "a", a, 3);
	text(e, "b", b, 4);
	text(e, "c", c, 5);
	TRY(e, readv(e->fd, v, 0));
	TRY(e, readv(e->fd, v, hidden(-1)));
	TRY(e, readv(e->fd, v, hidden(IOV_MAX + 1)));
	meet(e);
}

static void long_vectors(struct end *e)
{
	static struct iovec v[IOV_MAX];
	static char buf[IOV_MAX * 3];

	pattern((unsigned char *)buf, sizeof(buf), 0);
	for (int i = 0, at = 0; i < IOV_MAX; at += i++ % 4)
		v[i] = piece(buf + at, i % 4);
	TRY(e, writev(e->fd, v, IOV_MAX));
	meet(e);
}

static void long_vectors_peer(struct end *e)
{
	static struct iovec v[IOV_MAX];
	static char buf[IOV_MAX * 3];
	size_t at = 0;

	for (int i = 0; i < IOV_MAX; at += i++ % 4)
		v[i] = piece(buf + at, i % 4);
	arrived(e, e->fd, at);
	TRY(e, readv(e->fd, v, IOV_MAX));
	say(e, "all right: %d", mismatch((unsigned char *)buf, at, 0) == at);
	meet(e);
}

static void at_offset(struct end *e)
{
	char buf[10];
	struct iovec v = piece("hello", 5), in = piece(buf, 10);

	TRY(e, pwrite(e->fd, "x", 1, 0));
	TRY(e, pread(e->fd, buf, 1, 0));
	TRY(e, pwritev(e->fd, &v, 1, 0));
	TRY(e, preadv(e->fd, &in, 1, 0));
	TRY(e, pwritev2(e->fd, &v, 1, 0, 0));
	TRY(e, preadv2(e->fd, &in, 1, 0, 0));
	TRY(e, lseek(e->fd, 0, SEEK_CUR));
	TRY(e, pwritev2(e->fd, &v, 1, -1, 0));
	have(e, 5);
	text(e, "preadv2 at -1", buf, preadv2(e->fd, &in, 1, -1, 0));
	TRY(e, preadv2(e->fd, &in, 1, -1, RWF_NOWAIT));
	TRY(e, preadv2(e->fd, &in, 1, -1, 0x40000000));
}

static void at_offset_peer(struct end *e)
{
	show(e, e->fd, 5, MSG_WAITALL);
	put(e, e->fd, "world");
	meet(e);
}

static void many_messages(struct end *e)
{
	struct iovec v[3] = {piece("one", 3), piece("two2", 4), piece("three", 5)};
	struct mmsghdr m[3] = {{.msg_hdr = {.msg_iov = &v[0], .msg_iovlen = 1}},
			       {.msg_hdr = {.msg_iov = &v[1], .msg_iovlen = 2}},
			       {.msg_hdr = {.msg_iov = NULL, .msg_iovlen = 0}}};

	TRY(e, sendmmsg(e->fd, m, 3, 0));
	say(e, "lengths %u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len);
	TRY(e, sendmmsg(e->fd, m, 0, 0));
	meet(e);
	meet(e);
}

static void many_messages_peer(struct end *e)
{
	char buf[3][5];
	struct iovec v[3] = {piece(buf[0], 5), piece(buf[1], 5), piece(buf[2], 5)};
	struct mmsghdr m[3];
	struct timespec t = {.tv_sec = 5};

	a_piece_each(m, 3, v, 1);
	have(e, 12);
	TRY(e, recvmmsg(e->fd, m, 2, MSG_DONTWAIT, NULL));
	say(e, "lengths %u %u", m[0].msg_len, m[1].msg_len);
	text(e, "first", buf[0], 5);
	text(e, "second", buf[1], 5);
	TRY(e, recvmmsg(e->fd, m, 3, MSG_WAITFORONE, &t));
	say(e, "length %u", m[0].msg_len);
	TRY(e, recvmmsg(e->fd, m, 3, MSG_DONTWAIT, NULL));
	meet(e);
}

/* A control message that TCP does not know, and room for one that never comes. */
static void control(struct end *e)
{
	char room[ROOM] __attribute__((aligned(8))) = {0};
	struct iovec v = piece("hello", 5);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	long r;

	attach_fd(&m, room, 0);
	r = sendmsg(e->fd, &m, MSG_NOSIGNAL);
	say(e, "sendmsg with SCM_RIGHTS: %s", r < 0 ? strerrorname_np(errno) : "sent");
	pass(e, &r, sizeof(r));
	meet(e);
}

static void control_peer(struct end *e)
{
	long r;

	take(e, &r, sizeof(r));
	if (r > 0)
		show(e, e->fd, r, MSG_WAITALL);
	show(e, e->fd, 10, MSG_DONTWAIT);
	meet(e);
}

const struct test cases_vectors[] = {
	{"vector_some", 0, vectors, vectors_peer},
	{"vector_long", 0, long_vectors, long_vectors_peer},
	{"vector_at_offset", 0, at_offset, at_offset_peer},
	{"vector_messages", 0, many_messages, many_messages_peer},
	{"vector_control", 0, control, control_peer},
	{NULL, 0, NULL, NULL},
};
