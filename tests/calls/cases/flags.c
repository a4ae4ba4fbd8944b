/* SPDX-License-Identifier: MIT */
/* Flags of send and recv, alone and together. */
#include "cases.h"

#include <linux/errqueue.h>
#include <sys/epoll.h>

static JOB(peek_waitall_job, recv(j->fd, j->buf, 12, MSG_PEEK | MSG_WAITALL))

/* Peeking at all of it waits until all of it is there. */
static void peek_waitall(struct end *e)
{
	struct job j;

	job_start(e, &j, peek_waitall_job, e->fd);
	job_in_parts(e, &j, 3);
	job_report(e, "recv 12 PEEK WAITALL", &j);
	show(e, e->fd, 100, 0);
	tell(e);
	ended(e, e->fd, POLLRDHUP);
	show(e, e->fd, 12, MSG_PEEK | MSG_WAITALL);
	show(e, e->fd, 12, MSG_WAITALL);
	show(e, e->fd, 12, MSG_PEEK | MSG_WAITALL);
}

static void peek_waitall_dontwait(struct end *e)
{
	have(e, 10);
	show(e, e->fd, 20, MSG_PEEK | MSG_WAITALL | MSG_DONTWAIT);
	nonblock(e, e->fd, 1);
	show(e, e->fd, 20, MSG_PEEK | MSG_WAITALL);
	show(e, e->fd, 20, 0);
	show(e, e->fd, 20, MSG_PEEK | MSG_WAITALL);
	meet(e);
}

/* TRUNC with PEEK: how many there are, and they stay. */
static void trunc_peek(struct end *e)
{
	have(e, 10);
	TRY(e, recv(e->fd, NULL, 4, MSG_TRUNC | MSG_PEEK));
	TRY(e, recv(e->fd, NULL, 100, MSG_TRUNC | MSG_PEEK));
	TRY(e, recv(e->fd, NULL, 3, MSG_TRUNC | MSG_WAITALL));
	show(e, e->fd, 100, MSG_PEEK);
	TRY(e, recv(e->fd, NULL, 100, MSG_TRUNC));
	TRY(e, recv(e->fd, NULL, 100, MSG_TRUNC | MSG_PEEK | MSG_DONTWAIT));
	meet(e);
}

/* A buffer that is given with TRUNC is not written to. */
static void trunc_untouched(struct end *e)
{
	char buf[11] = "----------";
	struct iovec v[2] = {{.iov_base = buf, .iov_len = 3}, {.iov_base = buf + 3, .iov_len = 4}};
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	have(e, 10);
	TRY(e, recv(e->fd, buf, 2, MSG_TRUNC));
	say(e, "%s", buf);
	TRY(e, recvmsg(e->fd, &m, MSG_TRUNC));
	say(e, "%s, flags %x", buf, m.msg_flags);
	show(e, e->fd, 100, 0);
	meet(e);
}

static void waitall_end(struct end *e)
{
	char c;

	meet(e);
	show(e, e->fd, 20, MSG_WAITALL);
	show(e, e->fd, 20, MSG_WAITALL);
	TRY(e, recv(e->fd, &c, 0, MSG_WAITALL));
}

static void waitall_end_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	meet(e);
	shutdown(e->fd, SHUT_WR);
}

static void waitall_big_job(struct job *j)
{
	size_t len = 3 << 20;
	unsigned char *buf = malloc(len);

	j->result = recv(j->fd, buf, len, MSG_WAITALL);
	j->err = errno;
	j->buf[0] = mismatch(buf, len, 0) == len;
	free(buf);
}

/* More than any buffer holds, in one call. */
static void waitall_big(struct end *e)
{
	struct job j;

	job_sleeps(e, &j, waitall_big_job, e->fd);
	tell(e);
	job_join(e, &j);
	say(e, "%ld bytes, right %d", j.result, j.buf[0]);
}

static void waitall_big_peer(struct end *e)
{
	await(e);
	send_pattern(e, e->fd, 0, 3 << 20, 100000);
}

/* A wait for all ends with a reset: first what there was, then the error. */
static void waitall_reset(struct end *e)
{
	struct job j;

	have(e, 10);
	job_sleeps(e, &j, peek_waitall_job, e->fd);
	meet(e);
	job_report(e, "recv 12 PEEK WAITALL", &j);
	ended(e, e->fd, POLLHUP);
	show(e, e->fd, 20, MSG_WAITALL);
	show(e, e->fd, 20, MSG_WAITALL);
	show(e, e->fd, 20, MSG_WAITALL);
}

static void waitall_reset_peer(struct end *e)
{
	ten_peer(e);
	reset_on_close(e, e->fd);
	close(e->fd);
}

/* Flags that mean nothing to TCP. */
static void meaningless(struct end *e)
{
	static const struct { const char *name; int flag; } send_flags[] = {
		{"CONFIRM", MSG_CONFIRM}, {"DONTROUTE", MSG_DONTROUTE}, {"EOR", MSG_EOR},
		{"PEEK", MSG_PEEK}, {"WAITALL", MSG_WAITALL}, {"TRUNC", MSG_TRUNC},
		{"CTRUNC", MSG_CTRUNC}, {"SYN", MSG_SYN}, {"FIN", MSG_FIN}, {"RST", MSG_RST},
		{"PROXY", MSG_PROXY}, {"CMSG_CLOEXEC", MSG_CMSG_CLOEXEC},
	};

	for (size_t i = 0; i < sizeof(send_flags) / sizeof(send_flags[0]); i++)
		result(e, send_flags[i].name, send(e->fd, "xy", 2, send_flags[i].flag));
	have(e, 10);
	show(e, e->fd, 1, MSG_CONFIRM);
	show(e, e->fd, 1, MSG_DONTROUTE);
	show(e, e->fd, 1, MSG_EOR);
	show(e, e->fd, 1, MSG_MORE);
	show(e, e->fd, 1, MSG_NOSIGNAL);
	show(e, e->fd, 1, MSG_CTRUNC);
	show(e, e->fd, 1, MSG_CMSG_CLOEXEC);
	show(e, e->fd, 100, 0);
	meet(e);
}

static void meaningless_peer(struct end *e)
{
	put(e, e->fd, "0123456789");
	have(e, 24);
	show(e, e->fd, 100, 0);
	meet(e);
}

/* Held back pieces come in order, whoever lets them go. */
static void more_released(struct end *e)
{
	for (int i = 0; i < 5; i++)
		TRY(e, send(e->fd, "abc", 3, MSG_MORE));
	TRY(e, send(e->fd, "!", 1, 0));
	meet(e);
	TRY(e, send(e->fd, "with the end", 12, MSG_MORE));
	TRY(e, shutdown(e->fd, SHUT_WR));
	meet(e);
}

static void more_released_peer(struct end *e)
{
	show(e, e->fd, 16, MSG_WAITALL);
	meet(e);
	show(e, e->fd, 100, MSG_WAITALL);
	show(e, e->fd, 100, 0);
	meet(e);
}

static void more_closed(struct end *e)
{
	TRY(e, send(e->fd, "held back", 9, MSG_MORE));
	TRY(e, close(e->fd));
	meet(e);
}

static void more_closed_peer(struct end *e)
{
	meet(e);
	show(e, e->fd, 100, MSG_WAITALL);
	show(e, e->fd, 100, 0);
}

/*
 * Bytes held back by MSG_MORE go after a fifth of a second at the latest, whatever the program
 * does.
 */
static void more_forgotten(struct end *e)
{
	TRY(e, send(e->fd, "forgotten", 9, MSG_MORE));
	meet(e);
	await(e);
}

static void more_forgotten_peer(struct end *e)
{
	meet(e);
	show(e, e->fd, 9, MSG_WAITALL);
	tell(e);
}

static void more_much(struct end *e)
{
	unsigned char buf[1000];

	for (int i = 0; i < 300; i++) {
		pattern(buf, sizeof(buf), i * 1000);
		MUST(e, send(e->fd, buf, sizeof(buf), MSG_MORE) - 1000);
	}
	TRY(e, send(e->fd, "", 0, 0));
	shutdown(e->fd, SHUT_WR);
	meet(e);
}

static void more_much_peer(struct end *e)
{
	recv_pattern(e, e->fd, 0, 300000, 7000);
	show(e, e->fd, 1, 0);
	meet(e);
}

/* Without SO_ZEROCOPY the flag is ignored. */
static void zerocopy_unasked(struct end *e)
{
	TRY(e, send(e->fd, "01234", 5, MSG_ZEROCOPY));
	bits(e, "poll", polled(e->fd, 0, 0));
	put(e, e->fd, "56789");
	meet(e);
}

static void ten_there(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	meet(e);
}

static void zerocopy(struct end *e)
{
	char room[200] __attribute__((aligned(8)));
	struct msghdr m = {.msg_control = room, .msg_controllen = sizeof(room)};
	struct sock_extended_err *err;
	struct cmsghdr *c;
	int one = 1;

	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)));
	TRY(e, recvmsg(e->fd, &m, MSG_ERRQUEUE));
	TRY(e, send(e->fd, "0123456789", 10, MSG_ZEROCOPY));
	await(e);
	ended(e, e->fd, POLLERR);
	m.msg_controllen = sizeof(room);
	TRY(e, recvmsg(e->fd, &m, MSG_ERRQUEUE));
	c = CMSG_FIRSTHDR(&m);
	if (c) {
		err = (struct sock_extended_err *)CMSG_DATA(c);
		say(e, "errno %u, origin %u, code %u, %u to %u", err->ee_errno, err->ee_origin,
		    err->ee_code, err->ee_info, err->ee_data);
	}
	say(e, "flags %x", m.msg_flags & (MSG_ERRQUEUE | MSG_CTRUNC | MSG_TRUNC));
	bits(e, "poll", polled(e->fd, POLLIN | POLLOUT, 0));
	meet(e);
}

static void zerocopy_peer(struct end *e)
{
	show(e, e->fd, 10, MSG_WAITALL);
	tell(e);
	meet(e);
}

/* Two urgent bytes: the first becomes an ordinary one. */
static void oob_twice(struct end *e)
{
	meet(e);
	ended(e, e->fd, POLLPRI);
	arrived(e, e->fd, 5);
	show(e, e->fd, 1, MSG_OOB);
	show(e, e->fd, 1, MSG_OOB);
	show(e, e->fd, 100, 0);
	show(e, e->fd, 100, MSG_DONTWAIT);
	meet(e);
}

static void oob_twice_peer(struct end *e)
{
	put(e, e->fd, "ab");
	TRY(e, send(e->fd, "c1", 2, MSG_OOB));
	TRY(e, send(e->fd, "d2", 2, MSG_OOB));
	meet(e);
	meet(e);
}

static void oob_inline(struct end *e)
{
	SET(e->fd, SOL_SOCKET, SO_OOBINLINE, 1);
	GET(e->fd, SOL_SOCKET, SO_OOBINLINE);
	meet(e);
	have(e, 7);
	show(e, e->fd, 1, MSG_OOB);
	show(e, e->fd, 100, 0);
	say(e, "at mark %d", sockatmark(e->fd));
	show(e, e->fd, 100, 0);
	meet(e);
}

static void oob_inline_peer(struct end *e)
{
	meet(e);
	put_urgent(e);
	meet(e);
	meet(e);
}

/* Urgent data shows in all ways of waiting. */
static void oob_ready(struct end *e)
{
	struct timeval none = {0};
	int ep = set_of(e, e->fd, EPOLLPRI);
	fd_set x;

	bits(e, "poll", polled(e->fd, POLLIN | POLLPRI, 0));
	wait_on(e, ep, 0);
	meet(e);
	meet(e);
	wait_on(e, ep, -1);
	FD_ZERO(&x);
	FD_SET(e->fd, &x);
	TRY(e, select(e->fd + 1, NULL, NULL, &x, &none));
	bits(e, "poll", polled(e->fd, POLLPRI, 0));
	show(e, e->fd, 1, MSG_OOB);
	bits(e, "poll", polled(e->fd, POLLPRI, 0));
	wait_on(e, ep, 0);
	close(ep);
	meet(e);
}

static void oob_ready_peer(struct end *e)
{
	meet(e);
	TRY(e, send(e->fd, "!", 1, MSG_OOB));
	meet(e);
	meet(e);
}

/* Urgent data in both directions, then the stream goes on. */
static void oob_both(struct end *e)
{
	TRY(e, send(e->fd, "!", 1, MSG_OOB));
	meet(e);
	ended(e, e->fd, POLLPRI);
	show(e, e->fd, 1, MSG_OOB);
	meet(e);
	put(e, e->fd, "hello");
	show(e, e->fd, 5, MSG_WAITALL);
	meet(e);
}

static void oob_ended(struct end *e)
{
	char c;

	count_sigpipe(e);
	TRY(e, recv(e->fd, &c, 1, MSG_OOB));
	TRY(e, shutdown(e->fd, SHUT_WR));
	TRY(e, send(e->fd, "!", 1, MSG_OOB));
	say(e, "%d SIGPIPE", sigpipes());
	TRY(e, send(e->fd, "", 0, MSG_OOB | MSG_NOSIGNAL));
	meet(e);
}

/* The offset of peeking moves on by itself. */
static void peek_off(struct end *e)
{
	int off = 2;
	socklen_t len = sizeof(off);

	have(e, 10);
	TRY(e, setsockopt(e->fd, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off)));
	show(e, e->fd, 3, MSG_PEEK);
	show(e, e->fd, 3, MSG_PEEK);
	TRY(e, getsockopt(e->fd, SOL_SOCKET, SO_PEEK_OFF, &off, &len));
	say(e, "offset %d", off);
	show(e, e->fd, 4, 0);
	show(e, e->fd, 100, MSG_PEEK);
	meet(e);
}

static void fastopen(struct end *e)
{
	TRY(e, sendto(e->fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&e->addr,
		      e->addrlen));
	ask(e, e->fd);
	finish(e, e->fd);
}

const struct test cases_flags[] = {
	{"flag_peek_waitall", 0, peek_waitall, parts_peer},
	{"flag_peek_waitall_dontwait", 0, peek_waitall_dontwait, ten_only_peer},
	{"flag_trunc_peek", 0, trunc_peek, ten_only_peer},
	{"flag_trunc_untouched", 0, trunc_untouched, ten_only_peer},
	{"flag_waitall_end", 0, waitall_end, waitall_end_peer},
	{"flag_waitall_big", 0, waitall_big, waitall_big_peer},
	{"flag_waitall_reset", 0, waitall_reset, waitall_reset_peer},
	{"flag_meaningless", 0, meaningless, meaningless_peer},
	{"flag_more_released", 0, more_released, more_released_peer},
	{"flag_more_closed", 0, more_closed, more_closed_peer},
	{"flag_more_forgotten", 0, more_forgotten, more_forgotten_peer},
	{"flag_more_much", 0, more_much, more_much_peer},
	{"flag_zerocopy_unasked", 0, zerocopy_unasked, ten_there},
	{"flag_zerocopy", 0, zerocopy, zerocopy_peer},
	{"flag_oob_twice", 0, oob_twice, oob_twice_peer},
	{"flag_oob_inline", 0, oob_inline, oob_inline_peer},
	{"flag_oob_ready", 0, oob_ready, oob_ready_peer},
	{"flag_oob_both", 0, oob_both, oob_both},
	{"flag_oob_ended", 0, oob_ended, meet_only},
	{"flag_peek_off", 0, peek_off, ten_only_peer},
	{"flag_fastopen", 0, fastopen, echo_peer},
	{NULL, 0, NULL, NULL},
};
