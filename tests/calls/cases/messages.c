/* SPDX-License-Identifier: MIT */
/* sendmsg, recvmsg, and several messages at once. */
#include "cases.h"

#include <time.h>

static void recvmmsg_job(struct job *j)
{
	struct iovec v[3] = {piece(j->buf, 4), piece(j->buf + 4, 4), piece(j->buf + 8, 4)};
	struct mmsghdr m[3];

	a_piece_each(m, 3, v, 1);
	j->result = recvmmsg(j->fd, m, 3, 0, NULL);
	j->err = errno;
	memcpy(j->buf + 20, (unsigned[]){m[0].msg_len, m[1].msg_len, m[2].msg_len}, 12);
}

/* Waits for each of its messages, which are as long as what is there. */
static void wait_for_each(struct end *e)
{
	struct job j;
	unsigned len[3];

	job_start(e, &j, recvmmsg_job, e->fd);
	job_in_parts(e, &j, 3);
	job_join(e, &j);
	memcpy(len, j.buf + 20, sizeof(len));
	say(e, "recvmmsg = %ld, lengths %u %u %u", j.result, len[0], len[1], len[2]);
	say(e, "%.2s %.2s %.2s", j.buf, j.buf + 4, j.buf + 8);
}

static void wait_for_each_peer(struct end *e)
{
	supply(e, "ab");
	supply(e, "cd");
	supply(e, "ef");
}

/* The end of the stream is a message of nothing, again and again. */
static void many_ends(struct end *e)
{
	char buf[4];
	struct iovec v = piece(buf, 4);
	struct mmsghdr m[3];

	a_piece_each(m, 3, &v, 0);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	TRY(e, recvmmsg(e->fd, m, 3, 0, NULL));
	say(e, "lengths %u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len);
}

static void many_ends_peer(struct end *e)
{
	put(e, e->fd, "abcdef");
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* An error behind a message waits for the next call. */
static void then_reset(struct end *e)
{
	char buf[4];
	struct iovec v = piece(buf, 4);
	struct mmsghdr m[3];

	a_piece_each(m, 3, &v, 0);
	meet(e);
	ended(e, e->fd, POLLHUP);
	TRY(e, recvmmsg(e->fd, m, 3, 0, NULL));
	so_error(e, e->fd);
	TRY(e, recvmmsg(e->fd, m, 3, 0, NULL));
	TRY(e, sendmmsg(e->fd, m, 2, MSG_NOSIGNAL));
}

static void then_reset_peer(struct end *e)
{
	put(e, e->fd, "abcdef");
	reset_on_close(e, e->fd);
	close(e->fd);
	meet(e);
}

static void send_shut(struct end *e)
{
	struct iovec v = piece("ab", 2);
	struct mmsghdr m[2];

	a_piece_each(m, 2, &v, 0);
	count_sigpipe(e);
	TRY(e, sendmmsg(e->fd, m, 2, MSG_MORE));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, sendmmsg(e->fd, m, 2, 0));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, sendmmsg(e->fd, m, 2, MSG_NOSIGNAL));
	meet(e);
}

static void send_shut_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	meet(e);
}

/* A receive timeout of the call is looked at after each message. */
static void timed(struct end *e)
{
	char buf[6];
	struct iovec v[3] = {piece(buf, 2), piece(buf + 2, 2), piece(buf + 4, 2)};
	struct mmsghdr m[3];
	struct timespec none = {0}, enough = {.tv_sec = 20};

	a_piece_each(m, 3, v, 1);
	have(e, 10);
	TRY(e, recvmmsg(e->fd, m, 3, 0, &none));
	say(e, "left %ld", (long)none.tv_sec);
	TRY(e, recvmmsg(e->fd, m, 3, 0, &enough));
	say(e, "much is left: %d, %.6s", enough.tv_sec >= 15, buf);
	TRY(e, recvmmsg(e->fd, m, 3, MSG_WAITFORONE, NULL));
	TRY(e, recvmmsg(e->fd, m, 3, MSG_DONTWAIT, &enough));
	meet(e);
}

/* Everything a recvmsg fills in. */
static void filled_in(struct end *e)
{
	struct sockaddr_in a = {.sin_port = 77};
	char buf[6], control[64] = "xxxx";
	struct iovec v[2] = {piece(buf, 2), piece(buf + 2, 3)};
	struct msghdr m = {.msg_name = &a, .msg_namelen = sizeof(a), .msg_iov = v, .msg_iovlen = 2,
			   .msg_control = control, .msg_controllen = sizeof(control), .msg_flags = -1};

	have(e, 10);
	TRY(e, recvmsg(e->fd, &m, MSG_PEEK));
	say(e, "name %u, control %zu, flags %x, pieces %zu, port %d", m.msg_namelen, m.msg_controllen,
	    m.msg_flags, m.msg_iovlen, a.sin_port);
	m.msg_flags = -1;
	m.msg_namelen = sizeof(a);
	TRY(e, recvmsg(e->fd, &m, MSG_WAITALL | MSG_CMSG_CLOEXEC));
	say(e, "name %u, control %zu, flags %x", m.msg_namelen, m.msg_controllen,
	    m.msg_flags & ~MSG_CMSG_CLOEXEC);
	text(e, "bytes", buf, 5);
	m.msg_flags = -1;
	m.msg_iovlen = 1;
	v[0].iov_len = 0;
	TRY(e, recvmsg(e->fd, &m, MSG_DONTWAIT));
	say(e, "flags %x", m.msg_flags);
	TRY(e, recvmsg(e->fd, &m, MSG_TRUNC | MSG_DONTWAIT));
	say(e, "flags %x", m.msg_flags);
	meet(e);
}

/* Control messages that TCP does not take. */
static void odd_control(struct end *e)
{
	char room[64] __attribute__((aligned(8))) = {0};
	struct iovec v = piece("hello", 5);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room};
	struct cmsghdr *c = (struct cmsghdr *)room;

	c->cmsg_len = CMSG_LEN(4);
	c->cmsg_level = 4711;
	c->cmsg_type = 1;
	m.msg_controllen = CMSG_SPACE(4);
	TRY(e, sendmsg(e->fd, &m, MSG_NOSIGNAL));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = 4711;
	TRY(e, sendmsg(e->fd, &m, MSG_NOSIGNAL));
	m.msg_controllen = 3;
	TRY(e, sendmsg(e->fd, &m, MSG_NOSIGNAL));
	c->cmsg_len = 1000;
	m.msg_controllen = CMSG_SPACE(4);
	TRY(e, sendmsg(e->fd, &m, MSG_NOSIGNAL));
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void odd_control_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	meet(e);
}

/* The kernel's time stamps come with the bytes. */
static void timestamps(struct end *e)
{
	char buf[10], control[200] __attribute__((aligned(8)));
	struct iovec v = piece(buf, 10);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c;

	SET(e->fd, SOL_SOCKET, SO_TIMESTAMP, 1);
	do {	/* the kernel starts its clock some time after it has been asked */
		tell(e);
		arrived(e, e->fd, 5);
		m.msg_controllen = sizeof(control);
		MUST(e, recvmsg(e->fd, &m, 0));
		c = CMSG_FIRSTHDR(&m);
	} while (!c);
	say(e, "level %d, type %d", c->cmsg_level, c->cmsg_type);
	text(e, "bytes", buf, 5);
	shutdown(e->fd, SHUT_WR);
	tell(e);
}

static void timestamps_peer(struct end *e)
{
	for (await(e); !(polled(e->fd, POLLRDHUP, 0) & POLLRDHUP); await(e))
		put(e, e->fd, "stamp");
}

/* How much more there is, with each message (TCP_INQ). */
static void inq(struct end *e)
{
	char buf[4], control[200] __attribute__((aligned(8)));
	struct iovec v = piece(buf, 4);
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control};
	struct cmsghdr *c;
	int n = -1, one = 1;

	TRY(e, setsockopt(e->fd, IPPROTO_TCP, 36 /* TCP_INQ */, &one, sizeof(one)));
	meet(e);
	have(e, 10);
	for (int i = 0; i < 3; i++) {
		m.msg_controllen = sizeof(control);
		TRY(e, recvmsg(e->fd, &m, 0));
		c = CMSG_FIRSTHDR(&m);
		if (c)
			memcpy(&n, CMSG_DATA(c), sizeof(n));
		say(e, "more %d", n);
	}
	meet(e);
}

static void show_unread(struct end *e, size_t bytes, size_t room, int flags)
{
	char buf[100], control[64] __attribute__((aligned(8))) = "";
	struct iovec v = piece(buf, bytes);
	struct msghdr m = { .msg_iov = &v,
			    .msg_iovlen = 1,
			    .msg_control = room ? control : NULL,
			    .msg_controllen = room };
	struct cmsghdr c;
	int n = -1;

	result(e, "recvmsg", recvmsg(e->fd, &m, flags));
	memcpy(&c, control, sizeof(c));
	memcpy(&n, CMSG_DATA((struct cmsghdr *)control), sizeof(n));
	say(e, "room %zu: %zu with flags %d; %zu %d %d: %d", room, (size_t)m.msg_controllen,
	    m.msg_flags, (size_t)c.cmsg_len, c.cmsg_level, c.cmsg_type, n);
}

/* With any room for it, and to the end, which counts as a byte. */
static void unread(struct end *e)
{
	static const size_t rooms[] = { 64, 0, 8, 16, 18, 20, 23, 24 };

	SET(e->fd, IPPROTO_TCP, 36 /* TCP_INQ */, 1);
	GET(e->fd, IPPROTO_TCP, 36);
	show_unread(e, 1, 64, MSG_DONTWAIT);
	meet(e);
	have(e, 30);
	for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++)
		show_unread(e, 2, rooms[i], i % 2 ? MSG_PEEK : 0);
	meet(e);
	ended(e, e->fd, POLLRDHUP);
	show_unread(e, 2, 64, 0);
	show_unread(e, 100, 64, 0);
	show_unread(e, 1, 64, 0);
	show_unread(e, 0, 64, 0);
	SET(e->fd, IPPROTO_TCP, 36, 0);
	show_unread(e, 1, 64, 0);
	meet(e);
}

static void unread_peer(struct end *e)
{
	meet(e);
	put(e, e->fd, "012345678901234567890123456789");
	meet(e);
	meet(e);
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

/* Many small vectors in many messages. */
static void heap(struct end *e)
{
	static struct mmsghdr m[50];
	static struct iovec v[50][4];
	unsigned char *buf = malloc(50 * 400);
	unsigned sum = 0;

	pattern(buf, 50 * 400, 0);
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 4; k++)
			v[i][k] = piece((char *)buf + i * 400 + k * 100, 100);
		m[i].msg_hdr = (struct msghdr){.msg_iov = v[i], .msg_iovlen = 4};
	}
	TRY(e, sendmmsg(e->fd, m, 50, 0));
	for (int i = 0; i < 50; i++)
		sum += m[i].msg_len;
	say(e, "%u bytes", sum);
	free(buf);
	meet(e);
}

static void heap_peer(struct end *e)
{
	recv_pattern(e, e->fd, 0, 20000, 333);
	meet(e);
}

/* Control data of the second message sends the connection to TCP between the two. */
static void on_the_way(struct end *e)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = "";
	struct iovec v[3] = {piece("ab", 2), piece("cde", 3), piece("f", 1)};
	struct cmsghdr *c = (struct cmsghdr *)control;
	struct mmsghdr m[3];

	c->cmsg_len = CMSG_LEN(sizeof(int));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;	/* which a socket of TCP does not look at */
	memcpy(CMSG_DATA(c), &e->fd, sizeof(int));
	for (int i = 0; i < 2; i++) {
		a_piece_each(m, 3, v, 1);
		m[1].msg_hdr.msg_control = control;
		m[1].msg_hdr.msg_controllen = sizeof(control);
		TRY(e, sendmmsg(e->fd, m, 3, 0));
		say(e, "lengths %u %u %u", m[0].msg_len, m[1].msg_len, m[2].msg_len);
	}
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void on_the_way_peer(struct end *e)
{
	show(e, e->fd, 100, MSG_WAITALL);
	meet(e);
}

const struct test cases_messages[] = {
	{ "message_wait_for_each", 0, wait_for_each, wait_for_each_peer },
	{ "message_many_ends", 0, many_ends, many_ends_peer },
	{ "message_then_reset", 0, then_reset, then_reset_peer },
	{ "message_send_shut", 0, send_shut, send_shut_peer },
	{ "message_timed", 0, timed, ten_peer },
	{ "message_filled_in", 0, filled_in, ten_peer },
	{ "message_odd_control", 0, odd_control, odd_control_peer },
	{ "message_timestamps", 0, timestamps, timestamps_peer },
	{ "message_inq", 0, inq, ten_later_peer },
	{ "message_unread", 0, unread, unread_peer },
	{ "message_heap", 0, heap, heap_peer },
	{ "message_on_the_way", 0, on_the_way, on_the_way_peer },
	{ NULL, 0, NULL, NULL },
};
